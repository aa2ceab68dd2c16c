//! A rate limit for requests, first-in first-out.
//!
//! governor's own `until_ready` waits on the real clock, which a paused tokio clock does not
//! control. Here governor only computes the remaining wait, and tokio's timer waits. The request at
//! the head of a fair queue waits for the timer, the others wait for the head.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// All clients that are clones of one another share it. A request that waits costs one entry in the
/// queue of the mutex; only the head has a timer.
///
/// The tokens are taken at the head of the queue, so that a request that is dropped while it waits
/// costs the others nothing.
pub(super) struct Limiter {
    /// Held by the request at the head of the queue. tokio's mutex is first-in first-out.
    head: Mutex<()>,
    /// The token bucket. Only the holder of `head` takes from it.
    bucket: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
}

/// tokio's clock for governor: the time since the limiter was created.
#[derive(Debug, Clone, Copy)]
struct TokioClock {
    start: Instant,
}

// === impl Limiter ===

impl Limiter {
    /// Returns a limiter, or `None` if `qps` means no limit.
    ///
    /// A rate of 0 or less, or one that is not a number, means no limit. In client-go only a
    /// negative QPS does. A burst of 0 counts as 1.
    pub(super) fn new(qps: f32, burst: u32) -> Option<Self> {
        let period = period(qps)?;
        let quota = Quota::with_period(period)?;
        let burst = burst.min(longest_burst(period));
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let clock = TokioClock { start: Instant::now() };
        Some(Self {
            head: Mutex::new(()),
            bucket: RateLimiter::direct_with_clock(quota.allow_burst(burst), clock),
        })
    }

    /// Waits until one more request may start.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready takes no token, and the next request in the queue
    /// moves up.
    pub(super) async fn admit(&self) {
        let _head = self.head.lock().await;
        while let Err(not_yet) = self.bucket.check() {
            tokio::time::sleep(not_yet.wait_time_from(self.bucket.clock().now())).await;
        }
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

/// Returns the longest burst for this time between two requests: it is full again after 100 years.
/// governor multiplies the two, in nanoseconds of 64 bits.
fn longest_burst(period: Duration) -> u32 {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
    u32::try_from(LONGEST.as_nanos() / period.as_nanos()).unwrap_or(u32::MAX)
}

/// Returns the time between two requests, or `None` for no limit. It is at most a day, because
/// governor multiplies it by the burst.
///
/// An infinite rate means no limit too.
fn period(qps: f32) -> Option<Duration> {
    const LONGEST: f32 = 86_400.0;
    if qps.is_nan() || qps <= 0.0 {
        return None;
    }
    let period = Duration::from_secs_f32((1.0 / qps).min(LONGEST));
    (!period.is_zero()).then_some(period)
}

// === impl TokioClock ===

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn burst_passes_at_once_and_the_rest_at_the_rate() {
        let limiter = Limiter::new(10.0, 3).unwrap();
        let start = Instant::now();
        for _ in 0..13 {
            limiter.admit().await;
        }
        let took = start.elapsed();
        assert!(
            took >= Duration::from_millis(990) && took <= Duration::from_millis(1020),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_admitted_in_order_and_a_cancelled_request_takes_no_token() {
        let limiter = Arc::new(Limiter::new(1.0, 1).unwrap());
        limiter.admit().await;
        let mut first = task::spawn(limiter.admit());
        let mut second = task::spawn(limiter.admit());
        let mut third = task::spawn(limiter.admit());
        assert_pending!(first.poll());
        assert_pending!(second.poll());
        assert_pending!(third.poll());
        drop(first);
        tokio::time::sleep(Duration::from_millis(1001)).await;
        assert_pending!(third.poll());
        assert_ready!(second.poll());
        drop(second);
        let mut third = pin!(third);
        tokio::time::timeout(Duration::from_secs(2), &mut third).await.unwrap();
    }

    #[test]
    fn invalid_rates_mean_no_limit_and_tiny_rates_one_request_per_day() {
        assert_eq!(period(0.0), None);
        assert_eq!(period(-1.0), None);
        assert_eq!(period(f32::NAN), None);
        assert_eq!(period(f32::INFINITY), None);
        let day = Duration::from_secs(86_400);
        assert_eq!(period(f32::MIN_POSITIVE), Some(day));
        assert_eq!(period(16.0), Some(Duration::from_micros(62_500)));
    }

    #[tokio::test(start_paused = true)]
    async fn longest_burst_of_a_low_rate_passes_at_once() {
        let limiter = Limiter::new(f32::MIN_POSITIVE, u32::MAX).unwrap();
        let admitted = futures::future::join_all((0..100).map(|_| limiter.admit()));
        tokio::time::timeout(Duration::from_secs(1), admitted).await.unwrap();
    }
}
