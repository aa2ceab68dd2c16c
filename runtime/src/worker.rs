//! The worker loop: take a key, reconcile it, forget or retry it.
//!
//! A worker never ends because of an author's code: errors, timeouts and panics of the reconciler
//! become a retry. A worker that is aborted gives its key back, so that it leaves no key behind.
//!
//! The steps for one key:
//!
//! 1. Take it from the queue. In a controller with two queues, take its turn.
//! 2. Wait for a permit of the work limit, if there is one.
//! 3. Skip it if its object does not decode, or postpone it if the caches do not show its own
//!    writes yet.
//! 4. Call the reconciler, with the timeout and inside the boundary for panics.
//! 5. Forget its failures, or add it again: after the delay of the action, the delay of the error
//!    policy, or the back-off of the rate limiter.
//! 6. Finish it with the next take. If an event came meanwhile, the queue hands it out again.
//!
//! A timeout and a panic count as failures. controller-runtime recovers panics by default too
//! (`RecoverPanic`), but a reconcile has no timeout there unless the author sets one.

mod failure;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_core::user_future;
use homeostat_workqueue::WorkItem;
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use tracing::Instrument;

use self::failure::{Failure, ReconcileError};
use crate::client::describe_chain;
use crate::last_errors::LastErrors;
use crate::last_reconciles::{LastReconciles, record_calls};
use crate::read_your_writes::ReadYourWrites;
use crate::reconcile_metrics::{ReconcileMetrics, Reconciled};
use crate::reconciler::{Action, Reconciler};
use crate::request::{Request, RequestQueue, Trigger};
use crate::target::Target;
use crate::terminal::{OnError, TerminalError};
use crate::text::Guarded;
use crate::turns::Turns;
use crate::work_limit::WorkLimit;

/// One worker of a controller. A clone is another worker.
///
/// The number of clones is the concurrency of the controller: a worker reconciles one key at a
/// time.
pub(crate) struct Worker<T: Target, R> {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: RequestQueue<T>,
    /// Shared by the workers of both queues.
    pub(crate) turns: Turns<T>,
    pub(crate) options: Arc<WorkerOptions<T>>,
    /// Shared by all workers.
    pub(crate) reconciler: Arc<R>,
    /// Cancelled by the manager when the drain timeout has passed.
    pub(crate) cancellation: CancellationToken,
}

/// The options that all workers of a controller share.
///
/// They are fixed when the controller is built.
pub(crate) struct WorkerOptions<T: Target> {
    /// Returns true for an object that does not decode. It is called before each reconcile.
    pub(crate) is_opaque: Option<IsOpaque<T>>,
    /// The time after which a reconcile is dropped.
    pub(crate) timeout: Duration,
    /// `None` backs off after every error that is not terminal.
    pub(crate) error_policy: Option<ErrorPolicy<T>>,
    /// `None` retries a key at the priority that it had.
    pub(crate) retry_priority: Option<i32>,
    pub(crate) limit: Option<WorkLimit>,
    /// `None` reconciles on caches of any age.
    pub(crate) writes: Option<ReadYourWrites<T>>,
    pub(crate) metrics: ReconcileMetrics,
    /// For the debug page.
    pub(crate) errors: LastErrors<T::Key>,
    /// For the debug page.
    pub(crate) last: LastReconciles,
}

