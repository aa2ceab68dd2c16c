//! Randomness with a seed.
//!
//! A controller needs chance in three places: the jitter of a back-off, generated names, and faults
//! that a test injects. A test that fails must fail again: it passes the seed that the failed run
//! printed. Each part of a program has a source of its own, so that one more draw in one part does
//! not change the sequence of another.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::uuid::Uuid;

/// A random source: seeded by the operating system, or by a seed that makes a run repeatable.
///
/// It is for jitter, names and tests. It is not for secrets.
///
/// A draw takes a few nanoseconds, without a lock and without a system call. A source is not shared
/// between tasks: give each its own with [`fork`](Self::fork). A clone continues with the same
/// sequence as its original; use `fork` for a different one.
///
/// # Examples
///
/// ```
/// use homeostat_core::Random;
///
/// let (mut one, mut other) = (Random::new(Some(7)), Random::new(Some(7)));
/// assert_eq!(one.below(1_000), other.below(1_000));
/// ```
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

// === impl Random ===

impl Random {
    /// Returns a source with the seed `seed`; with `None`, one that the operating system seeds.
    ///
    /// Without a seed, two sources of one process differ, and so do those of two processes that
    /// start at the same time.
    pub fn new(seed: Option<u64>) -> Self {
        // fastrand's own default mixes a clock and a thread number: processes that start together
        // would be alike. `RandomState` takes its keys from the operating system.
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a source with a sequence of its own, for a part of the program that draws in an
    /// order of its own.
    ///
    /// It takes one draw from this source.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::Random;
    ///
    /// let mut random = Random::new(Some(7));
    /// let mut names = random.fork();
    /// names.bits(); // Does not change what `random` draws next.
    /// let next = random.bits();
    ///
    /// let mut again = Random::new(Some(7));
    /// let _names = again.fork();
    /// assert_eq!(again.bits(), next);
    /// ```
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number in `0..end`, or 0 if `end` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::Random;
    ///
    /// let mut random = Random::new(None);
    /// assert!((1..=6).contains(&(random.below(6) + 1)));
    /// assert_eq!(random.below(0), 0);
    /// ```
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.0.u64(..end) }
    }

    /// Returns a number in `[0, 1)`.
    pub fn fraction(&mut self) -> f64 {
        self.0.f64()
    }

    /// Returns a random UUID of version 4.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::Random;
    ///
    /// let mut random = Random::new(None);
    /// assert_ne!(random.uuid(), random.uuid());
    /// ```
    pub fn uuid(&mut self) -> Uuid {
        let (high, low) = (self.bits(), self.bits());
        Uuid::from_random(u128::from(high) << 64 | u128::from(low))
    }

    /// Returns a duration in `[low, high)`, or `low` if the range is empty.
    ///
    /// Use it for jitter. client-go's `wait.Jitter(period, factor)` is `between(period,
    /// period.mul_f64(1.0 + factor))`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_core::Random;
    ///
    /// let period = Duration::from_secs(10);
    /// let pause = Random::new(None).between(period, period * 2);
    /// assert!(pause >= period && pause < period * 2);
    /// ```
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let range = high.saturating_sub(low);
        // The product is rounded, so it may be the complete range.
        let last = range.saturating_sub(Duration::from_nanos(1));
        low.saturating_add(range.mul_f64(self.fraction()).min(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let draw = |seed| {
            let mut random = Random::new(Some(seed));
            let mut fork = random.fork();
            [random.bits(), fork.bits(), random.below(10)]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn operating_system_gives_every_source_another_seed() {
        assert_ne!(Random::new(None).bits(), Random::new(None).bits());
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(Some(0));
        assert_eq!(random.below(0), 0);
        let (low, high) = (Duration::from_secs(1), Duration::from_secs(2));
        for _ in 0..1_000 {
            assert!(random.below(3) < 3);
            assert!((0.0..1.0).contains(&random.fraction()));
            assert!((low..high).contains(&random.between(low, high)));
            assert_eq!(random.between(high, low), high);
            let nanosecond = Duration::from_nanos(1);
            assert_eq!(random.between(Duration::ZERO, nanosecond), Duration::ZERO);
        }
    }
}
