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
}

/// The number of items whose memory is kept when the last item is forgotten.
const KEPT: usize = 1024;

// === impl Failures ===

impl<T> Failures<T> {
    pub(super) fn new() -> Self {
        Self { counts: HashMap::default() }
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
        if self.counts.is_empty() && self.counts.capacity() > 2 * KEPT {
            self.counts.shrink_to(KEPT);
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
            return 0;
        };
        let before = *count;
        *count = before.saturating_add(1);
        before
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn memory_is_given_back_when_the_last_item_is_forgotten() {
        let mut failures = Failures::new();
        for item in 0..100 * KEPT {
            failures.count(&item);
        }
        for item in 0..100 * KEPT {
            assert!(failures.counts.capacity() > 50 * KEPT);
            failures.forget(&item);
        }
        assert!(failures.counts.capacity() <= 2 * KEPT, "{}", failures.counts.capacity());
    }
}
