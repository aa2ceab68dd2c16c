//! Expectations that count creations and deletions.
//!
//! A `DaemonSet`-like controller sends creations and deletions in one reconcile. Two counts per key
//! are enough for that, as long as each observation arrives once. The entries, their expiry and
//! their lock are in `entries`; this module adds only the public methods.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::time::Instant;

use crate::entries::{Generation, Shared};
use crate::guard::{EntryOf, Expected};
use crate::pending::{Outstanding, Pending};

/// Counts for each key the creations and deletions that the cache has yet to show.
///
/// Use it when the controller decides on creations and deletions together, and the informer reports
/// each deletion once. If it may report a deletion twice (a pod's `deletionTimestamp`, then its
/// removal), use [`UidTrackingExpectations`](crate::UidTrackingExpectations).
///
/// This is a handle: cheap to clone, and all clones share their entries. `Key` names the
/// controlling object; `Uid` distinguishes it from an earlier object of the same name.
///
/// An entry stays until it is replaced or [deleted](Self::delete): call `delete` when the
/// controlling object is deleted, or its entry takes memory for the life of the process.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::ControllerExpectations;
///
/// let expectations = ControllerExpectations::<&str, &str>::new("daemonset");
/// let (key, owner) = ("default/agent", "uid-1");
///
/// // Two nodes lack a pod, one has a pod too many.
/// let expected = expectations.expect(&key, &owner, 2, 1);
/// expected.start_creation().sent();
/// expected.start_creation().refused();
/// expected.start_deletion().sent();
/// drop(expected);
///
/// expectations.creation_observed(&key, &owner);
/// assert!(!expectations.satisfied(&key, &owner), "the cache does not show the deletion yet");
/// expectations.deletion_observed(&key, &owner);
/// assert!(expectations.satisfied(&key, &owner));
/// ```
pub struct ControllerExpectations<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

// === impl ControllerExpectations ===

impl<Key, Uid> ControllerExpectations<Key, Uid> {
    /// Creates an empty set of expectations that counts expired entries in the metric
    /// `controller_expectations_expired_total{controller}`. An entry expires when the cache has not
    /// shown it after five minutes. `default()` creates a set without the metric.
    pub fn new(controller: impl Into<String>) -> Self {
        Self { shared: Arc::new(Shared::new(Some(controller.into()))) }
    }
}

impl<Key, Uid> ControllerExpectations<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Records that the controller is about to send this number of creations and deletions.
    /// Replaces the entry of the key.
    ///
    /// Take a token from the guard before each request.
    #[doc(alias = "SetExpectations")]
    pub fn expect(
        &self,
        key: &Key,
        owner: &Uid,
        creations: usize,
        deletions: usize,
    ) -> Expected<Key, Uid> {
        let pending = Pending::counts(creations, deletions, Instant::now());
        let generation = self.shared.set(key.clone(), owner.clone(), pending);
        self.guard(key, Some(generation), creations, deletions)
    }

    /// Adds this number of creations and deletions to the entry of the key. It has no effect if
    /// there is no entry for this key and owner, and does not change when the entry expires.
    ///
    /// Take a token from the guard before each request.
    ///
    /// # Examples
    ///
    /// A second batch within the same reconcile:
    ///
    /// ```
    /// use homeostat_expectations::ControllerExpectations;
    ///
    /// let expectations = ControllerExpectations::<&str, u8>::default();
    /// let first = expectations.expect(&"default/agent", &1, 1, 0);
    /// let second = expectations.raise(&"default/agent", &1, 2, 0);
    /// assert_eq!(expectations.outstanding(&"default/agent", &1).unwrap().creations, 3);
    ///
    /// drop(second); // its creations were never started
    /// assert_eq!(expectations.outstanding(&"default/agent", &1).unwrap().creations, 1);
    /// drop(first);
    /// assert!(expectations.satisfied(&"default/agent", &1));
    /// ```
    #[doc(alias = "RaiseExpectations")]
    pub fn raise(
        &self,
        key: &Key,
        owner: &Uid,
        creations: usize,
        deletions: usize,
    ) -> Expected<Key, Uid> {
        let generation =
            self.shared.change(key, owner, |pending| pending.raise(creations, deletions));
        self.guard(key, generation, creations, deletions)
    }

    fn guard(
        &self,
        key: &Key,
        generation: Option<Generation>,
        creations: usize,
        deletions: usize,
    ) -> Expected<Key, Uid> {
        let shared = &self.shared;
        let entry_of =
            |generation| EntryOf { shared: Arc::clone(shared), key: key.clone(), generation };
        let entry = generation.map(entry_of);
        Expected::new(entry, creations, deletions)
    }

    /// Returns true if this owner may act on the cache.
    ///
    /// It may if the key has no entry, if every expected write was observed or refused, if the
    /// entry is more than five minutes old, or if the entry belongs to an owner with another uid.
    ///
    /// If it may not, the observation that lowers the entry comes with an event, which queues the
    /// key. A write whose response was lost may have no event: check the key again after five
    /// minutes, or nothing wakes it when the entry expires.
    ///
    /// Expiry is reported once per entry, as a warning and in the metric. An expired entry stays
    /// expired until it is replaced, so that the owner is not blocked a second time.
    #[doc(alias = "SatisfiedExpectations")]
    pub fn satisfied(&self, key: &Key, owner: &Uid) -> bool {
        self.shared.satisfied(key, owner)
    }

    /// Returns the creations and deletions that this owner waits for, read together under one lock;
    /// `None` if the key has no entry for this owner.
    #[doc(alias = "GetExpectations")]
    pub fn outstanding(&self, key: &Key, owner: &Uid) -> Option<Outstanding> {
        self.shared.outstanding(key, owner)
    }

    /// Records that the cache shows a new object that `owner` controls.
    ///
    /// Call it before queueing the key. An observation that was not expected counts towards a later
    /// [`raise`](Self::raise) of the same entry, because the informer may show an object before the
    /// response to its creation arrives. It does not count towards a later
    /// [`expect`](Self::expect).
    #[doc(alias = "CreationObserved")]
    pub fn creation_observed(&self, key: &Key, owner: &Uid) {
        self.shared.change(key, owner, |pending| pending.lower(1, 0));
    }

    /// Records that the cache shows the deletion of an object that `owner` controls.
    ///
    /// Call it before queueing the key, once for each object.
    #[doc(alias = "DeletionObserved")]
    pub fn deletion_observed(&self, key: &Key, owner: &Uid) {
        self.shared.change(key, owner, |pending| pending.lower(0, 1));
    }

    /// Removes the entry of a key whose object is deleted. Remaining guards and tokens lower
    /// nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_expectations::ControllerExpectations;
    ///
    /// let expectations = ControllerExpectations::<&str, u8>::default();
    /// expectations.expect(&"default/agent", &1, 1, 0).start_creation().sent();
    /// expectations.delete(&"default/agent"); // the informer has shown that the owner is gone
    /// assert_eq!(expectations.outstanding(&"default/agent", &1), None);
    /// ```
    #[doc(alias = "DeleteExpectations")]
    pub fn delete(&self, key: &Key) {
        self.shared.forget(key);
    }
}

impl<Key, Uid> Clone for ControllerExpectations<Key, Uid> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Key, Uid> Default for ControllerExpectations<Key, Uid> {
    fn default() -> Self {
        Self { shared: Arc::new(Shared::new(None)) }
    }
}

impl<Key, Uid> fmt::Debug for ControllerExpectations<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerExpectations")
            .field("keys", &self.shared.len())
            .finish_non_exhaustive()
    }
}
