//! The longest of several limiters' delays.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Waits as long as the strictest of several limiters asks; all of them are charged.
pub struct MaxOfRateLimiter<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

// === impl MaxOfRateLimiter ===

impl<T> MaxOfRateLimiter<T> {
    /// Joins these limiters. Without any, nothing ever waits.
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
