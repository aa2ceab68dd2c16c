//! A limiter that bounds the delay of another limiter.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Returns the delay of another limiter, up to a maximum.
///
/// Use it when a retry must not come later than `max`, whatever the back-off is. It does
/// not change the counts of the other limiter. This is client-go's `TypedWithMaxWaitRateLimiter`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::{MaxWaitRateLimiter, Queue, default_controller_rate_limiter};
///
/// let limiter =
///     MaxWaitRateLimiter::new(default_controller_rate_limiter(), Duration::from_secs(60));
/// let queue: Queue<String> = Queue::builder().rate_limiter(limiter).build();
/// ```
#[derive(Debug, Clone)]
pub struct MaxWaitRateLimiter<L> {
    limiter: L,
    max: Duration,
}

// === impl MaxWaitRateLimiter ===

impl<L> MaxWaitRateLimiter<L> {
    /// Creates a limiter that returns the delay of `limiter`, at most `max`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_workqueue::{ExponentialFailureRateLimiter, MaxWaitRateLimiter, RateLimiter};
    /// use tokio::time::Instant;
    ///
    /// let second = Duration::from_secs(1);
    /// let inner = ExponentialFailureRateLimiter::new(second, 1000 * second);
    /// let mut limiter = MaxWaitRateLimiter::new(inner, 3 * second);
    /// let now = Instant::now();
    /// let delays = [(); 3].map(|()| limiter.when(&"key", now));
    /// assert_eq!(delays, [second, 2 * second, 3 * second]);
    /// ```
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for MaxWaitRateLimiter<L> {
    fn when(&mut self, item: &T, now: Instant) -> Duration {
        self.limiter.when(item, now).min(self.max)
    }

    fn forget(&mut self, item: &T) {
        self.limiter.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.limiter.failures(item)
    }
}
