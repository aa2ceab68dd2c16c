//! [`Calls`]: the durations of a handler's calls, and the report of the slow ones.

use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeostat_core::metrics::record;
use tokio::time::Instant;

use super::handler::Handler;

/// Measures the calls of one handler. Owned by the handler's task.
pub(super) struct Calls {
    /// A call that takes longer is slow.
    threshold: Duration,
    /// The time of the last log line about a slow call.
    logged: Option<Instant>,
    /// Slow calls since that line.
    unlogged: u64,
}

/// The shortest time between two log lines about slow calls of one handler.
const LOG_PERIOD: Duration = Duration::from_secs(10);

// === impl Calls ===

impl Calls {
    pub(super) fn new(threshold: Duration) -> Self {
        Self { threshold, logged: None, unlogged: 0 }
    }

    /// Records a call that began at `started`. `key` is called only if the call was slow and is
    /// logged: at most one line in 10 s.
    pub(super) fn ended<Key: Display>(
        &mut self,
        handler: &Handler,
        started: Instant,
        key: impl FnOnce() -> Key,
    ) {
        let now = Instant::now();
        let took = now.saturating_duration_since(started);
        record(|| handler.metrics.duration.record(took));
        if took <= self.threshold {
            return;
        }
        handler.slow_calls.fetch_add(1, Ordering::Relaxed);
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < LOG_PERIOD) {
            self.unlogged += 1;
            return;
        }
        self.logged = Some(now);
        tracing::warn!(
            handler = &*handler.name,
            key = %key(),
            ?took,
            threshold = ?self.threshold,
            unlogged = std::mem::take(&mut self.unlogged),
            "handler took longer than its threshold; later events wait for it"
        );
    }
}
