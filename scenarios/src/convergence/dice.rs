//! Repeatable randomness.

use std::time::Duration;

/// A small seeded source (splitmix64).
#[derive(Debug)]
pub(super) struct Dice(u64);

// === impl Dice ===

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent source: later calls on this one do not affect it.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn one_in(&mut self, end: u64) -> bool {
        self.below(end) == 0
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let length = u64::try_from(from.len()).expect("there are few");
        let place = usize::try_from(self.below(length)).expect("less than the length");
        from[place].clone()
    }

    /// Returns a duration of up to `end` milliseconds.
    pub(super) fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}
