//! A controller whose types are erased, as a manager runs it.
//!
//! A manager holds controllers of many kinds in one list. Erasure costs one virtual call per start
//! and stop, and none per key: the worker loop knows its types.
//!
//! The life of a controller: `build` subscribes it to its informers, `wait_for_handlers` completes
//! the initial lists, `start` runs workers and timers, `unsubscribe` ends its events, `drain`
//! empties its queues. The manager calls these in this order.

use std::fmt::Display;
use std::hash::Hash;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use homeostat_core::user_code;
use homeostat_informer::Subscription;
use homeostat_workqueue::Queue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::any_informer::AnyInformer;
use crate::enqueue::Enqueue;
use crate::observe::QueueReport;
use crate::reconciler::Reconciler;
use crate::request::{RequestQueue, Trigger};
use crate::target::Target;
use crate::text::Guarded;
use crate::worker::{Worker, WorkerOptions};

/// The part of a controller that does not depend on its types.
///
/// Futures that it returns as `'static` do not borrow the controller, so that they run as tasks.
pub(crate) trait AnyController: Send + Sync {
    /// Returns the name that logs and metrics show.
    fn name(&self) -> &Arc<str>;
    /// Returns the informers whose caches the controller needs; the primary's is the first.
    fn informers(&self) -> &[Arc<dyn AnyInformer>];
    /// Returns a function for each queue that reports its state.
    fn queues(&self) -> Vec<QueueView>;
    /// Keeps the last reconciles from now on: the report of the first queue has them.
    fn keep_last_reconciles(&self);
    /// Waits until the handlers have got all objects of the initial lists. Returns false if an
    /// informer is stopped before.
    fn wait_for_handlers(&self) -> BoxFuture<'_, bool>;
    /// Returns the futures of the workers and timers. They end when the queues are shut down and
    /// empty.
    fn start(&self) -> Vec<BoxFuture<'static, ()>>;
    /// Ends the timers, shuts the queues down and waits for their keys. Returns the keys that are
    /// left after `timeout`.
    fn drain(&self, timeout: Duration) -> BoxFuture<'_, Vec<String>>;
    /// Returns the token that the requests of all workers carry.
    fn cancellation(&self) -> &CancellationToken;
    /// Ends the subscriptions, and waits for the mappers that are running.
    fn unsubscribe(&mut self) -> BoxFuture<'static, ()>;
}

/// Reports the state of a queue.
///
/// It is called by the debug page. It locks the queue for the time of a snapshot.
pub(crate) type QueueView = Arc<dyn Fn() -> QueueReport + Send + Sync>;

/// A controller with its types.
///
/// The manager starts it once: it clones `worker` for each worker and keeps the original for its
/// queue.
///
/// Dropping it before `start` drops the subscriptions, which removes the handlers.
pub(crate) struct TypedController<T: Target, R> {
    /// A worker of the first queue.
    pub(crate) worker: Worker<T, R>,
    pub(crate) workers: usize,
    /// The second queue and the number of its workers.
    pub(crate) second: Option<(RequestQueue<T>, usize)>,
    pub(crate) timers: Vec<Arc<Timer<T>>>,
    /// Cancelled when the drain begins.
    pub(crate) stop_timers: CancellationToken,
    pub(crate) informers: Vec<Arc<dyn AnyInformer>>,
    pub(crate) subscriptions: Vec<Subscription>,
}

/// The author's function. It runs on the timer's task and must not block.
pub(crate) type TimerCallback<T> = Box<dyn Fn(&Enqueue<T>) + Send + Sync>;

/// A callback that adds keys in a fixed period.
///
/// The first call is one period after the start of the workers. A call that takes longer than the
/// period delays the following ones.
pub(crate) struct Timer<T: Target> {
    pub(crate) period: Duration,
    pub(crate) callback: TimerCallback<T>,
    pub(crate) enqueue: Enqueue<T>,
}

// === impl Timer ===

impl<T: Target> Timer<T> {
    /// Calls the callback in each period until `stop` is cancelled. A panic costs one call.
    async fn run(&self, stop: CancellationToken) {
        let mut ticks = interval_at(Instant::now() + self.period, self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if let Err(panicked) = user_code("timer", || (self.callback)(&self.enqueue)) {
                tracing::error!(error = %panicked, "timer of a controller panicked");
            }
        }
    }
}

// === impl TypedController ===

