//! The event loop of every actor: it receives changes and sends requests.

use std::fmt::Debug;
use std::hash::Hash;
use std::panic;
use std::pin::pin;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt as _};
use kube_client::Result;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::MAX_IN_FLIGHT;
use super::work_queue::WorkQueue;

/// The logic of an actor, without I/O and waiting.
pub(super) trait Role: Send + 'static {
    /// The key of one unit of work.
    type Key: Clone + Debug + Eq + Hash + Send;
    /// A change reported by a watch.
    type Change: Send;
    /// The result of a request.
    type Answer: Send + 'static;

    /// Handles a change: adds the affected keys to `work`.
    fn observe(&mut self, change: Self::Change, work: &mut WorkQueue<Self::Key>);

    /// Returns true once the actor has the state that it needs to act.
    fn is_ready(&self) -> bool {
        true
    }

    /// Decides the next step for a key.
    fn next(&mut self, key: &Self::Key, now: Instant) -> Next<Self::Answer>;

    /// Handles the end of a request. Returns true if it reached its goal; otherwise the key is
    /// retried with backoff.
    fn end(
        &mut self,
        key: &Self::Key,
        result: Result<Self::Answer>,
        work: &mut WorkQueue<Self::Key>,
    ) -> bool;
}

/// The next step for a key.
pub(super) enum Next<A> {
    Nothing,
    /// The key is due at this time.
    Later(Instant),
    Request(BoxFuture<'static, Result<A>>),
}

/// A running actor. Dropping it stops the actor.
#[derive(Debug)]
pub(super) struct Actor {
    /// One task, aborted when this is dropped.
    tasks: JoinSet<()>,
}

// === impl Actor ===

impl Actor {
    /// Starts an actor with initial `work`.
    pub(super) fn start<R: Role>(
        role: R,
        work: WorkQueue<R::Key>,
        changes: impl Stream<Item = R::Change> + Send + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(run(role, work, changes));
        Self { tasks }
    }

    /// Stops the actor and waits for its end. Panics if its task has panicked.
    pub(super) async fn stop(mut self) {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                panic::resume_unwind(panic);
            }
        }
    }
}

async fn run<R: Role>(
    mut role: R,
    mut work: WorkQueue<R::Key>,
    changes: impl Stream<Item = R::Change> + Send,
) {
    let mut changes = pin!(changes);
    let mut in_flight = FuturesUnordered::new();
    loop {
        let now = Instant::now();
        while role.is_ready()
            && in_flight.len() < MAX_IN_FLIGHT
            && let Some(key) = work.next(now)
        {
            match role.next(&key, now) {
                Next::Nothing => work.finish(key, false, now),
                Next::Later(time) => {
                    work.add_at(key.clone(), time);
                    work.finish(key, false, now);
                }
                Next::Request(request) => in_flight.push(request.map(|result| (key, result))),
            }
        }
        let deadline = work.deadline().filter(|_| in_flight.len() < MAX_IN_FLIGHT);
        tokio::select! {
            biased;
            Some((key, result)) = in_flight.next() => {
                if let Err(error) = &result {
                    // Usually a conflict with another client; the next step uses the new state.
                    tracing::debug!(?key, %error, "request of a cluster actor failed");
                }
                let done = role.end(&key, result, &mut work);
                work.finish(key, !done, Instant::now());
            }
            Some(change) = changes.next() => role.observe(change, &mut work),
            () = sleep_until(deadline.unwrap_or(now)), if deadline.is_some() => {}
            // The changes have ended and no work is left.
            else => return,
        }
    }
}
