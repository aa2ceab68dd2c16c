//! Lets requests start no faster than asked, and in the order in which they came.
//!
//! governor's own `until_ready` waits on a thread with the real clock, which a paused tokio clock cannot see. So governor
//! only says *not yet, and how long*; the waiting is tokio's. One request waits at the head of a fair queue, the others behind it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(super) struct Limiter {
    /// Held by the request at the head of the queue. tokio's mutex is first-in first-out.
    head: Mutex<()>,
    bucket: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
}

/// tokio's clock, as governor wants it: time since the limiter was made.
#[derive(Debug, Clone, Copy)]
struct TokioClock {
    start: Instant,
}

// === impl Limiter ===

impl Limiter {
    /// `None` when `qps` asks for no limit.
    pub(super) fn new(qps: f32, burst: u32) -> Option<Self> {
        let quota = Quota::with_period(period(qps)?)?;
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
    /// Dropped before it is ready, it has taken nothing, and whoever waits behind moves up.
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

/// The time between two requests; a day at most, as governor multiplies it by the burst.
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
    async fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
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
    async fn who_waits_longest_goes_first_and_who_leaves_takes_nothing() {
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
    fn rates_that_make_no_sense_mean_no_limit_or_the_slowest() {
        assert_eq!(period(0.0), None);
        assert_eq!(period(-1.0), None);
        assert_eq!(period(f32::NAN), None);
        assert_eq!(period(f32::INFINITY), None);
        let day = Duration::from_secs(86_400);
        assert_eq!(period(f32::MIN_POSITIVE), Some(day));
        assert_eq!(period(16.0), Some(Duration::from_micros(62_500)));
    }
}
