//! A limiter with a few fast retries and slow retries after them.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use super::failures::Failures;

/// Returns a short delay for an item's first failures and a long delay for all further ones.
///
/// The count grows until [`forget`](RateLimiter::forget): call it for each item that succeeds.
///
/// Use it when most failures pass within a few attempts (a conflict) and the others need a change
/// of the object. This is client-go's `TypedItemFastSlowRateLimiter`. It keeps a clone of each item
/// that has failed and was not forgotten.
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
    /// The number of failures of an item with the delay `fast`; with 0 all delays are `slow`.
    fast_attempts: u32,
    failures: Failures<T>,
}

// === impl FastSlowRateLimiter ===

impl<T> FastSlowRateLimiter<T> {
    /// Creates a limiter that returns `fast` for the first `fast_attempts` failures of an item and
    /// `slow` for the others.
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
