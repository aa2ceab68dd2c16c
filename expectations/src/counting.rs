//! Expectations that only count.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::time::Instant;

use crate::entries::{Generation, Shared};
use crate::guard::{EntryOf, Expected};
use crate::pending::{Outstanding, Pending};

/// Says for each key whether the cache has shown as many creations and deletions as its controller has
/// decided on.
///
/// For a controller that decides on both together, or whose objects' deletions are each told once. Where a
/// deletion may be told twice (a pod's `deletionTimestamp`, then its removal), use
/// [`UidTrackingExpectations`](crate::UidTrackingExpectations).
///
/// This is a handle: cheap to clone, and all clones share their entries. `Key` names the controlling object,
/// `Uid` tells it from another one that bore its name before.
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
/// assert!(!expectations.satisfied(&key, &owner), "the deletion is still to be seen");
/// expectations.deletion_observed(&key, &owner);
/// assert!(expectations.satisfied(&key, &owner));
/// ```
pub struct ControllerExpectations<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

// === impl ControllerExpectations ===

impl<Key, Uid> ControllerExpectations<Key, Uid> {
    /// Expects nothing yet. `controller` names it in the metric `controller_expectations_expired_total`: how
    /// often something was expected that the cache did not show within five minutes. (By default: no metric.)
    pub fn new(controller: impl Into<String>) -> Self {
        Self { shared: Arc::new(Shared::new(Some(controller.into()))) }
    }
}

impl<Key, Uid> ControllerExpectations<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Notes that so many objects are about to be created and deleted, in place of all that was noted for
    /// this key.
    ///
    /// Take a token from the guard before each request.
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

    /// Notes that so many more objects are about to be created and deleted. When nothing was noted for this
    /// key and owner, it has no effect; nor does it change when what was noted expires.
    ///
    /// Take a token from the guard before each request.
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

    /// Whether this owner may act on what the cache shows.
    ///
    /// So it is if nothing was noted for the key, or all was observed or refused, or it was noted more
    /// than five minutes ago, or for an owner with another uid.
    pub fn satisfied(&self, key: &Key, owner: &Uid) -> bool {
        self.shared.satisfied(key, owner)
    }

    /// What this owner still waits for, all read at one moment; `None` if nothing was noted.
    pub fn outstanding(&self, key: &Key, owner: &Uid) -> Option<Outstanding> {
        self.shared.outstanding(key, owner)
    }

    /// The cache has shown an object that `owner` controls for the first time.
    ///
    /// Call it before the key is queued. What was not expected has no effect on what is expected later.
    pub fn creation_observed(&self, key: &Key, owner: &Uid) {
        self.shared.change(key, owner, |pending| pending.lower(1, 0));
    }

    /// The cache has shown that an object that `owner` controls is gone.
    ///
    /// Call it before the key is queued, once for each object.
    pub fn deletion_observed(&self, key: &Key, owner: &Uid) {
        self.shared.change(key, owner, |pending| pending.lower(0, 1));
    }

    /// Forgets the key: its object is gone. Guards and tokens that are still there lower nothing.
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
