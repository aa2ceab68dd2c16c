//! A limiter that returns the longest delay of several limiters.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Returns the longest delay of several limiters. Each attempt counts in all of them.
///
/// Use it to limit each item and all items together, as
/// [`default_controller_rate_limiter`](super::default_controller_rate_limiter) does. A bucket
/// inside it spends a slot for each attempt, also when another limiter's delay is longer. This is
/// client-go's `TypedMaxOfRateLimiter`.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::{
///     BucketRateLimiter, ExponentialFailureRateLimiter, MaxOfRateLimiter, Queue, RateLimiter,
/// };
///
/// let per_item: Box<dyn RateLimiter<String>> = Box::new(ExponentialFailureRateLimiter::default());
/// let for_all: Box<dyn RateLimiter<String>> = Box::new(BucketRateLimiter::new(10.0, 100));
/// let limiter = MaxOfRateLimiter::new([per_item, for_all]);
/// let queue: Queue<String> = Queue::builder().rate_limiter(limiter).build();
/// ```
pub struct MaxOfRateLimiter<T> {
    /// Every call goes to all of them; the order has no effect on the result.
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

// === impl MaxOfRateLimiter ===

impl<T> MaxOfRateLimiter<T> {
    /// Combines these limiters. Without a limiter the delay is always 0.
    pub fn new(limiters: impl IntoIterator<Item = Box<dyn RateLimiter<T>>>) -> Self {
        Self { limiters: limiters.into_iter().collect() }
    }
}

impl<T: 'static> RateLimiter<T> for MaxOfRateLimiter<T> {
    fn when(&mut self, item: &T, now: Instant) -> Duration {
        let delays = self.limiters.iter_mut().map(|limiter| limiter.when(item, now));
        delays.max().unwrap_or_default()
    }

    fn forget(&mut self, item: &T) {
        for limiter in &mut self.limiters {
            limiter.forget(item);
        }
    }

    fn failures(&self, item: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.failures(item)).max().unwrap_or_default()
    }
}

impl<T> fmt::Debug for MaxOfRateLimiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOfRateLimiter")
            .field("limiters", &self.limiters.len())
            .finish_non_exhaustive()
    }
}
