//! The steps of the shutdown, each with a deadline.
//!
//! Order of a shutdown:
//!
//! 1. Subscriptions end, then informers stop: no event adds a key any more. Each part has 3 s.
//! 2. Workers empty their queues, and the runnables end, until the drain timeout.
//! 3. What is left is cancelled, and 1 s later dropped. A task that blocks its thread is left after
//!    3 s more.
//! 4. The events of the work that wait are sent, the lease is released unless a task is left, and
//!    the events of the election are sent.
//! 5. The services end, such as the server of the probes: it answers until here.
//!
//! A part that does not end in its time is named in the error and does not hold the others up.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, timeout};

use super::runnable::Running;
use super::workers::{Workers, join};
use super::{EventRecorder, Manager, RunError};

/// The time for mappers, informers and services to end. Code that needs more blocks its thread.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// The time between the cancellation of the remaining reconciles and dropping them.
const AFTER_CANCELLATION: Duration = Duration::from_secs(1);

impl Manager {
    /// Ends the subscriptions, then stops all informers. No event adds a key after that.
    ///
    /// # Errors
    ///
    /// [`RunError::Hung`] with the names of the parts that did not end.
    pub(super) async fn stop_informers(&mut self) -> Result<(), RunError> {
        let mappers = self.controllers.iter_mut().map(|controller| {
            let name = format!("a mapper of controller {}", controller.name());
            within(name, controller.unsubscribe())
        });
        let mut hung: BTreeSet<String> = join_all(mappers).await.into_iter().flatten().collect();
        // Those of a controller that was added and has not synced yet are among them.
        let informers = self.handle.informers();
        let own = informers
            .iter()
            .map(|informer| within(format!("informer {}", informer.name()), informer.stop()));
        hung.extend(join_all(own).await.into_iter().flatten());
        hung.extend(within("an informer of the factory".to_owned(), self.informers.stop()).await);
        hung_error(hung.into_iter().collect())
    }

    /// Waits for the queued keys and the runnables until `deadline`, then cancels the reconciles,
    /// then drops them.
    ///
    /// The order matters: a reconcile that has time left must not be cancelled.
    ///
    /// # Errors
    ///
    /// [`RunError::Undrained`] with the keys that are left, [`RunError::Hung`] with the runnables,
    /// or the error of a task, in this order of precedence.
    pub(super) async fn drain(
        &self,
        deadline: Instant,
        running: &Running,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        running.stop.cancel();
        let left = deadline.saturating_duration_since(Instant::now());
        let drains = self.controllers.iter().map(|controller| controller.drain(left));
        let left: Vec<String> = join_all(drains).await.into_iter().flatten().collect();
        for controller in &self.controllers {
            controller.cancellation().cancel();
        }
        let last = deadline.max(Instant::now() + AFTER_CANCELLATION);
        let joined = tokio::time::timeout_at(last, join(workers)).await;
        let mut hung = running.names();
        if joined.is_err() && !abort(workers).await && hung.is_empty() {
            hung.push("a task that blocks its thread".to_owned());
        }
        if !left.is_empty() {
            let (keys, timeout) = (left.len(), self.drain_timeout);
            tracing::warn!(keys, first = left[0], "drain timeout has passed, dropping keys");
            return Err(RunError::Undrained { keys, timeout, left });
        }
        hung_error(hung)?;
        tracing::info!("all controllers have ended");
        joined.unwrap_or(Ok(()))
    }

    /// Drops the controllers that were added too late, and refuses further ones.
    pub(super) fn refuse_added(&mut self) {
        self.added.close();
        while let Ok(controller) = self.added.try_recv() {
            let controller = controller.name();
            tracing::error!(%controller, "the manager is stopping, dropping the controller");
        }
    }

    /// Sends the events of the work that wait: their client may carry the fence, so this comes
    /// before the release of the lease.
    ///
    /// A recorder ends its pauses at once, so that this takes one attempt per recorder at most.
    pub(super) async fn flush_events(&self) {
        let election = self.election_events.as_ref();
        let of_work = self.recorders.iter().filter(|recorder| {
            !election.is_some_and(|of_election| of_election.is_clone_of(recorder))
        });
        join_all(of_work.map(EventRecorder::shut_down)).await;
    }

    /// Sends the events of the election, the end of leadership among them.
    pub(super) async fn flush_election_events(&self) {
        if let Some(events) = &self.election_events {
            events.shut_down().await;
        }
    }
}

/// Ends the services, and aborts those that do not end in time.
///
/// # Errors
///
/// [`RunError::Hung`] with the names of the services that did not end within 3 s.
pub(super) async fn end_services(running: &Running, tasks: &mut Workers) -> Result<(), RunError> {
    running.stop.cancel();
    let Ok(joined) = timeout(STOP_TIMEOUT, join(tasks)).await else {
        let hung = running.names();
        abort(tasks).await;
        return hung_error(hung);
    };
    joined
}

/// Aborts `tasks`, and waits until they have ended. Returns false if one has not ended in 3 s: an
/// abort ends a task at its next `await`, and a task that blocks its thread does not reach it.
pub(super) async fn abort(tasks: &mut Workers) -> bool {
    tasks.abort_all();
    // An error of the inner result is that of an aborted task.
    let has_ended = timeout(STOP_TIMEOUT, join(tasks)).await.is_ok();
    if !has_ended {
        tracing::error!(tasks = tasks.len(), "aborted tasks block their threads");
    }
    has_ended
}

/// Returns the deadline `timeout` from now, or the end of time as far as the clock can express it.
pub(super) fn deadline_after(timeout: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + timeout.min(FAR)
}

/// Waits for `step` for at most [`STOP_TIMEOUT`]. Returns `name` if it did not end.
async fn within(name: String, step: impl Future<Output = ()>) -> Option<String> {
    if timeout(STOP_TIMEOUT, step).await.is_ok() {
        return None;
    }
    tracing::error!(part = name, "did not stop in time, going on without it");
    Some(name)
}

/// Returns an error if there is a part that did not end.
fn hung_error(parts: Vec<String>) -> Result<(), RunError> {
    if parts.is_empty() { Ok(()) } else { Err(RunError::Hung { parts }) }
}
