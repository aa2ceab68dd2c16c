//! The task that updates the gauges of held items.
//!
//! It starts with the first hand-out, runs while items are held, and ends by itself at the first
//! tick at which none is. A hand-out after that starts another.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::metrics::Metrics;
use super::observer::Observer;
use super::shared::Shared;
use super::task::OwnedTask;

/// The period at which the gauges of held items are updated, as in client-go.
const TICK: Duration = Duration::from_millis(500);

/// Starts the task, unless it runs. Does nothing outside of a runtime.
///
/// Takes the ticker's lock for each hand-out of a queue with metrics; it is free except while the
/// task reads the gauges.
#[cold]
pub(super) fn tick<T, C>(metrics: &Metrics, queue: &Arc<Shared<T, C>>)
where
    T: Send + Sync + 'static,
    C: Send + 'static,
{
    let mut ticker = metrics.ticker.lock();
    if ticker.as_ref().is_some_and(OwnedTask::is_running) {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    *ticker = Some(OwnedTask::new(runtime.spawn(run(Arc::downgrade(queue)))));
}

/// Updates the gauges every 500 ms until no item is held or the queue is gone. The gauges are 0
/// when it ends by itself.
async fn run<T, C>(queue: Weak<Shared<T, C>>) {
    loop {
        sleep(TICK).await;
        // The strong handle is dropped before the wait, so that the task ends with the queue.
        let Some(queue) = queue.upgrade() else { return };
        let Some(metrics) = &queue.metrics else { return };
        if !set_unfinished(metrics, &queue) {
            return;
        }
    }
}

/// Updates the gauges of held items. Returns false if no item is held; the task is then released.
///
/// The check for held items and the release of the task happen under both locks. So a hand-out in
/// between either is seen here, or finds no task and starts another.
fn set_unfinished<T, C>(metrics: &Metrics, queue: &Shared<T, C>) -> bool {
    let mut ticker = metrics.ticker.lock();
    let now = Instant::now();
    let core = queue.core.lock();
    let observer = core.observer.as_deref();
    let (sum, longest) = observer.map(|observer| observer.unfinished(now)).unwrap_or_default();
    let holds_any = observer.is_some_and(Observer::holds_any);
    drop(core);
    let ended = if holds_any { None } else { mem::take(&mut *ticker) };
    drop(ticker);
    drop(ended);
    metrics.set_gauges(sum, longest);
    holds_any
}
