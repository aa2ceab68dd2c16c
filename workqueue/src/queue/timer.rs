//! The task that queues what is due.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep_until};

use super::shared::{Next, Shared};

/// Owns the timer task; dropping this ends it.
///
/// The queue owns this, and the task holds the queue only while it queues what is due: so the task
/// ends with the queue's last handle.
pub(super) struct Timer {
    task: JoinHandle<()>,
}

// === impl Timer ===

impl Timer {
    /// Starts the task on the runtime of the caller.
    #[track_caller]
    pub(super) fn start<T>(queue: Weak<Shared<T>>, wake: Arc<Notify>) -> Self
    where
        T: Eq + Hash + Send + Sync + 'static,
    {
        let Ok(runtime) = Handle::try_current() else {
            panic!("a delay needs the queue's timer, and that a tokio runtime: there is none here")
        };
        Self { task: runtime.spawn(run(queue, wake)) }
    }

    /// Whether the task still runs. It does not after its runtime has ended.
    pub(super) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run<T: Eq + Hash>(queue: Weak<Shared<T>>, wake: Arc<Notify>) {
    while let Some(next) = release_due(&queue) {
        match next {
            Next::Now => yield_now().await,
            Next::Never => wake.notified().await,
            Next::At(due) => tokio::select! {
                biased;
                () = wake.notified() => {}
                () = sleep_until(due) => {}
            },
            Next::End => return,
        }
    }
}

/// Queues what is due; `None` if the queue is gone. Apart, so that no handle lives across a wait.
fn release_due<T: Eq + Hash>(queue: &Weak<Shared<T>>) -> Option<Next> {
    queue.upgrade().map(|shared| shared.release_due(Instant::now()))
}

/// What the models of tests/loom.rs have instead of the task, whose tokio parts loom does not know.
#[cfg(homeostat_loom)]
impl<T: Eq + Hash> super::Queue<T> {
    /// Does what the task does when it wakes at `now`, with the same step.
    #[doc(hidden)]
    pub fn end_delays(&self, now: Instant) {
        while let Next::Now = self.shared.release_due(now) {}
    }
}
