//! The expectations of all keys of one controller.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::time::Instant;

use crate::guard::{ExpectedCreations, ExpectedDeletions};
use crate::pending::{Outstanding, Pending};
use crate::sync::Mutex;

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
pub struct UidTrackingExpectations<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

/// What the handles, guards and tokens share.
pub(crate) struct Shared<Key, Uid> {
    entries: Mutex<Entries<Key, Uid>>,
}

struct Entries<Key, Uid> {
    by_key: HashMap<Key, Entry<Uid>>,
    /// Of the entry that was made last. Never used twice, also not for another key.
    generation: Generation,
}

struct Entry<Uid> {
    generation: Generation,
    /// Whose expectations these are; to an object with another uid they mean nothing.
    owner: Uid,
    pending: Pending<Uid>,
}

/// Tells the entries of one key apart, so that a guard lowers only its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

// === impl UidTrackingExpectations ===

impl<Key, Uid> UidTrackingExpectations<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Expects nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `count` objects are about to be created, in place of all that was noted for this key.
    ///
    /// Take a token from the guard before each request.
    pub fn expect_creations(
        &self,
        key: &Key,
        owner: &Uid,
        count: usize,
    ) -> ExpectedCreations<Key, Uid> {
        let pending = Pending::creations(count, Instant::now());
        let generation = self.set(key, owner, pending);
        ExpectedCreations::new(Arc::clone(&self.shared), key.clone(), generation, count)
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
        let pending = Pending::deletions(uids.clone(), Instant::now());
        let generation = self.set(key, owner, pending);
        ExpectedDeletions::new(Arc::clone(&self.shared), key.clone(), generation, uids)
    }

    fn set(&self, key: &Key, owner: &Uid, pending: Pending<Uid>) -> Generation {
        let (key, owner) = (key.clone(), owner.clone());
        let mut entries = self.shared.entries.lock();
        entries.generation.0 += 1;
        let generation = entries.generation;
        let replaced = entries.by_key.insert(key, Entry { generation, owner, pending });
        drop(entries);
        drop(replaced); // uids are the user's: not under the lock
        generation
    }

    /// Whether this owner may act on what the cache shows.
    ///
    /// So it is if nothing was noted for the key, or all was observed or refused, or it was noted more
    /// than five minutes ago, or for an owner with another uid.
    pub fn satisfied(&self, key: &Key, owner: &Uid) -> bool {
        let now = Instant::now();
        let entries = self.shared.entries.lock();
        let Some(entry) = entries.of(key, owner) else { return true };
        let fulfilled = entry.pending.fulfilled();
        let expired = entry.pending.expired(now);
        let outstanding = entry.pending.outstanding(now);
        drop(entries);
        if expired && !fulfilled {
            tracing::warn!(%outstanding, "the cache never showed what was expected; going on");
        }
        fulfilled || expired
    }

    /// What this owner still waits for, all read at one moment; `None` if nothing was noted.
    pub fn outstanding(&self, key: &Key, owner: &Uid) -> Option<Outstanding> {
        let now = Instant::now();
        let entries = self.shared.entries.lock();
        entries.of(key, owner).map(|entry| entry.pending.outstanding(now))
    }

    /// The cache has shown an object that `owner` controls for the first time.
    ///
    /// Call it before the key is queued. What was not expected has no effect, now or later.
    pub fn creation_observed(&self, key: &Key, owner: &Uid) {
        let mut entries = self.shared.entries.lock();
        if let Some(entry) = entries.of_mut(key, owner) {
            entry.pending.lower_creations(1);
        }
    }

    /// The cache has shown that the object `uid`, which `owner` controls, is going or gone.
    ///
    /// Call it before the key is queued, for a `deletionTimestamp` as for a removal: both together
    /// count once. A uid that was not expected has no effect.
    pub fn deletion_observed(&self, key: &Key, owner: &Uid, uid: &Uid) {
        let mut entries = self.shared.entries.lock();
        let lowered =
            entries.of_mut(key, owner).and_then(|entry| entry.pending.lower_deletion(uid));
        drop(entries);
        drop(lowered); // uids are the user's: not under the lock
    }

    /// Forgets the key: its object is gone. Guards and tokens that are still there lower nothing.
    pub fn delete(&self, key: &Key) {
        let removed = self.shared.entries.lock().by_key.remove_entry(key);
        drop(removed);
    }
}

impl<Key, Uid> Clone for UidTrackingExpectations<Key, Uid> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Key, Uid> Default for UidTrackingExpectations<Key, Uid> {
    fn default() -> Self {
        let entries = Entries { by_key: HashMap::new(), generation: Generation(0) };
        Self { shared: Arc::new(Shared { entries: Mutex::new(entries) }) }
    }
}

impl<Key, Uid> fmt::Debug for UidTrackingExpectations<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.shared.entries.lock().by_key.len();
        f.debug_struct("UidTrackingExpectations").field("keys", &keys).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<Key: Eq + Hash, Uid: Eq + Hash> Shared<Key, Uid> {
    /// These creations will never be; no effect if the entry was replaced or forgotten.
    pub(crate) fn lower_creations(&self, key: &Key, generation: Generation, count: usize) {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.made_as(key, generation) {
            entry.pending.lower_creations(count);
        }
    }

    /// These deletions will never be; no effect if the entry was replaced or forgotten.
    pub(crate) fn lower_deletions<'a>(
        &self,
        key: &Key,
        generation: Generation,
        uids: impl Iterator<Item = &'a Uid>,
    ) where
        Uid: 'a,
    {
        let mut entries = self.entries.lock();
        let lowered: Vec<Uid> = match entries.made_as(key, generation) {
            Some(entry) => uids.filter_map(|uid| entry.pending.lower_deletion(uid)).collect(),
            None => Vec::new(),
        };
        drop(entries);
        drop(lowered); // uids are the user's: not under the lock
    }
}

// === impl Entries ===

impl<Key: Eq + Hash, Uid: Eq> Entries<Key, Uid> {
    fn of(&self, key: &Key, owner: &Uid) -> Option<&Entry<Uid>> {
        self.by_key.get(key).filter(|entry| entry.owner == *owner)
    }

    fn of_mut(&mut self, key: &Key, owner: &Uid) -> Option<&mut Entry<Uid>> {
        self.by_key.get_mut(key).filter(|entry| entry.owner == *owner)
    }

    fn made_as(&mut self, key: &Key, generation: Generation) -> Option<&mut Entry<Uid>> {
        self.by_key.get_mut(key).filter(|entry| entry.generation == generation)
    }
}
