//! The loop that every actor runs: changes come in, requests go out.

use std::{fmt::Debug, hash::Hash, panic, pin::pin};

use futures::{
    FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream::FuturesUnordered,
};
use kube_client::Result;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{MAX_IN_FLIGHT, work::Work};

/// What an actor does, without the waiting.
pub(super) trait Role: Send + 'static {
    /// What it has to look at, one at a time.
    type Key: Clone + Debug + Eq + Hash + Send;
    /// What it learns from the server unasked.
    type Change: Send;
    /// What it learns from a request.
    type Answer: Send + 'static;

    /// Something has happened: what is to be looked at goes into `work`.
    fn observe(&mut self, change: Self::Change, work: &mut Work<Self::Key>);

    /// Whether it knows enough to act.
    fn is_ready(&self) -> bool {
        true
    }

    /// What to do about a key now.
    fn next(&mut self, key: &Self::Key, now: Instant) -> Next<Self::Answer>;

    /// A request has ended. Whether it did what it was to do; if not, the key is looked at again, with back-off.
    fn end(
        &mut self,
        key: &Self::Key,
        result: Result<Self::Answer>,
        work: &mut Work<Self::Key>,
    ) -> bool;
}

/// What to do about a key.
pub(super) enum Next<A> {
    Nothing,
    /// Nothing before this time.
    Later(Instant),
    Request(BoxFuture<'static, Result<A>>),
}

/// An actor at work. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Actor {
    /// One task, aborted when this is dropped.
    tasks: JoinSet<()>,
}

// === impl Actor ===

impl Actor {
    /// Starts one that has `work` to do from the beginning.
    pub(super) fn start<R: Role>(
        role: R,
        work: Work<R::Key>,
        changes: impl Stream<Item = R::Change> + Send + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(run(role, work, changes));
        Self { tasks }
    }

    /// Ends it and waits until it is gone. Panics if it had.
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
    mut work: Work<R::Key>,
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
                    // Most often somebody else was faster; what comes of it is seen in the next look.
                    tracing::debug!(?key, %error, "an actor's request failed");
                }
                let done = role.end(&key, result, &mut work);
                work.finish(key, !done, Instant::now());
            }
            Some(change) = changes.next() => role.observe(change, &mut work),
            () = sleep_until(deadline.unwrap_or(now)), if deadline.is_some() => {}
            // Nothing to follow and nothing to do: nothing will ever come.
            else => return,
        }
    }
}
