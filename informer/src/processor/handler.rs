//! [`Handler`]: the counts and the life of one handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use homeostat_core::metrics::record;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Owner;
use crate::metrics::HandlerMetrics;
use crate::status::HandlerStatus;
use crate::sync::Mutex;

/// The state that a handler's task and its subscription share.
pub(crate) struct Handler {
    pub(super) name: Arc<str>,
    /// Events that are queued and not handled yet.
    ///
    /// Raised under the queue's lock, lowered by the task before it calls the handler.
    pub(super) queued: AtomicUsize,
    /// Panics of the handler, of its filter and of their drop.
    pub(super) panics: AtomicU64,
    /// Calls that took longer than the threshold.
    pub(super) slow_calls: AtomicU64,
    pub(super) metrics: HandlerMetrics,
    /// Cancelled when the handler must get no further event.
    pub(super) removed: CancellationToken,
    /// Changed by the task alone.
    pub(super) phase: Mutex<Phase>,
    /// True once the task has passed the mark that ends the initial list.
    pub(super) synced: watch::Sender<bool>,
    /// Cancelled when the handler has got its last event.
    pub(super) finished: CancellationToken,
}

/// `Waiting` → `Running` → `Finished`, or `Waiting` → `Finished`.
#[derive(PartialEq)]
pub(super) enum Phase {
    /// The task has not begun; if it is removed now, it never calls its handler.
    ///
    /// → `Running` when the task starts, `Finished` when it is dropped or removed before.
    Waiting,
    /// The task calls its handler. → `Finished` when the task is dropped.
    Running,
    /// The handler has been dropped and is not called again.
    Finished,
}

// === impl Handler ===

impl Handler {
    pub(super) fn new(name: Arc<str>, owner: Owner<'_>) -> Self {
        Self {
            metrics: owner.metrics.handler(&name),
            name,
            queued: AtomicUsize::new(0),
            panics: AtomicU64::new(0),
            slow_calls: AtomicU64::new(0),
            removed: owner.stop.child_token(),
            phase: Mutex::new(Phase::Waiting),
            synced: watch::Sender::new(false),
            finished: CancellationToken::new(),
        }
    }

    pub(super) fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Sets the metric of queued events. The recorder is the author's code: no lock may be held.
    pub(crate) fn show(&self) {
        self.metrics.queued(self.queued.load(Ordering::Relaxed));
    }

    pub(super) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        record(|| self.metrics.panics.increment(1));
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        HandlerStatus {
            name: Arc::clone(&self.name),
            queued: self.queued.load(Ordering::Relaxed),
            panics: self.panics.load(Ordering::Relaxed),
            slow_calls: self.slow_calls.load(Ordering::Relaxed),
            synced: self.has_synced(),
        }
    }
}
