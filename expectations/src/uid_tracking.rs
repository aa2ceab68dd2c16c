//! Expectations that know which objects are to be deleted.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::time::Instant;

use crate::entries::Shared;
use crate::guard::{EntryOf, ExpectedCreations, ExpectedDeletions};
use crate::pending::{Outstanding, Pending};

/// Says for each key whether the cache has shown all that its controller has written.
///
/// This is a handle: cheap to clone, and all clones share their entries. What a round trip looks like
/// is told on the [crate's page](crate).
///
/// `Key` names the controlling object (a `ReplicaSet`), `Uid` is its uid and that of the objects that it
/// controls (pods): two objects that bear one name one after the other are told apart by it.
///
/// A key has one entry. [`expect_creations`](Self::expect_creations) and
/// [`expect_deletions`](Self::expect_deletions) replace it, whatever it was: ask
/// [`satisfied`](Self::satisfied) before deciding what to write, and have one worker per key.
///
/// A deletion that is told twice counts once. Use [`ControllerExpectations`](crate::ControllerExpectations)
/// when deletions are told once each, or creations and deletions are decided on together.
pub struct UidTrackingExpectations<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

// === impl UidTrackingExpectations ===

impl<Key, Uid> UidTrackingExpectations<Key, Uid> {
    /// Expects nothing yet. `controller` names it in the metric `controller_expectations_expired_total`: how
    /// often something was expected that the cache did not show within five minutes. (By default: no metric.)
    pub fn new(controller: impl Into<String>) -> Self {
        Self { shared: Arc::new(Shared::new(Some(controller.into()))) }
    }
}

impl<Key, Uid> UidTrackingExpectations<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Notes that `count` objects are about to be created, in place of all that was noted for this key.
    ///
    /// Take a token from the guard before each request.
    pub fn expect_creations(
        &self,
        key: &Key,
        owner: &Uid,
        count: usize,
    ) -> ExpectedCreations<Key, Uid> {
        let entry = self.set(key, owner, Pending::counts(count, 0, Instant::now()));
        ExpectedCreations::new(entry, count)
    }

    /// Notes that the objects with these uids are about to be deleted, in place of all that was noted
    /// for this key. A uid that is named twice counts once.
    ///
    /// Take a token from the guard before each request.
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

    /// The cache has shown that the object `uid`, which `owner` controls, is going or gone.
    ///
    /// Call it before the key is queued, for a `deletionTimestamp` as for a removal: both together
    /// count once. A uid that was not expected has no effect.
    pub fn deletion_observed(&self, key: &Key, owner: &Uid, uid: &Uid) {
        let mut lowered = None; // uids are the user's: not dropped under the lock
        self.shared.change(key, owner, |pending| lowered = pending.lower_deletion_of(uid));
    }

    /// Forgets the key: its object is gone. Guards and tokens that are still there lower nothing.
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