/// Looks the key up in the cache of the primary.
pub(crate) type IsOpaque<T> = Box<dyn Fn(&<T as Target>::Key) -> bool + Send + Sync>;
/// The author's decision for an error. It runs inside the boundary for panics: a panic counts as a
/// panic of the reconciler.
pub(crate) type ErrorPolicy<T> =
    Box<dyn Fn(&Request<T>, &(dyn StdError + 'static)) -> OnError + Send + Sync>;

/// A key that the worker holds, with its trigger.
type Item<'a, T> = WorkItem<'a, <T as Target>::Key, Trigger>;

// === impl Worker ===

impl<T: Target, R: Reconciler<T>> Worker<T, R> {
    /// Reconciles keys until the queue is shut down and empty.
    ///
    /// # Cancel safety
    ///
    /// If the task is aborted, the key that it holds is queued again.
    pub(crate) async fn run(self) {
        let mut worker = self.queue.worker();
        // The next call finishes the item of the last one.
        while let Some(item) = worker.next().await {
            let request = (item.cause(), item.priority());
            // Without a turn, the worker that holds the key adds it again.
            let mut turn = self.turns.take(&item, &self.queue, request);
            while let Some(held) = turn {
                self.handle(&item).await;
                turn = held.pass_on();
            }
        }
    }

    /// Reconciles the key, and forgets or requeues it.
    ///
    /// The key is added again while this worker holds it, so that no other worker gets it before
    /// this one is done. A requeue keeps the priority of the request.
    async fn handle(&self, item: &Item<'_, T>) {
        let _permit = match &self.options.limit {
            Some(limit) => limit.permit().await,
            None => None,
        };
        let request = self.request(item);
        let priority = item.priority();
        let requeue = |trigger| self.queue.because(trigger).at_priority(priority);
        let retry_priority = self.options.retry_priority.unwrap_or(priority).min(priority);
        let retry = || requeue(Trigger::Retry).at_priority(retry_priority);
        let outcome = self.observe(&request).await;
        match &outcome {
            Ok(Action::Postpone(_)) => {}
            Ok(_) => self.options.errors.succeeded(item),
            Err(failure) => {
                let is_retried = failure.on_error != OnError::AwaitChange;
                self.options.errors.failed(item, &failure.error.to_string(), is_retried);
            }
        }
        match outcome {
            Ok(Action::AwaitChange) => self.queue.forget(item),
            Ok(Action::RequeueAfter(delay)) => {
                self.queue.forget(item);
                requeue(Trigger::RequeueAfter).add_after((**item).clone(), delay);
            }
            Ok(Action::Postpone(delay)) => {
                requeue(Trigger::RequeueAfter).add_after((**item).clone(), delay);
            }
            Err(failure) => {
                failure.log(&self.controller, &request);
                match failure.on_error {
                    OnError::BackOff => retry().add_rate_limited((**item).clone()),
                    OnError::RetryAfter(delay) => retry().add_after((**item).clone(), delay),
                    OnError::AwaitChange => self.queue.forget(item),
                }
            }
        }
    }

    /// Reconciles the key, with a span, metrics and an entry of the debug page.
    async fn observe(&self, request: &Request<T>) -> Result<Action, Failure> {
        let running = self.options.metrics.started();
        let recording = self.options.last.start();
        let reconcile = record_calls(recording.as_ref(), self.reconcile(request));
        let outcome = reconcile.instrument(self.span(request)).await;
        running.ended(match &outcome {
            Ok(Action::AwaitChange) => Reconciled::Success,
            Ok(Action::RequeueAfter(_) | Action::Postpone(_)) => Reconciled::RequeueAfter,
            Err(failure) => failure.reconciled(),
        });
        if let Some(recording) = recording {
            let text = match &outcome {
                Ok(Action::AwaitChange) => "done".to_owned(),
                Ok(Action::RequeueAfter(delay)) => format!("requeue after {:?}", rounded(*delay)),
                Ok(Action::Postpone(delay)) => format!("postponed by {:?}", rounded(*delay)),
                Err(failure) => failure.error.to_string(),
            };
            let (key, trigger): (&dyn fmt::Display, &dyn fmt::Display) =
                (request.key(), request.trigger());
            let past = recording.ended((key, trigger, request.attempt()), &text);
            self.options.last.push(past);
        }
        outcome
    }

    /// Returns the request for a key that was taken from the queue.
    ///
    /// The attempt is 1 for a key without failures. The cancellation token is a child of the
    /// controller's: cancelling it affects this reconcile only.
    fn request(&self, item: &Item<'_, T>) -> Request<T> {
        Request::new((**item).clone())
            .with_attempt(self.queue.failures(item).saturating_add(1))
            .with_trigger(item.cause().clone())
            .with_cancellation(self.cancellation.child_token())
            .with_queue(self.queue.clone())
    }

    /// Reconciles the key unless its object does not decode: the reconciler could not distinguish
    /// such an object from a deleted one. An event enqueues the key when the object decodes again
    /// or is deleted.
    async fn reconcile(&self, request: &Request<T>) -> Result<Action, Failure> {
        if self.options.is_opaque.as_ref().is_some_and(|is_opaque| is_opaque(request.key())) {
            tracing::warn!(
                "object does not decode into its type, not reconciling it until it does"
            );
            return Ok(Action::AwaitChange);
        }
        let Some(writes) = &self.options.writes else {
            return self.call_reconciler(request).await;
        };
        match writes.wait(request.key()) {
            // The cache that shows the writes wakes the key earlier.
            Some(wait) => Ok(Action::Postpone(wait)),
            None => writes.recording(request.key(), self.call_reconciler(request)).await,
        }
    }

    /// Runs the author's code, including the drop and the formatting of its values, and catches
    /// panics.
    ///
    /// A reconcile that times out is dropped at its next await. Requests that it has sent may still
    /// be carried out by the server, as after a crash of the process; the next attempt starts from
    /// the cache.
    async fn call_reconciler(&self, request: &Request<T>) -> Result<Action, Failure> {
        let timeout = self.options.timeout;
        let reconcile = async {
            // On the heap: the future of a reconciler may have many KiB, and each layer around it
            // would copy them.
            let reconcile = Box::pin(self.reconciler.reconcile(request));
            match tokio::time::timeout(timeout, reconcile).await {
                Ok(Ok(action)) => {
                    tracing::debug!(?action, "reconciled");
                    Ok(action)
                }
                Ok(Err(error)) => {
                    let error: BoxError = error.into();
                    let text = describe_chain(error.as_ref());
                    let on_error = self.on_error(request, error.as_ref());
                    Err(Failure { error: ReconcileError::Failed(text), on_error })
                }
                Err(_) => Err(Failure::back_off(ReconcileError::TimedOut(timeout))),
            }
        };
        match user_future("reconciler", reconcile).await {
            Ok(outcome) => outcome,
            Err(panicked) => {
                let message = panicked.message().to_owned();
                Err(Failure::back_off(ReconcileError::Panicked(message)))
            }
        }
    }

    /// A [`TerminalError`] anywhere in the chain of causes comes before the policy.
    fn on_error(&self, request: &Request<T>, error: &(dyn StdError + 'static)) -> OnError {
        if TerminalError::is_cause_of(error) {
            return OnError::AwaitChange;
        }
        let policy = self.options.error_policy.as_ref();
        policy.map_or(OnError::BackOff, |policy| policy(request, error))
    }

    /// Returns the span of one reconcile: log lines of the reconciler carry its fields.
    fn span(&self, request: &Request<T>) -> tracing::Span {
        tracing::info_span!(
            "reconcile",
            controller = %self.controller,
            key = %Guarded(request.key()),
            attempt = request.attempt(),
            trigger = %request.trigger(),
        )
    }
}

impl<T: Target, R> Clone for Worker<T, R> {
    fn clone(&self) -> Self {
        Self {
            controller: Arc::clone(&self.controller),
            queue: self.queue.clone(),
            turns: self.turns.clone(),
            options: Arc::clone(&self.options),
            reconciler: Arc::clone(&self.reconciler),
            cancellation: self.cancellation.clone(),
        }
    }
}

/// Returns the delay in whole milliseconds: many delays are the difference of two clock readings.
/// A delay below one is not rounded.
fn rounded(delay: Duration) -> Duration {
    if delay < Duration::from_millis(1) {
        return delay;
    }
    let delay = delay.saturating_add(Duration::from_micros(500));
    Duration::new(delay.as_secs(), delay.subsec_millis() * 1_000_000)
}

#[cfg(test)]
mod tests;
