//! The use of an HTTP/2 connection: its requests in flight, and its end by silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tower::BoxError;

/// The time in which a peer has to answer a ping.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that the handles of a connection share with its task.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Requests that will be sent, or whose answer was not read to its end.
    in_flight: AtomicUsize,
    /// True if the connection was closed because a ping was not answered.
    is_silent: AtomicBool,
}

/// Counts a request until it and the body of its answer are dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Usage>);

/// The error of a connection whose peer does not answer pings.
#[derive(Debug, thiserror::Error)]
#[error("no answer to a ping within {PING_TIMEOUT:?}")]
struct PingTimedOut;

// === impl Usage ===

impl Usage {
    /// Counts a request that will be sent, unless `limit` are counted.
    pub(super) fn reserve(usage: &Arc<Self>, limit: usize) -> Option<InFlight> {
        let more = |in_flight| (in_flight < limit).then_some(in_flight + 1);
        usage.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(InFlight(Arc::clone(usage)))
    }

    /// Returns true if no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0
    }

    /// Notes that a ping was not answered, as the reason for the end of the connection.
    pub(super) fn set_silent(&self) {
        self.is_silent.store(true, Ordering::Release);
    }
}

// === impl InFlight ===

impl InFlight {
    /// Returns the reason for the end of a request: h2 knows no pings that were not answered.
    pub(super) fn explain(&self, error: h2::Error) -> BoxError {
        if self.0.is_silent.load(Ordering::Acquire) { PingTimedOut.into() } else { error.into() }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
