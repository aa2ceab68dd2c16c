//! A few quick retries, then slow ones.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use super::failures::Failures;

/// Tries an item quickly a few times, then slowly for as long as it fails.
///
/// The count is kept until [`forget`](RateLimiter::forget): forget the items that succeed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::{FastSlowRateLimiter, RateLimiter};
/// use tokio::time::Instant;
///
/// let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
/// let mut limiter = FastSlowRateLimiter::new(fast, slow, 2);
/// let now = Instant::now();
/// let delays = [(); 4].map(|()| limiter.when(&"key", now));
/// assert_eq!(delays, [fast, fast, slow, slow]);
/// ```
#[derive(Debug, Clone)]
pub struct FastSlowRateLimiter<T> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Failures<T>,
}

// === impl FastSlowRateLimiter ===

impl<T> FastSlowRateLimiter<T> {
    /// Waits `fast` after each of an item's first `fast_attempts` failures, and `slow` after the others.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: Failures::new() }
    }
}

impl<T> RateLimiter<T> for FastSlowRateLimiter<T>
where
    T: Eq + Hash + Clone + Send + 'static,
{
    fn when(&mut self, item: &T, _now: Instant) -> Duration {
        if self.failures.count(item) < self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&mut self, item: &T) {
        self.failures.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.failures.get(item)
    }
}
