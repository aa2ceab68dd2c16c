//! The expectations of all keys of one controller, behind one lock.

use std::collections::HashMap;
use std::hash::Hash;

use metrics::Counter;
use tokio::time::Instant;

use crate::pending::{Outstanding, Pending, Verdict};
use crate::sync::Mutex;

/// What the handles, guards and tokens share.
pub(crate) struct Shared<Key, Uid> {
    entries: Mutex<Entries<Key, Uid>>,
    /// How many entries were acted upon although the cache never showed what they expected.
    expired: Counter,
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

// === impl Shared ===

impl<Key, Uid> Shared<Key, Uid> {
    /// Without a name nothing is counted.
    pub(crate) fn new(controller: Option<String>) -> Self {
        let entries = Entries { by_key: HashMap::new(), generation: Generation(0) };
        let expired = match controller {
            Some(name) => {
                metrics::counter!("controller_expectations_expired_total", "controller" => name)
            }
            None => Counter::noop(),
        };
        Self { entries: Mutex::new(entries), expired }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().by_key.len()
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Shared<Key, Uid> {
    /// Puts `pending` in the place of what there was.
    pub(crate) fn set(&self, key: Key, owner: Uid, pending: Pending<Uid>) -> Generation {
        let mut entries = self.entries.lock();
        entries.generation.0 += 1;
        let generation = entries.generation;
        // Not `insert` alone: that drops a key that is known.
        let replaced = entries.by_key.remove_entry(&key);
        entries.by_key.insert(key, Entry { generation, owner, pending });
        drop(entries);
        if replaced.is_some_and(|(_, entry)| entry.pending.awaits_uids()) {
            tracing::error!("deletions that the cache has yet to show are not awaited any longer");
        }
        generation
    }

    /// Changes the entry of this owner and says which it was; `None` if there is none.
    pub(crate) fn change(
        &self,
        key: &Key,
        owner: &Uid,
        change: impl FnOnce(&mut Pending<Uid>),
    ) -> Option<Generation> {
        let mut entries = self.entries.lock();
        let entry = entries.of_mut(key, owner)?;
        change(&mut entry.pending);
        Some(entry.generation)
    }

    /// Changes the entry that was made as `generation`, unless it was replaced or forgotten.
    pub(crate) fn change_own(
        &self,
        key: &Key,
        generation: Generation,
        change: impl FnOnce(&mut Pending<Uid>),
    ) {
        let mut entries = self.entries.lock();
        let entry = entries.by_key.get_mut(key);
        if let Some(entry) = entry.filter(|entry| entry.generation == generation) {
            change(&mut entry.pending);
        }
    }

    pub(crate) fn satisfied(&self, key: &Key, owner: &Uid) -> bool {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let Some(entry) = entries.of_mut(key, owner) else { return true };
        let verdict = entry.pending.verdict(now);
        let outstanding = entry.pending.outstanding(now);
        drop(entries);
        if verdict == (Verdict::Expired { first: true }) {
            self.expired.increment(1);
            tracing::warn!(%outstanding, "the cache never showed what was expected; going on");
        }
        verdict != Verdict::Waiting
    }

    pub(crate) fn outstanding(&self, key: &Key, owner: &Uid) -> Option<Outstanding> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        entries.of_mut(key, owner).map(|entry| entry.pending.outstanding(now))
    }

    pub(crate) fn forget(&self, key: &Key) {
        let removed = self.entries.lock().by_key.remove_entry(key);
        drop(removed);
    }
}

// === impl Entries ===

impl<Key: Eq + Hash, Uid: Eq> Entries<Key, Uid> {
    fn of_mut(&mut self, key: &Key, owner: &Uid) -> Option<&mut Entry<Uid>> {
        self.by_key.get_mut(key).filter(|entry| entry.owner == *owner)
    }
}
