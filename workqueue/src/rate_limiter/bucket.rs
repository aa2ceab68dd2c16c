//! A token bucket, which limits the attempts per second of all items together.
//!
//! The bucket stores no tokens and needs no timer: it stores the time at which it is full again.
//! Each attempt moves that time by one interval, and the delay is the part of it that exceeds the
//! burst.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use super::exponential::duration_from_nanos;

/// Admits `burst` attempts at once and then `per_second` attempts per second, for all items
/// together.
///
/// Each call reserves its own slot, and the next call gets the slot after that: many calls at the
/// same instant are spread out instead of rejected together. (This is `Reserve` of
/// golang.org/x/time/rate; a limiter that only admits or rejects cannot replace it.)
///
/// Use it together with a per-item limiter in a [`MaxOfRateLimiter`](super::MaxOfRateLimiter):
/// alone it does not slow down an item that always fails. It takes constant memory for any number
/// of items.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::{BucketRateLimiter, RateLimiter};
/// use tokio::time::Instant;
///
/// let mut limiter = BucketRateLimiter::new(10.0, 2);
/// let now = Instant::now();
/// assert_eq!(limiter.when(&"a", now), Duration::ZERO);
/// assert_eq!(limiter.when(&"b", now), Duration::ZERO);
/// assert_eq!(limiter.when(&"c", now), Duration::from_millis(100));
/// assert_eq!(limiter.when(&"d", now), Duration::from_millis(200));
/// ```
#[derive(Debug, Clone)]
pub struct BucketRateLimiter {
    /// The time between two attempts in nanoseconds: the inverse of the rate.
    interval: u128,
    /// The time in which an empty bucket fills: `interval` times the burst. It exceeds every
    /// duration if the rate is tiny.
    burst: u128,
    /// The time of the first call. Times are nanoseconds since then: they saturate where instants
    /// panic.
    start: Option<Instant>,
    /// The time at which the bucket is full again, if no further attempt comes.
    paid: u128,
}

// === impl BucketRateLimiter ===

impl BucketRateLimiter {
    /// Creates a bucket that admits `burst` attempts at once and `per_second` on average.
    ///
    /// With a burst of 0 the delay is always [`Duration::MAX`], unless the rate is infinite: an
    /// attempt has to fit into the bucket.
    ///
    /// # Panics
    ///
    /// If `per_second` is zero, negative or NaN.
    ///
    /// # Examples
    ///
    /// An idle bucket fills up again:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_workqueue::{BucketRateLimiter, RateLimiter};
    /// use tokio::time::Instant;
    ///
    /// let mut limiter = BucketRateLimiter::new(1.0, 1);
    /// let now = Instant::now();
    /// assert_eq!(limiter.when(&"a", now), Duration::ZERO);
    /// assert_eq!(limiter.when(&"b", now), Duration::from_secs(1));
    /// let later = now + Duration::from_secs(60);
    /// assert_eq!(limiter.when(&"c", later), Duration::ZERO);
    /// ```
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(per_second > 0.0, "a bucket needs a rate above zero, not {per_second}");
        let interval = Duration::try_from_secs_f64(per_second.recip()).unwrap_or(Duration::MAX);
        let interval = interval.as_nanos();
        Self { interval, burst: interval * u128::from(burst), start: None, paid: 0 }
    }
}

impl<T> RateLimiter<T> for BucketRateLimiter {
    fn when(&mut self, _item: &T, now: Instant) -> Duration {
        if self.burst == 0 && self.interval != 0 {
            return Duration::MAX;
        }
        let start = *self.start.get_or_insert(now);
        let now = now.saturating_duration_since(start).as_nanos();
        self.paid = self.paid.max(now).saturating_add(self.interval);
        let delay = self.paid.saturating_sub(now).saturating_sub(self.burst);
        if delay >= Duration::MAX.as_nanos() { Duration::MAX } else { duration_from_nanos(delay) }
    }

    /// Does nothing: the bucket does not count per item.
    fn forget(&mut self, _item: &T) {}

    /// Returns 0: the bucket does not count per item.
    fn failures(&self, _item: &T) -> u32 {
        0
    }
}
