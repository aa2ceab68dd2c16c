//! [`Shared`]: the part of leadership that several parties may end.
//!
//! The lock of [`End`] is held to move the list of tasks, never during an abort. `lose` and the
//! drop of the leadership may run at the same time; each task is aborted by one of them.

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::super::ElectionView;
use super::super::fence::Fence;
use super::super::metrics::Metrics;
use super::LeadershipLost;

/// The part of leadership that the renewing task and the watchdog may end.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) fence: Fence,
    /// Shows the end of leadership, also if the renewing task does not come to it.
    pub(super) metrics: Metrics,
    pub(super) view: ElectionView,
    /// Cancelled after `end` has its reason and the fence is closed. Not cancelled by a release or
    /// a drop.
    pub(super) lost: CancellationToken,
    /// No author's code runs under this lock; an abort only marks a task.
    pub(super) end: Mutex<End>,
}

/// The reason for the end of leadership, and the tasks to abort then.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Set once, by the first to notice the loss. `None` after a release or a drop.
    pub(super) reason: Option<LeadershipLost>,
    /// True from a release or a drop on. The fence is closed then too, which is no loss.
    pub(super) is_given_up: bool,
    /// Tasks to abort, among them some that have ended. Empty once leadership has ended.
    pub(super) aborts: Vec<AbortHandle>,
}

// === impl Shared ===

impl Shared {
    /// Ends leadership: closes the fence, records the reason, wakes
    /// [`Leadership::lost`](super::Leadership::lost), aborts the tasks. Only the first call has an
    /// effect, and none after a release or a drop.
    ///
    /// The order is fixed: a task that sees `lost` finds the fence closed and the reason set.
    pub(super) fn lose(&self, reason: LeadershipLost) {
        self.close();
        {
            let mut end = self.end.lock();
            if end.reason.is_some() || end.is_given_up {
                return;
            }
            tracing::error!(%reason, "leader election lost");
            end.reason = Some(reason);
        }
        self.lost.cancel();
        self.end();
    }

    /// Closes the fence, and shows it.
    pub(super) fn close(&self) {
        self.fence.set(None);
        self.metrics.leads(false);
        self.view.ended();
    }

    /// Aborts the registered tasks. The aborts run without the lock.
    ///
    /// A second call finds no task.
    pub(super) fn end(&self) {
        let aborts = std::mem::take(&mut self.end.lock().aborts);
        for task in aborts {
            task.abort();
        }
    }
}
