//! A map that forgets what was used least recently.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Lru<Key, Value> {
    capacity: usize,
    entries: HashMap<Key, Entry<Value>>,
    /// Every entry's key by its last use; the first goes first.
    order: BTreeMap<u64, Key>,
    /// The last use that was given out.
    uses: u64,
}

#[derive(Debug)]
struct Entry<Value> {
    used: u64,
    value: Value,
}

// === impl Lru ===

impl<Key: Clone + Eq + Hash, Value> Lru<Key, Value> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// The value of `key`, made by `new` if there is none. This is a use.
    pub(super) fn get_or_insert_with(
        &mut self,
        key: Key,
        new: impl FnOnce() -> Value,
    ) -> &mut Value {
        self.uses += 1;
        let used = self.uses;
        if let Some(entry) = self.entries.get(&key) {
            self.order.remove(&entry.used);
        } else if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.order.insert(used, key.clone());
        let entry = self.entries.entry(key).or_insert_with(|| Entry { used, value: new() });
        entry.used = used;
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_least_recently_goes() {
        let mut lru = Lru::new(2);
        *lru.get_or_insert_with("a", || 1) += 10;
        lru.get_or_insert_with("b", || 2);
        lru.get_or_insert_with("a", || 0); // Now `b` is the oldest.
        lru.get_or_insert_with("c", || 3);
        assert_eq!(*lru.get_or_insert_with("a", || 0), 11);
        assert_eq!(*lru.get_or_insert_with("b", || 0), 0, "forgotten");
        assert_eq!((lru.entries.len(), lru.order.len()), (2, 2));
    }
}
