//! Doubles an item's delay with each failure.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use super::failures::Failures;

/// Doubles an item's delay with each of its failures, up to a maximum: `base`, `2·base`, `4·base`, …
///
/// The count is kept until [`forget`](RateLimiter::forget): forget the items that succeed.
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
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

// === impl ExponentialFailureRateLimiter ===

impl<T> ExponentialFailureRateLimiter<T> {
    /// Waits `base` after the first failure and twice as long after each further one, never longer
    /// than `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }

    /// `base · 2^failures`, at most `max`.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let base = self.base.as_nanos();
        // Shifting by no more than the leading zeros loses no bit; by more, it is beyond any `max`,
        // unless there is nothing to shift.
        if base != 0 && failures > base.leading_zeros() {
            return self.max;
        }
        let nanos = base.checked_shl(failures).unwrap_or(0);
        if nanos >= self.max.as_nanos() { self.max } else { duration_from_nanos(nanos) }
    }
}

/// 5 ms, doubled up to 1,000 s: the per-item half of what Kubernetes' own controllers use.
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

/// A duration that is known to be shorter than another `Duration`, from its nanoseconds.
fn duration_from_nanos(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanos / PER_SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % PER_SECOND).unwrap_or(0);
    Duration::new(seconds, rest)
}
