//! The expectations of all keys of one controller, behind one lock.
//!
//! Each step takes the lock once. Keys and uids are types of the author, whose `Drop` may call back
//! into these expectations; so a replaced or removed entry leaves the lock as a value and is
//! dropped after the release. Only `Eq` and `Hash` of the author run under the lock.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;
use homeostat_core::metrics::record;
use metrics::Counter;
use tokio::time::Instant;

use crate::pending::{Outstanding, Pending, Verdict};
use crate::sync::Mutex;

/// The state that handles, guards and tokens share.
pub(crate) struct Shared<Key, Uid> {
    /// The only lock of this type. No other lock is taken while it is held.
    entries: Mutex<Entries<Key, Uid>>,
    /// Counts the entries that expired before the cache showed their writes.
    expired: Counter,
}

struct Entries<Key, Uid> {
    /// At most one entry per key. `set` replaces it, `forget` removes it; an entry that is
    /// fulfilled or expired stays.
    by_key: HashMap<Key, Entry<Uid>, RandomState>,
    /// The generation of the newest entry. Each generation is unique across all keys.
    generation: Generation,
}

struct Entry<Uid> {
    generation: Generation,
    /// The uid of the owner. The entry does not apply to an object with another uid.
    owner: Uid,
    pending: Pending<Uid>,
}

/// Distinguishes successive entries of one key, so that a guard lowers only its own entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

// === impl Shared ===

impl<Key, Uid> Shared<Key, Uid> {
    /// Creates an empty set of entries. Without a name there is no metric.
    pub(crate) fn new(controller: Option<String>) -> Self {
        let entries = Entries { by_key: HashMap::default(), generation: Generation(0) };
        let expired = match controller {
            Some(name) => {
                let mut counter = Counter::noop();
                record(|| {
                    counter = metrics::counter!(
                        "controller_expectations_expired_total",
                        "controller" => name
                    );
                });
                counter
            }
            None => Counter::noop(),
        };
        Self { entries: Mutex::new(entries), expired }
    }

    /// Returns the number of keys that have an entry, fulfilled or not.
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().by_key.len()
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Shared<Key, Uid> {
    /// Replaces the entry of `key`.
    ///
    /// Returns the generation of the new entry. Logs an error if the replaced entry still awaits
    /// deletions by uid: the controller has decided without checking `satisfied`.
    pub(crate) fn set(&self, key: Key, owner: Uid, pending: Pending<Uid>) -> Generation {
        let mut entries = self.entries.lock();
        entries.generation.0 += 1;
        let generation = entries.generation;
        // Not `insert` alone: it would drop `key` under the lock when the map has an equal key.
        let replaced = entries.by_key.remove_entry(&key);
        entries.by_key.insert(key, Entry { generation, owner, pending });
        drop(entries);
        if replaced.is_some_and(|(_, entry)| entry.pending.awaits_uids()) {
            tracing::error!(
                "expected deletions replaced before the cache showed them, forgetting them"
            );
        }
        generation
    }

    /// Changes the entry of this owner and returns its generation; `None` if there is no entry.
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

    /// Changes the entry of this `generation`, unless it was replaced or removed.
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

    /// Returns true unless the entry of this owner is neither fulfilled nor expired. Counts and
    /// logs the first expiry of an entry, after the release of the lock.
    pub(crate) fn satisfied(&self, key: &Key, owner: &Uid) -> bool {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let Some(entry) = entries.of_mut(key, owner) else { return true };
        let verdict = entry.pending.verdict(now);
        let outstanding = entry.pending.outstanding(now);
        drop(entries);
        if verdict == (Verdict::Expired { first: true }) {
            record(|| self.expired.increment(1));
            tracing::warn!(
                %outstanding,
                "expectations expired before the cache showed them, going on"
            );
        }
        verdict != Verdict::Waiting
    }

    pub(crate) fn outstanding(&self, key: &Key, owner: &Uid) -> Option<Outstanding> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        entries.of_mut(key, owner).map(|entry| entry.pending.outstanding(now))
    }

    /// Removes the entry of `key`, of any owner.
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
