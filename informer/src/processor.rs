//! [`Processor`]: delivers events and versions to handlers. Each handler has a task and a queue of
//! its own, so that none waits for another.
//!
//! The queues have no bound. A bound would stall the informer and every other handler, or deadlock
//! a handler that waits for something that the store has not reached. They are measured instead:
//! [`Subscription::queued`]. client-go's `processorListener` has no bound either. A handler that
//! need not see every state can ask for [fewer events](HandlerOptions::coalesce).
//!
//! ```text
//!  step of the store ─▶ Processor ─┬─▶ Listener ─▶ Channel ─▶ HandlerTask ─▶ handler "replicaset"
//!                                  └─▶ Listener ─▶ Channel ─▶ HandlerTask ─▶ handler "metrics"
//! ```
//!
//! The processor runs under the store's writer lock and only moves messages: the cost of a step is
//! one clone of its events per handler, less one. Everything that is the author's code runs in the
//! tasks.
//!
//! A handler gets a snapshot of the objects, the mark of the initial list, and each later change,
//! in this order and without a gap: it is added between two steps.

mod calls;
mod channel;
mod filter;
mod handler;
#[cfg(test)]
mod interleavings;
mod options;
pub mod predicate;
mod queue;
mod subscription;
mod task;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use self::calls::Calls;
use self::channel::Channel;
use self::filter::Filter;
pub(crate) use self::handler::Handler;
pub use self::options::HandlerOptions;
use self::options::SLOW;
use self::queue::{Message, Queue, SharedEvents};
pub use self::subscription::Subscription;
use self::task::{Callback, Resync};
pub(crate) use self::task::{HandlerTask, drop_events};
use crate::event::Event;
use crate::metrics::Metrics;
use crate::object::{Object, ResourceVersion};
use crate::store::cow_vec::Frozen;
use crate::store::{Entry, Store};

/// The queues of all handlers, in the order in which they were added (client-go's
/// `sharedProcessor`).
///
/// Protected by the lock of the applier. A handler that has finished stays in the lists until the
/// next `send` or `add`, and costs only its place.
pub(crate) struct Processor<K: Object> {
    /// Handlers that have finished stay until the next `send` or `add`.
    of_events: Vec<Listener<K>>,
    /// Apart from the others, because they get no events.
    of_versions: Vec<Listener<K>>,
}

/// The writing end of a handler's queue (client-go's `processorListener`).
///
/// Held by the [`Processor`] alone. A push to a handler that has finished returns the message as
/// garbage.
pub(crate) struct Listener<K: Object> {
    channel: Arc<Channel<K>>,
    handler: Arc<Handler>,
    wants: Wants,
}

/// The kind of messages that a handler gets. Fixed when it is created.
#[derive(Clone, Copy, PartialEq)]
enum Wants {
    Events,
    Versions,
}

/// The informer that a handler belongs to.
///
/// `stop` is the parent of each handler's token: when the informer stops, all its handlers are
/// removed.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) stop: &'a CancellationToken,
    pub(crate) metrics: &'a Metrics,
}

/// Creates a listener, the task that reads from it, and the subscription that owns it.
///
/// The caller adds the listener to the processor and spawns the task. A task that is never spawned
/// closes its queue when it is dropped.
pub(crate) fn handler<K: Object>(
    options: HandlerOptions<K>,
    owner: Owner<'_>,
    store: &Arc<Store<K>>,
    callback: Box<dyn FnMut(Event<K>) + Send>,
) -> (Listener<K>, HandlerTask<K>, Subscription) {
    let HandlerOptions { name, filter, updates, resync, coalesce, slow_after } = options;
    let filter = filter.map(Filter::new);
    let callback = Callback::Events { handler: callback, filter, updates };
    let resync = resync.map(|period| Resync { period, store: Arc::clone(store) });
    let (listener, mut task, subscription) =
        assemble(Handler::new(name, owner), Queue::new(coalesce), callback, resync);
    task.calls = Calls::new(slow_after);
    (listener, task, subscription)
}

/// Creates the same for a handler of versions.
pub(crate) fn version_handler<K: Object>(
    name: Arc<str>,
    owner: Owner<'_>,
    callback: Box<dyn FnMut(&ResourceVersion) + Send>,
) -> (Listener<K>, HandlerTask<K>, Subscription) {
    assemble(Handler::new(name, owner), Queue::new(false), Callback::Versions(callback), None)
}

