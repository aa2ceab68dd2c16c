//! How often each item has failed. Pure.

use std::hash::Hash;

use hashbrown::HashMap;

/// Counts per item, from one up; they stop at the largest number instead of starting anew.
#[derive(Debug, Clone)]
pub(super) struct Failures<T> {
    /// Never zero.
    counts: HashMap<T, u32, foldhash::fast::RandomState>,
}

/// Memory for so many items is kept when the last one is forgotten.
const KEPT: usize = 1024;

// === impl Failures ===

impl<T> Failures<T> {
    pub(super) fn new() -> Self {
        Self { counts: HashMap::default() }
    }
}

impl<T: Eq + Hash> Failures<T> {
    pub(super) fn get(&self, item: &T) -> u32 {
        self.counts.get(item).copied().unwrap_or(0)
    }

    pub(super) fn forget(&mut self, item: &T) {
        self.counts.remove(item);
        if self.counts.is_empty() && self.counts.capacity() > 2 * KEPT {
            self.counts.shrink_to(KEPT);
        }
    }
}

impl<T: Eq + Hash + Clone> Failures<T> {
    /// Counts one more; returns how many there were before.
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
        assert_eq!(failures.count(&'a'), u32::MAX, "and not 0");
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
