//! Rate limiters: they compute the delay before an item is tried again.
//!
//! The limiters have the names, defaults and delays of client-go's
//! (`util/workqueue/default_rate_limiters.go`). One difference: each call gets the time as an
//! argument, so that a limiter needs no clock, and a test needs no sleep.

use std::time::Duration;

use tokio::time::Instant;

mod bucket;
mod exponential;
mod failures;
mod fast_slow;
mod guarded;
mod max_of;
mod max_wait;

pub use self::bucket::BucketRateLimiter;
pub use self::exponential::ExponentialFailureRateLimiter;
pub use self::fast_slow::FastSlowRateLimiter;
pub use self::guarded::FALLBACK_DELAY;
pub(crate) use self::guarded::GuardedLimiter;
pub use self::max_of::MaxOfRateLimiter;
pub use self::max_wait::MaxWaitRateLimiter;

/// Computes the delay before an item is tried again.
///
/// A limiter belongs to one queue, which calls it under the limiter's own lock, so that a slow
/// limiter does not block the workers. A limiter may add to its queue, but it deadlocks if it calls
/// the queue's `add_rate_limited`, `forget`, `failures` or `inspect`.
///
/// Implement it for a policy that the limiters of this crate do not have. To combine policies, use
/// [`MaxOfRateLimiter`]; to bound a delay, use [`MaxWaitRateLimiter`].
///
/// # Panics
///
/// A panic of a limiter does not end a worker: the queue logs and counts it, and uses
/// [`FALLBACK_DELAY`] for [`when`](Self::when) and 0 for [`failures`](Self::failures).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::{Queue, RateLimiter};
/// use tokio::time::Instant;
///
/// /// Tries each item again after the same time.
/// struct Constant(Duration);
///
/// impl<T> RateLimiter<T> for Constant {
///     fn when(&mut self, _item: &T, _now: Instant) -> Duration {
///         self.0
///     }
///
///     fn forget(&mut self, _item: &T) {}
///
///     fn failures(&self, _item: &T) -> u32 {
///         0
///     }
/// }
///
/// let queue: Queue<String> =
///     Queue::builder().rate_limiter(Constant(Duration::from_secs(1))).build();
/// ```
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send + 'static {
    /// Counts an attempt and returns the delay, from `now` on, before this item is tried again.
    ///
    /// A delay of zero queues the item at once. The queue limits a longer delay to 100 years.
    #[doc(alias = "When")]
    fn when(&mut self, item: &T, now: Instant) -> Duration;

    /// Resets the attempts of an item that has succeeded or will not be tried again.
    #[doc(alias = "Forget")]
    fn forget(&mut self, item: &T);

    /// Returns the number of attempts of this item since the last [`forget`](Self::forget).
    ///
    /// A limiter that does not count per item returns 0.
    #[doc(alias = "NumRequeues")]
    fn failures(&self, item: &T) -> u32;
}

/// Returns the limiter of Kubernetes' own controllers (client-go's
/// `DefaultTypedControllerRateLimiter`): the longer delay of a per-item back-off (5 ms, doubled up
/// to 1,000 s) and a bucket for all items (10 per second, bursts of 100).
///
/// Use it for a controller whose failures load a shared API server: the bucket limits the retries
/// of all items together.
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

/// Returns a per-item back-off from 1 ms, doubled up to 1,000 s, without a bucket, for queues whose
/// items do not compete (client-go's `DefaultTypedItemBasedRateLimiter`).
///
/// Many items that fail at the same time are then tried again at the same time.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::{Queue, default_item_rate_limiter};
///
/// let queue: Queue<String> = Queue::builder().rate_limiter(default_item_rate_limiter()).build();
/// ```
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