impl<T: Target, R: Reconciler<T>> TypedController<T, R> {
    /// Returns the workers of both queues.
    ///
    /// The workers of the second queue share everything but the queue, also the turns.
    fn all_workers(&self) -> Vec<Worker<T, R>> {
        let mut workers: Vec<_> = (0..self.workers).map(|_| self.worker.clone()).collect();
        if let Some((queue, count)) = &self.second {
            let of_second = Worker { queue: queue.clone(), ..self.worker.clone() };
            workers.extend((0..*count).map(|_| of_second.clone()));
        }
        workers
    }
}

impl<T: Target, R: Reconciler<T>> AnyController for TypedController<T, R> {
    fn name(&self) -> &Arc<str> {
        &self.worker.controller
    }

    fn informers(&self) -> &[Arc<dyn AnyInformer>] {
        &self.informers
    }

    fn queues(&self) -> Vec<QueueView> {
        let second = self.second.as_ref().map(|(queue, _)| (queue, false));
        let all = iter::once((&self.worker.queue, true)).chain(second);
        let views = all.map(|(queue, is_first)| {
            let (queue, options) = (queue.clone(), Arc::clone(&self.worker.options));
            Arc::new(move || report_of(&queue, &options, is_first)) as QueueView
        });
        views.collect()
    }

    fn keep_last_reconciles(&self) {
        self.worker.options.last.keep();
    }

    fn wait_for_handlers(&self) -> BoxFuture<'_, bool> {
        let each = self.subscriptions.iter().map(Subscription::wait_for_sync);
        Box::pin(join_all(each).map(|synced| synced.into_iter().all(|synced| synced)))
    }

    fn start(&self) -> Vec<BoxFuture<'static, ()>> {
        let workers = self.all_workers().into_iter().map(|worker| worker.run().boxed());
        let timers = self.timers.iter().map(|timer| {
            let (timer, stop) = (Arc::clone(timer), self.stop_timers.clone());
            async move { timer.run(stop).await }.boxed()
        });
        workers.chain(timers).collect()
    }

    /// Both queues are drained at the same time, with the same timeout.
    fn drain(&self, timeout: Duration) -> BoxFuture<'_, Vec<String>> {
        self.stop_timers.cancel();
        let name = self.name();
        Box::pin(async move {
            let first = left_after(name, &self.worker.queue, timeout);
            let second = async {
                match &self.second {
                    Some((queue, _)) => left_after(name, queue, timeout).await,
                    None => Vec::new(),
                }
            };
            let (mut left, of_second) = join(first, second).await;
            left.extend(of_second);
            left
        })
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.worker.cancellation
    }

    fn unsubscribe(&mut self) -> BoxFuture<'static, ()> {
        let subscriptions = std::mem::take(&mut self.subscriptions);
        Box::pin(async move {
            join_all(subscriptions.into_iter().map(Subscription::remove)).await;
        })
    }
}

/// Returns the state of one queue of a controller. The first queue shows the last reconciles, and
/// the keys that are not retried, which are in no queue.
fn report_of<T: Target>(
    queue: &RequestQueue<T>,
    options: &WorkerOptions<T>,
    is_first: bool,
) -> QueueReport {
    let mut errors = options.errors.all();
    errors.retain(|_, error| is_first || error.is_retried);
    let report = QueueReport::with_errors(queue.name(), queue, errors);
    if is_first { report.with_reconciles(&options.last.all()) } else { report }
}

/// Drains `queue`, and returns the keys that are left after `timeout`, each behind the name of its
/// controller.
///
/// Delayed keys are not among them: the next process lists all objects at its start.
///
/// The text of a key is `CONTROLLER KEY (in a reconcile)` or `CONTROLLER KEY (queued)`.
async fn left_after<Key>(
    controller: &str,
    queue: &Queue<Key, Trigger>,
    timeout: Duration,
) -> Vec<String>
where
    Key: Clone + Eq + Hash + Display + Send + Sync + 'static,
{
    let left = queue.drain(timeout).await;
    let line = |key, state| format!("{controller} {} ({state})", Guarded(key));
    let held = left.held.iter().map(|key| line(key, "in a reconcile"));
    let queued = left.queued.iter().map(|key| line(key, "queued"));
    held.chain(queued).collect()
}

#[cfg(test)]
mod tests {
    use homeostat_workqueue::Priorities;

    use super::*;
    use crate::text::Textless;

    #[tokio::test(start_paused = true)]
    async fn keys_whose_display_panics_are_listed_after_drain() {
        let queue: Queue<Textless, Trigger> =
            Queue::builder().causes(Trigger::merge).priorities(Priorities::default()).build();
        queue.because(Trigger::Retry).add(Textless);
        let left = left_after("shop", &queue, Duration::from_secs(1)).await;
        assert_eq!(left, ["shop (its text panicked) (queued)"]);
    }
}
