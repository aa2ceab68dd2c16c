//! Failure counts per item. Pure.
//!
//! The map keeps a clone of each item that has failed since it was last forgotten. Without `forget`
//! it grows by one entry per distinct item, as in client-go. Its memory is released when the last
//! item is forgotten.

use std::hash::Hash;

use hashbrown::HashMap;

/// Failure counts per item. They saturate at the largest number.
#[derive(Debug, Clone)]
pub(super) struct Failures<T> {
    /// The counts, each at least 1.
    counts: HashMap<T, u32, foldhash::fast::RandomState>,
    /// The largest number of items since the map was last empty. The map's own `capacity` is of no
    /// use here: it leaves out the places of removed items.
    most: usize,
}

/// The largest number of items whose memory is kept when the last item is forgotten.
const KEPT: usize = 1024;

// === impl Failures ===

impl<T> Failures<T> {
    pub(super) fn new() -> Self {
        Self { counts: HashMap::default(), most: 0 }
    }
}

impl<T: Eq + Hash> Failures<T> {
    /// Returns the number of failures of the item; 0 if it is unknown.
    pub(super) fn get(&self, item: &T) -> u32 {
        self.counts.get(item).copied().unwrap_or(0)
    }

    /// Removes the item. When the last item is removed, the memory of a burst is released.
    pub(super) fn forget(&mut self, item: &T) {
        self.counts.remove(item);
        if self.counts.is_empty() && std::mem::take(&mut self.most) > KEPT {
            self.counts = HashMap::default();
        }
    }
}

impl<T: Eq + Hash + Clone> Failures<T> {
    /// Counts a failure. Returns the number of failures before it.
    ///
    /// Clones the item at its first failure only.
    pub(super) fn count(&mut self, item: &T) -> u32 {
        let Some(count) = self.counts.get_mut(item) else {
            self.counts.insert(item.clone(), 1);
            self.most = self.most.max(self.counts.len());
            return 0;
        };
        let before = *count;
        *count = before.saturating_add(1);
        before
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{Hash, Hasher};

    use super::{Failures, KEPT};

    #[test]
    fn counts_stop_at_the_largest_number() {
        let mut failures = Failures::new();
        failures.counts.insert('a', u32::MAX - 1);
        assert_eq!(failures.count(&'a'), u32::MAX - 1);
        assert_eq!(failures.count(&'a'), u32::MAX);
        assert_eq!(failures.count(&'a'), u32::MAX, "saturates, does not wrap to 0");
        assert_eq!((failures.get(&'a'), failures.get(&'b')), (u32::MAX, 0));
        failures.forget(&'a');
        assert_eq!(failures.count(&'a'), 0);
    }

    /// An item whose hash is that of all others, so that each removal leaves a mark in the table.
    #[derive(Clone, PartialEq, Eq)]
    struct Alike(usize);

    impl Hash for Alike {
        fn hash<H: Hasher>(&self, _: &mut H) {}
    }

    #[test]
    fn memory_is_given_back_when_the_last_item_is_forgotten() {
        // As many as a table has room for: the marks of removed items then count as room.
        let number = 7 * KEPT / 2;
        let mut failures = Failures::new();
        for item in 0..number {
            failures.count(&Alike(item));
        }
        let full = failures.counts.allocation_size();
        for item in 0..number {
            assert_eq!(failures.counts.allocation_size(), full);
            failures.forget(&Alike(item));
        }
        assert_eq!(failures.counts.allocation_size(), 0);
    }

    #[test]
    fn memory_of_few_items_is_kept() {
        let mut failures = Failures::new();
        for item in 0..KEPT {
            failures.count(&item);
        }
        let full = failures.counts.allocation_size();
        (0..KEPT).for_each(|item| failures.forget(&item));
        assert_eq!(failures.counts.allocation_size(), full);
    }
}
