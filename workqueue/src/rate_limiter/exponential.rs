//! A limiter that doubles an item's delay with each failure.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use super::failures::Failures;

/// Doubles an item's delay with each failure, up to a maximum: `base`, `2·base`, `4·base`, ….
///
/// The count grows until [`forget`](RateLimiter::forget): call it for each item that succeeds.
///
/// Use it for items that fail independently of each other. Use
/// [`FastSlowRateLimiter`](super::FastSlowRateLimiter) when a failure either passes at once or
/// lasts. There is no jitter, as in client-go's `TypedItemExponentialFailureRateLimiter`. It keeps
/// a clone of each item that has failed and was not forgotten.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::{ExponentialFailureRateLimiter, RateLimiter};
/// use tokio::time::Instant;
///
/// let mut limiter =
///     ExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
/// let now = Instant::now();
/// assert_eq!(limiter.when(&"key", now), Duration::from_millis(5));
/// assert_eq!(limiter.when(&"key", now), Duration::from_millis(10));
/// limiter.forget(&"key");
/// assert_eq!(limiter.when(&"key", now), Duration::from_millis(5));
/// ```
#[derive(Debug, Clone)]
pub struct ExponentialFailureRateLimiter<T> {
    /// The delay after the first failure. With 0 every delay is 0.
    base: Duration,
    /// The longest delay. It applies also if it is shorter than `base`.
    max: Duration,
    failures: Failures<T>,
}

// === impl ExponentialFailureRateLimiter ===

impl<T> ExponentialFailureRateLimiter<T> {
    /// Creates a limiter whose delay is `base` after the first failure and doubles with each
    /// further one, up to `max`.
    ///
    /// Any two durations are valid; a delay that overflows is `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }

    /// Returns `base · 2^failures`, at most `max`.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let base = self.base.as_nanos();
        // A shift by at most the number of leading zeros loses no bit. A larger shift exceeds any
        // `max`, unless `base` is 0.
        if base != 0 && failures > base.leading_zeros() {
            return self.max;
        }
        let nanos = base.checked_shl(failures).unwrap_or(0);
        if nanos >= self.max.as_nanos() { self.max } else { duration_from_nanos(nanos) }
    }
}

/// Starts at 5 ms and doubles up to 1,000 s: the per-item part of the limiter of Kubernetes' own
/// controllers.
impl<T> Default for ExponentialFailureRateLimiter<T> {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<T> RateLimiter<T> for ExponentialFailureRateLimiter<T>
where
    T: Eq + Hash + Clone + Send + 'static,
{
    fn when(&mut self, item: &T, _now: Instant) -> Duration {
        let before = self.failures.count(item);
        self.delay(before)
    }

    fn forget(&mut self, item: &T) {
        self.failures.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.failures.get(item)
    }
}

/// Converts nanoseconds, which must be fewer than those of `Duration::MAX`, to a duration.
pub(super) fn duration_from_nanos(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanos / PER_SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % PER_SECOND).unwrap_or(0);
    Duration::new(seconds, rest)
}
