//! Lets so many attempts through per second, whatever the item.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Lets `burst` attempts through at once, then so many per second, whatever the item.
///
/// Every call *reserves*: it gets a slot of its own, and the next call the slot after that, so that
/// many calls at the same instant are spread out and not refused together. (golang.org/x/time/rate's
/// `Reserve`; a limiter that only admits or refuses cannot stand in for it.)
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
    /// The time that one attempt takes up.
    interval: Duration,
    /// The time that a full bucket is worth.
    burst: Duration,
    /// The first call; times are durations since then, which saturate where instants would panic.
    start: Option<Instant>,
    /// When everything reserved so far is paid for. The bucket is full from then on.
    paid: Duration,
}

// === impl BucketRateLimiter ===

impl BucketRateLimiter {
    /// Lets `burst` attempts through at once and `per_second` on average.
    ///
    /// Without a burst nothing comes through, ever, unless the rate is infinite: an attempt has to fit
    /// into the bucket.
    ///
    /// # Panics
    ///
    /// If `per_second` is not a number above zero.
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(per_second > 0.0, "a bucket needs a rate above zero, not {per_second}");
        let interval = Duration::try_from_secs_f64(per_second.recip()).unwrap_or(Duration::MAX);
        let burst = interval.saturating_mul(burst);
        Self { interval, burst, start: None, paid: Duration::ZERO }
    }
}

impl<T> RateLimiter<T> for BucketRateLimiter {
    fn when(&mut self, _item: &T, now: Instant) -> Duration {
        if self.burst.is_zero() && !self.interval.is_zero() {
            return Duration::MAX;
        }
        let start = *self.start.get_or_insert(now);
        let now = now.saturating_duration_since(start);
        self.paid = self.paid.max(now).saturating_add(self.interval);
        self.paid.saturating_sub(now).saturating_sub(self.burst)
    }

    /// Nothing: the bucket knows no items.
    fn forget(&mut self, _item: &T) {}

    /// Always 0: the bucket knows no items.
    fn failures(&self, _item: &T) -> u32 {
        0
    }
}
