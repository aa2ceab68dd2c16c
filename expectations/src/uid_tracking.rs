//! Expectations that track deletions by uid.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::time::Instant;

use crate::entries::Shared;
use crate::guard::{EntryOf, ExpectedCreations, ExpectedDeletions};
use crate::pending::{Outstanding, Pending};

/// Tracks for each key if the cache has shown all creations, or all deletions, of its controller.
///
/// This is a handle: cheap to clone, and all clones share their entries.
///
/// `Key` names the controlling object (a `ReplicaSet`). `Uid` is the uid of that object, and of the
/// objects that it controls (pods); it distinguishes successive objects of the same name.
///
/// Each key has one entry. [`expect_creations`](Self::expect_creations) and
/// [`expect_deletions`](Self::expect_deletions) replace it: check [`satisfied`](Self::satisfied)
/// before deciding on a write, and process each key in one worker at a time.
///
/// A deletion that the informer reports twice counts once. Use
/// [`ControllerExpectations`](crate::ControllerExpectations) when the informer reports each
/// deletion once, or the controller decides on creations and deletions together.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, &str>::new("replicaset");
/// let (key, owner) = ("default/web", "uid-1");
///
/// let expected = expectations.expect_deletions(&key, &owner, ["pod-1", "pod-2"]);
/// expected.start(&"pod-1").sent();
/// expected.start(&"pod-2").sent();
/// drop(expected);
///
/// expectations.deletion_observed(&key, &owner, &"pod-1"); // its deletionTimestamp
/// expectations.deletion_observed(&key, &owner, &"pod-1"); // its removal
/// assert!(!expectations.satisfied(&key, &owner), "the cache still shows the second pod");
/// expectations.deletion_observed(&key, &owner, &"pod-2");
/// assert!(expectations.satisfied(&key, &owner));
/// ```
#[doc(alias = "UIDTrackingControllerExpectations")]
pub struct UidTrackingExpectations<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

// === impl UidTrackingExpectations ===

impl<Key, Uid> UidTrackingExpectations<Key, Uid> {
    /// Creates an empty set of expectations that counts expired entries in the metric
    /// `controller_expectations_expired_total{controller}`. An entry expires when the cache has not
    /// shown it after five minutes. `default()` creates a set without the metric.
    pub fn new(controller: impl Into<String>) -> Self {
        Self { shared: Arc::new(Shared::new(Some(controller.into()))) }
    }
}

impl<Key, Uid> UidTrackingExpectations<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Records that the controller is about to create `count` objects. Replaces the entry of the
    /// key.
    ///
    /// Take a token from the guard before each request.
    ///
    /// # Examples
    ///
    /// A reconcile that is cancelled between two requests:
    ///
    /// ```
    /// use homeostat_expectations::UidTrackingExpectations;
    ///
    /// let expectations = UidTrackingExpectations::<&str, u8>::default();
    /// let expected = expectations.expect_creations(&"default/web", &1, 3);
    /// drop(expected.start()); // cancelled in flight: the server may have created the pod
    /// drop(expected); // the other two requests were never started
    /// assert_eq!(expectations.outstanding(&"default/web", &1).unwrap().creations, 1);
    /// ```
    #[doc(alias = "ExpectCreations")]
    pub fn expect_creations(
        &self,
        key: &Key,
        owner: &Uid,
        count: usize,
    ) -> ExpectedCreations<Key, Uid> {
        let entry = self.set(key, owner, Pending::counts(count, 0, Instant::now()));
        ExpectedCreations::new(entry, count)
    }

    /// Records that the controller is about to delete the objects with these uids. Replaces the
    /// entry of the key. Duplicate uids count once.
    ///
    /// Take a token from the guard before each request.
    #[doc(alias = "ExpectDeletions")]
    pub fn expect_deletions(
        &self,
        key: &Key,
        owner: &Uid,
        uids: impl IntoIterator<Item = Uid>,
    ) -> ExpectedDeletions<Key, Uid> {
        let uids: HashSet<Uid> = uids.into_iter().collect();
        let entry = self.set(key, owner, Pending::deletions_of(uids.clone(), Instant::now()));
        ExpectedDeletions::new(entry, uids)
    }

    fn set(&self, key: &Key, owner: &Uid, pending: Pending<Uid>) -> EntryOf<Key, Uid> {
        let generation = self.shared.set(key.clone(), owner.clone(), pending);
        EntryOf { shared: Arc::clone(&self.shared), key: key.clone(), generation }
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
    /// Call it before queueing the key. An observation that was not expected does not count towards
    /// later expectations.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_expectations::UidTrackingExpectations;
    ///
    /// let expectations = UidTrackingExpectations::<&str, u8>::default();
    /// expectations.expect_creations(&"default/web", &1, 1).start().sent();
    /// expectations.creation_observed(&"default/web", &2); // a pod of an earlier owner: no effect
    /// assert!(!expectations.satisfied(&"default/web", &1));
    /// expectations.creation_observed(&"default/web", &1);
    /// assert!(expectations.satisfied(&"default/web", &1));
    /// ```
    #[doc(alias = "CreationObserved")]
    pub fn creation_observed(&self, key: &Key, owner: &Uid) {
        self.shared.change(key, owner, |pending| pending.lower(1, 0));
    }

    /// Records that the cache shows the deletion of the object `uid`, which `owner` controls.
    ///
    /// Call it before queueing the key, both for a new `deletionTimestamp` and for the removal;
    /// they count once. A uid that was not expected has no effect.
    #[doc(alias = "DeletionObserved")]
    pub fn deletion_observed(&self, key: &Key, owner: &Uid, uid: &Uid) {
        let mut lowered = None; // the user's type: not dropped under the lock
        self.shared.change(key, owner, |pending| lowered = pending.lower_deletion_of(uid));
    }

    /// Removes the entry of a key whose object is deleted. Remaining guards and tokens lower
    /// nothing.
    ///
    /// An entry stays until it is replaced or deleted: without this call the entry of a deleted
    /// object takes memory for the life of the process.
    #[doc(alias = "DeleteExpectations")]
    pub fn delete(&self, key: &Key) {
        self.shared.forget(key);
    }
}

impl<Key, Uid> Clone for UidTrackingExpectations<Key, Uid> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Key, Uid> Default for UidTrackingExpectations<Key, Uid> {
    fn default() -> Self {
        Self { shared: Arc::new(Shared::new(None)) }
    }
}

impl<Key, Uid> fmt::Debug for UidTrackingExpectations<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UidTrackingExpectations")
            .field("keys", &self.shared.len())
            .finish_non_exhaustive()
    }
}
