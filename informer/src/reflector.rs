//! [`Reflector`]: lists and watches a server, and writes the results as deltas to the queue.
//!
//! The pure state machine in [`state`] decides the next request and the wait before it.
//!
//! It promises that the queue receives the server's events in order and without a gap: each watch
//! continues after the last queued version, and a new full state closes a gap that cannot be read.
//! It never gives up; every failure leads to another request.
//!
//! The requests are sent one at a time by one task, so the state needs no lock.

mod follow;
mod gather;
mod health;
mod list;
mod nameless;
mod outage;
pub(crate) mod state;

use std::sync::Arc;
use std::time::Duration;

use homeostat_core::{user_code, user_future};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

pub(crate) use self::health::{ErrorHandler, Health};
use self::state::{NextRequest, State};
use crate::delta::newest_object;
use crate::delta_fifo::DeltaFifo;
use crate::list_watch::{Decoded, ListWatch};
use crate::object::{Object, ResourceVersion};
use crate::status::{ReflectorError, ReflectorPhase};
use crate::store::Store;

/// Lists and watches one collection of a server until it is dropped.
///
/// It owns the read side of the pipeline; the write side of the store belongs to the consumer of
/// the queue. Dropping it closes the open request.
pub(crate) struct Reflector<K: Object> {
    /// The source of the objects; the author's code, so a panic is caught around each step.
    pub(crate) list_watch: Arc<dyn ListWatch<K>>,
    /// The queue to the store. The reflector is the producer that waits for room in it.
    pub(crate) fifo: Arc<DeltaFifo<K>>,
    /// Only read: an unchanged object is taken from the store, so that memory holds one copy.
    pub(crate) store: Arc<Store<K>>,
    /// The position in the server's history. Changed only between two awaits.
    pub(crate) state: State,
    pub(crate) health: Arc<Health>,
}

/// After this many requests without a wait the reflector yields to other tasks: a list-watch that
/// answers at once would otherwise keep a thread of the runtime.
///
/// Not after each one: a task that has yielded waits for the next task of its thread, which may be
/// a handler that blocks.
const YIELD: u32 = 128;

/// The error text for a state that is older than requested.
const TOO_OLD: &str = "it is older than the requested version";

// === impl Reflector ===

impl<K: Object> Reflector<K> {
    /// Runs the reflector. Never returns.
    ///
    /// # Cancel safety
    /// Dropping the future ends the reflector. Each event is queued in the same step in which it
    /// was read from the stream, so no event is half processed.
    pub(crate) async fn run(mut self) {
        let mut without_wait = 0_u32;
        loop {
            let step = user_future("list-watch", self.step()).await;
            let pause = step.unwrap_or_else(|_| self.panicked());
            without_wait = if pause.is_zero() { without_wait.wrapping_add(1) } else { 0 };
            if !pause.is_zero() {
                let until = Instant::now().checked_add(pause);
                self.health.enter(ReflectorPhase::Waiting { until });
                sleep(pause).await;
            } else if without_wait.is_multiple_of(YIELD) {
                yield_now().await;
            }
        }
    }

    /// Sends one request, reads the response to its end, and returns the wait before the next one.
    async fn step(&mut self) -> Duration {
        match self.state.next_request() {
            NextRequest::List(request) => {
                self.health.enter(ReflectorPhase::Listing);
                self.list(request).await
            }
            NextRequest::WatchList(request) => {
                self.health.enter(ReflectorPhase::WatchListing);
                self.watch_list(&request).await
            }
            NextRequest::Watch(request) => {
                self.health.enter(ReflectorPhase::Watching);
                self.watch(&request).await
            }
            NextRequest::Probe(request) => {
                self.health.enter(ReflectorPhase::Listing);
                self.probe(&request).await
            }
        }
    }

    /// Reports a panic. The list-watch and its decoder are the author's code.
    fn panicked(&mut self) -> Duration {
        let target = user_code("list-watch", || self.list_watch.target());
        let target = target.unwrap_or_else(|_| Arc::clone(self.health.name()));
        self.failed(ReflectorError::Panicked { target });
        self.state.panicked()
    }

    /// Records an error and calls the author's error handler.
    fn failed(&self, error: impl Into<ReflectorError>) {
        self.health.failed(error.into());
    }

    /// Queues a full state. The health shows success only after it is queued.
    fn gathered(&mut self, objects: Vec<Decoded<K>>, version: ResourceVersion) {
        self.state.gathered(version.clone());
        if !self.list_watch.is_ordered()
            && let Some(newest) = newest_object(&objects)
        {
            self.state.queued(newest);
        }
        self.health.full_sync(&version);
        self.fifo.replace(objects, version);
        self.health.succeeded();
    }
}
