//! How long an item has to wait before it is tried again.

use std::time::Duration;

use tokio::time::Instant;

mod bucket;
mod exponential;
mod failures;
mod fast_slow;
mod max_of;
mod max_wait;

pub use self::bucket::BucketRateLimiter;
pub use self::exponential::ExponentialFailureRateLimiter;
pub use self::fast_slow::FastSlowRateLimiter;
pub use self::max_of::MaxOfRateLimiter;
pub use self::max_wait::MaxWaitRateLimiter;

/// Decides how long an item waits before it is tried again.
///
/// A limiter belongs to one queue, which calls it under a lock of the limiter's own: it may be slow
/// without stalling the workers. It may add to that queue, but a call of its `add_rate_limited`,
/// `forget` or `failures` would wait for that lock for ever.
pub trait RateLimiter<T>: Send + 'static {
    /// How long this item has to wait from `now` on. Every call counts as one more attempt.
    fn when(&mut self, item: &T, now: Instant) -> Duration;

    /// The item has succeeded, or will not be tried again: its attempts are forgotten.
    fn forget(&mut self, item: &T);

    /// How many attempts of this item were counted since it was last forgotten.
    fn failures(&self, item: &T) -> u32;
}

/// What Kubernetes' own controllers use: the longer one of a per-item back-off (5 ms, doubled up to
/// 1,000 s) and of a bucket for all items together (10 per second, 100 at once).
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::{Queue, default_controller_rate_limiter};
///
/// let queue: Queue<String> =
///     Queue::builder().rate_limiter(default_controller_rate_limiter()).build();
/// ```
pub fn default_controller_rate_limiter<T>() -> MaxOfRateLimiter<T>
where
    T: Eq + std::hash::Hash + Clone + Send + 'static,
{
    MaxOfRateLimiter::new([
        Box::new(ExponentialFailureRateLimiter::default()) as Box<dyn RateLimiter<T>>,
        Box::new(BucketRateLimiter::new(10.0, 100)),
    ])
}

/// A back-off per item, from 1 ms, doubled up to 1,000 s, and no bucket: for queues whose items do not
/// compete.
pub fn default_item_rate_limiter<T>() -> ExponentialFailureRateLimiter<T> {
    ExponentialFailureRateLimiter::new(Duration::from_millis(1), Duration::from_secs(1000))
}

// === impl RateLimiter ===

impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Box<L> {
    fn when(&mut self, item: &T, now: Instant) -> Duration {
        (**self).when(item, now)
    }

    fn forget(&mut self, item: &T) {
        (**self).forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        (**self).failures(item)
    }
}

#[cfg(test)]
mod tests;
