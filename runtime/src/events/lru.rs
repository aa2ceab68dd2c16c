//! A map with a capacity that evicts the least recently used entry.
//!
//! Keys are texts of an event, some hundred bytes: each is stored once, also if several maps have
//! it, and hashed fast.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// `entries` and `order` have the same keys at all times. A use costs one hash look-up and two
/// steps in the tree of `order`: O(log n).
#[derive(Debug)]
pub(super) struct Lru<Key, Value> {
    capacity: usize,
    entries: HashMap<Arc<Key>, Entry<Value>, RandomState>,
    /// The key of each entry by its last use; the first is evicted first.
    order: BTreeMap<u64, Arc<Key>>,
    /// The number of the last use.
    uses: u64,
}

/// A value with the number of its last use, which is its key in `order`.
#[derive(Debug)]
struct Entry<Value> {
    used: u64,
    value: Value,
}

// === impl Lru ===

impl<Key: Eq + Hash, Value> Lru<Key, Value> {
    /// Creates an empty map. It allocates when entries are added, not up front.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::default(), order: BTreeMap::new(), uses: 0 }
    }

    /// Returns the value of `key` and marks it as used. Inserts the value of `new` if there is
    /// none.
    ///
    /// `new` is called only if there is no entry, after the eviction of the oldest one.
    pub(super) fn get_or_insert_with(
        &mut self,
        key: impl Into<Arc<Key>>,
        new: impl FnOnce() -> Value,
    ) -> &mut Value {
        let key = key.into();
        self.uses += 1;
        let used = self.uses;
        let last_use = self.entries.get(&*key).map(|entry| entry.used);
        let known = last_use.and_then(|last_use| self.order.remove(&last_use));
        let key = if let Some(key) = known {
            key
        } else {
            self.make_room();
            key
        };
        self.order.insert(used, Arc::clone(&key));
        let entry = self.entries.entry(key).or_insert_with(|| Entry { used, value: new() });
        entry.used = used;
        &mut entry.value
    }

    /// Evicts the least recently used entry if there is no room for another one.
    fn make_room(&mut self) {
        if self.is_full()
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }

    /// Returns the value of `key`, and marks it as used.
    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Value> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        let key = self.order.remove(&entry.used)?;
        self.order.insert(self.uses, key);
        entry.used = self.uses;
        Some(&mut entry.value)
    }

    /// Returns the least recently used value.
    pub(super) fn oldest(&self) -> Option<&Value> {
        let (_, key) = self.order.first_key_value()?;
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Removes the least recently used entry, and returns its value.
    pub(super) fn pop_oldest(&mut self) -> Option<Value> {
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key).map(|entry| entry.value)
    }

    /// Returns all values, in no order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.values_mut().map(|entry| &mut entry.value)
    }

    /// Returns true if another entry evicts the least recently used one.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// Returns true if there is no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_entry_is_evicted() {
        let mut lru = Lru::<&str, _>::new(2);
        *lru.get_or_insert_with("a", || 1) += 10;
        lru.get_or_insert_with("b", || 2);
        lru.get_or_insert_with("a", || 0); // `b` is now the least recently used.
        lru.get_or_insert_with("c", || 3);
        assert_eq!(*lru.get_or_insert_with("a", || 0), 11);
        assert_eq!(*lru.get_or_insert_with("b", || 0), 0, "evicted");
        assert_eq!((lru.entries.len(), lru.order.len()), (2, 2));
    }

    #[test]
    fn oldest_entry_is_the_least_recently_used() {
        let mut lru = Lru::<&str, _>::new(2);
        lru.get_or_insert_with("a", || 1);
        lru.get_or_insert_with("b", || 2);
        assert!(lru.is_full());
        *lru.get_mut(&"a").unwrap() = 3;
        assert_eq!(lru.get_mut(&"c"), None);
        assert_eq!(lru.oldest(), Some(&2));
        assert_eq!(
            (lru.pop_oldest(), lru.pop_oldest(), lru.pop_oldest()),
            (Some(2), Some(3), None)
        );
        assert!(lru.is_empty());
    }
}
