//! The rate limiter of a queue, behind its own lock. Its panics are caught.

use std::time::Duration;

use homeostat_core::{Panicked, user_code};
use tokio::time::Instant;

use crate::sync::Mutex;

use super::RateLimiter;

/// The delay of a retry for which the rate limiter panicked: 1 s.
///
/// If a limiter panics each time, this delay prevents a hot loop; if it panics once, the retry is
/// hardly late.
pub const FALLBACK_DELAY: Duration = Duration::from_secs(1);

/// A limiter whose panics do not end a worker.
///
/// The lock is released before the panic is counted and logged.
pub(crate) struct GuardedLimiter<T>(Mutex<Box<dyn RateLimiter<T>>>);

// === impl GuardedLimiter ===

impl<T> GuardedLimiter<T> {
    pub(crate) fn new(limiter: Box<dyn RateLimiter<T>>) -> Self {
        Self(Mutex::new(limiter))
    }
}

impl<T: 'static> GuardedLimiter<T> {
    /// Returns the delay before the next attempt, or [`FALLBACK_DELAY`] if the limiter panics.
    pub(crate) fn when(&self, queue: &str, item: &T, now: Instant) -> Duration {
        self.run(queue, |limiter| limiter.when(item, now)).unwrap_or(FALLBACK_DELAY)
    }

    /// Resets the failures of the item.
    pub(crate) fn forget(&self, queue: &str, item: &T) {
        self.run(queue, |limiter| limiter.forget(item)).unwrap_or_default();
    }

    /// Returns the number of failures of the item, or 0 if the limiter panics.
    pub(crate) fn failures(&self, queue: &str, item: &T) -> u32 {
        self.run(queue, |limiter| limiter.failures(item)).unwrap_or_default()
    }

    /// Calls the limiter under its lock and catches a panic. The lock is free when the panic is
    /// counted and logged.
    fn run<R>(
        &self,
        queue: &str,
        call: impl FnOnce(&mut dyn RateLimiter<T>) -> R,
    ) -> Result<R, Panicked> {
        let outcome = user_code("rate limiter", || call(&mut **self.0.lock()));
        if let Err(error) = &outcome {
            tracing::error!(queue, %error, "rate limiter panicked, using the fallback");
        }
        outcome
    }
}
