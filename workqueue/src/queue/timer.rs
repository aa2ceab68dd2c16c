//! The task that queues items when their delay ends.
//!
//! There is one task per queue, and it starts with the first delay: a queue that never delays needs
//! no runtime. The task sleeps until the earliest deadline; a new earliest deadline wakes it
//! through `Notify`, which keeps a wake-up that comes while the task is not waiting.

use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use homeostat_core::user_code;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::shared::{Next, Shared};
use super::task::OwnedTask;

/// The pause after a panic of the author's code. The other delays wait for it as well.
const AFTER_A_PANIC: Duration = Duration::from_secs(1);

/// Starts the task on the runtime of the caller; `None` outside of a runtime.
///
/// The task has a strong handle of the queue only while it queues items, so that it ends with the
/// queue's last handle. A timer that does not run is replaced by the next delay, on the runtime of
/// that caller.
pub(super) fn start<T, C>(queue: &Arc<Shared<T, C>>) -> Option<OwnedTask>
where
    T: Eq + Hash + Send + Sync + 'static,
    C: Send + 'static,
{
    let runtime = Handle::try_current().ok()?;
    let (queue, wake) = (Arc::downgrade(queue), Arc::clone(&queue.timer_wake));
    Some(OwnedTask::new(runtime.spawn(run(queue, wake))))
}

/// Runs until the queue is gone or shut down. After 128 items it yields, so that a burst of due
/// items does not block the runtime's thread.
async fn run<T: Eq + Hash, C>(queue: Weak<Shared<T, C>>, wake: Arc<Notify>) {
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

/// Queues the due items; `None` if the queue is gone. After a panic of the author's code, the items
/// that were not queued stay delayed. A function of its own, so that no strong handle is alive
/// during a wait.
fn release_due<T: Eq + Hash, C>(queue: &Weak<Shared<T, C>>) -> Option<Next> {
    let shared = queue.upgrade()?;
    let now = Instant::now();
    let released = user_code("queue timer", || shared.release_due(now));
    Some(released.unwrap_or_else(|error| {
        let queue = &*shared.name;
        tracing::error!(queue, %error, "a delay could not end, trying again in {AFTER_A_PANIC:?}");
        Next::At(now + AFTER_A_PANIC)
    }))
}

/// The timer's step for the models of tests/loom.rs: loom does not support tokio's timer and tasks.
#[cfg(homeostat_loom)]
impl<T: Eq + Hash, C> super::Queue<T, C> {
    /// Ends the delays that are over at `now`, as the task does.
    #[doc(hidden)]
    pub fn end_delays(&self, now: Instant) {
        while let Next::Now = self.shared.release_due(now) {}
    }
}
