//! [`DeletedUids`]: the UIDs of pods that are known to be gone.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;

/// The number of remembered UIDs: upstream's `maxUIDCacheEntries`.
const CAPACITY: usize = 500;

/// Remembers the UIDs of the last 500 deleted pods that had claims, so that their reservations are
/// removed without a request, and that no claim is created for a pod that only the cache has.
///
/// The least recently used UID is forgotten first. The controller then asks the server.
#[derive(Debug, Default)]
pub(crate) struct DeletedUids {
    uids: Mutex<Lru>,
}

/// Both maps have the same UIDs at all times.
#[derive(Debug, Default)]
struct Lru {
    last_use: HashMap<Box<str>, u64>,
    by_use: BTreeMap<u64, Box<str>>,
    uses: u64,
}

// === impl DeletedUids ===

impl DeletedUids {
    /// Remembers `uid`.
    pub(crate) fn add(&self, uid: &str) {
        let mut lru = self.uids.lock();
        if !lru.touch(uid) {
            lru.insert(uid);
        }
    }

    /// Forgets `uid`.
    pub(crate) fn remove(&self, uid: &str) {
        self.uids.lock().remove(uid);
    }

    /// Returns true if `uid` is remembered.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.uids.lock().touch(uid)
    }
}

// === impl Lru ===

impl Lru {
    /// Makes `uid` the most recently used. Returns false if it is not there.
    fn touch(&mut self, uid: &str) -> bool {
        let Some(last_use) = self.last_use.get_mut(uid) else { return false };
        self.uses += 1;
        if let Some(uid) = self.by_use.remove(last_use) {
            self.by_use.insert(self.uses, uid);
        }
        *last_use = self.uses;
        true
    }

    fn remove(&mut self, uid: &str) {
        if let Some(last_use) = self.last_use.remove(uid) {
            self.by_use.remove(&last_use);
        }
    }

    fn insert(&mut self, uid: &str) {
        if self.last_use.len() >= CAPACITY
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last_use.remove(&oldest);
        }
        self.uses += 1;
        self.last_use.insert(uid.into(), self.uses);
        self.by_use.insert(self.uses, uid.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_five_hundred_uids_are_remembered() {
        let deleted = DeletedUids::default();
        for n in 0..CAPACITY {
            deleted.add(&n.to_string());
        }
        assert!(deleted.contains("0"), "it becomes the most recently used");
        deleted.add("1");
        deleted.add("new");
        assert!(!deleted.contains("2"), "it was the least recently used");
        for uid in ["0", "1", "3", "499", "new"] {
            assert!(deleted.contains(uid), "{uid}");
        }
        deleted.remove("0");
        assert!(!deleted.contains("0"), "it was removed");
        deleted.add("0");
        let lru = deleted.uids.lock();
        assert_eq!((lru.last_use.len(), lru.by_use.len()), (CAPACITY, CAPACITY));
    }
}
