//! A limiter that never asks for more than so much.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Waits as long as another limiter asks, but never longer than a maximum.
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
    /// Bounds what this limiter asks for.
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