/// The three share one [`Handler`]; listener and task share one [`Channel`]. Dropping the task
/// closes the channel.
fn assemble<K: Object>(
    handler: Handler,
    queue: Queue<K>,
    callback: Callback<K>,
    resync: Option<Resync<K>>,
) -> (Listener<K>, HandlerTask<K>, Subscription) {
    let wants = match callback {
        Callback::Events { .. } => Wants::Events,
        Callback::Versions(_) => Wants::Versions,
    };
    let (handler, calls) = (Arc::new(handler), Calls::new(SLOW));
    let channel = Arc::new(Channel::new(queue));
    (
        Listener { channel: Arc::clone(&channel), handler: Arc::clone(&handler), wants },
        HandlerTask { channel, handler: Arc::clone(&handler), callback, calls, resync },
        Subscription::new(handler),
    )
}

/// The work of a handler's resync timer, run by hand.
#[cfg(test)]
pub(crate) type ResyncByHand<K> = Box<dyn Fn(&Store<K>)>;

// === impl Processor ===

impl<K: Object> Processor<K> {
    /// Returns a processor without handlers.
    pub(crate) fn new() -> Self {
        Self { of_events: Vec::new(), of_versions: Vec::new() }
    }

    /// Adds a handler: it gets a snapshot of the objects, and then every change, without a gap or a
    /// repetition. Forgets handlers that have finished.
    pub(crate) fn add(
        &mut self,
        listener: Listener<K>,
        now: Frozen<Entry<K>>,
        version: Option<ResourceVersion>,
        synced: bool,
    ) {
        self.forget_finished();
        match (listener.wants, version) {
            (Wants::Events, _) if now.len() > 0 => listener.send(Message::Snapshot(now)),
            (Wants::Versions, Some(version)) => listener.send(Message::Version(version)),
            _ => {}
        }
        if synced {
            listener.mark_synced();
        }
        match listener.wants {
            Wants::Events => self.of_events.push(listener),
            Wants::Versions => self.of_versions.push(listener),
        }
    }

    /// Queues events and versions for every handler. Forgets handlers that have finished.
    ///
    /// Returns the superfluous events. They and the batch are dropped after the locks are released.
    pub(crate) fn send(
        &mut self,
        events: &SharedEvents<K>,
        versions: &[ResourceVersion],
    ) -> Vec<Event<K>> {
        self.forget_finished();
        let mut garbage = Vec::new();
        if !events.is_empty() {
            for listener in &self.of_events {
                garbage.extend(listener.events(events));
            }
        }
        for listener in &self.of_versions {
            for version in versions {
                listener.send(Message::Version(version.clone()));
            }
        }
        garbage
    }

    /// Forgets the handlers that have finished.
    fn forget_finished(&mut self) {
        let is_alive = |listener: &Listener<K>| !listener.handler.finished.is_cancelled();
        self.of_events.retain(is_alive);
        self.of_versions.retain(is_alive);
    }

    /// The handlers of events.
    ///
    /// Handlers of versions are not among them: they have no status.
    pub(crate) fn handlers(&self) -> Vec<Arc<Handler>> {
        let alive =
            self.of_events.iter().filter(|listener| !listener.handler.finished.is_cancelled());
        alive.map(|listener| Arc::clone(&listener.handler)).collect()
    }

    /// Queues the mark that ends the initial list, for every handler.
    pub(crate) fn mark_synced(&self) {
        for listener in self.of_events.iter().chain(&self.of_versions) {
            listener.mark_synced();
        }
    }
}

// === impl Listener ===

impl<K: Object> Listener<K> {
    fn mark_synced(&self) {
        self.send(Message::Synced);
    }

    fn send(&self, message: Message<K>) {
        self.channel.send(message, &self.handler);
    }

    #[cfg(test)]
    pub(crate) fn resync_by_hand(&self) -> ResyncByHand<K> {
        let (channel, handler) = (Arc::clone(&self.channel), Arc::clone(&self.handler));
        Box::new(move |store| channel.resync(store, &handler))
    }

    /// Queues events, and returns the superfluous ones.
    ///
    /// The notification comes after the release of the queue's lock, so that the woken task finds
    /// it free.
    fn events(&self, events: &SharedEvents<K>) -> Vec<Event<K>> {
        let mut queue = self.channel.queue.lock();
        let pushed = queue.push_events(events);
        // Under the lock, so that the task does not take from the count what is not in it yet.
        self.handler.queued.fetch_add(pushed.added, Ordering::Relaxed);
        drop(queue);
        self.channel.pushed.notify_one();
        pushed.garbage
    }
}
