//! Brings events, and versions, to handlers: each has a task and a queue of its own, so that none waits for another.
//!
//! The queues have no bound. A bound would stall the informer, and with it every other handler, or deadlock a handler
//! that waits for what the store has not got yet. They are measured instead: [`Subscription::queued`]; and a handler
//! that need not see every state can ask for [fewer](HandlerOptions::coalesce).

mod filter;
mod options;
mod queue;
mod task;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub use self::options::HandlerOptions;
pub(crate) use self::task::HandlerTask;
use self::{
    filter::Filter,
    queue::{Message, Queue},
    task::{Callback, Resync},
};
use crate::{
    event::Event,
    inside::is_inside,
    metrics::{HandlerMetrics, Metrics, quietly},
    object::{Object, ResourceVersion},
    shared::HandlerStatus,
    store::{Entry, Store, slab::Frozen},
};

/// A registered handler. Dropping it asks for the handler's removal.
#[must_use = "dropping a subscription removes its handler"]
pub struct Subscription {
    handler: Arc<Handler>,
}

/// The queues of all handlers, in the order in which they were added.
pub(crate) struct Outlets<K: Object> {
    of_events: Vec<Outlet<K>>,
    of_versions: Vec<Outlet<K>>,
}

/// The writing end of a handler's queue.
pub(crate) struct Outlet<K: Object> {
    channel: Arc<Channel<K>>,
    handler: Arc<Handler>,
    wants: Wants,
}

#[derive(Clone, Copy, PartialEq)]
enum Wants {
    Events,
    Versions,
}

/// A handler's queue, between who writes to the store and the handler's task.
pub(crate) struct Channel<K: Object> {
    queue: Mutex<Queue<K>>,
    /// Told after each push: the one task may be waiting.
    pushed: Notify,
}

/// What a handler's task and its subscription share.
pub(crate) struct Handler {
    name: Arc<str>,
    /// Events that are queued and not handled yet.
    queued: AtomicUsize,
    panics: AtomicU64,
    metrics: HandlerMetrics,
    /// Cancelled when the handler is to get no further event.
    removed: CancellationToken,
    phase: Mutex<Phase>,
    synced: watch::Sender<bool>,
    /// Cancelled when the handler has got its last event.
    finished: CancellationToken,
}

/// `Waiting` → `Running` → `Finished`, or `Waiting` → `Finished`.
#[derive(PartialEq)]
enum Phase {
    /// The task has not begun; if it is removed now, it never calls its handler.
    Waiting,
    Running,
    Finished,
}

/// The informer that a handler belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) stop: &'a CancellationToken,
    pub(crate) metrics: &'a Metrics,
}

/// Makes an outlet, the task that reads from it, and the subscription that owns it.
pub(crate) fn handler<K: Object>(
    options: HandlerOptions<K>,
    owner: Owner<'_>,
    store: &Arc<Store<K>>,
    callback: Box<dyn FnMut(Event<K>) + Send>,
) -> (Outlet<K>, HandlerTask<K>, Subscription) {
    let HandlerOptions { name, filter, resync, coalesce } = options;
    let callback = Callback::Events { handler: callback, filter: filter.map(Filter::new) };
    let resync = resync.map(|period| Resync { period, store: Arc::clone(store) });
    assemble(Handler::new(name, owner), Queue::new(coalesce), callback, resync)
}

/// The same for a handler of versions.
pub(crate) fn version_handler<K: Object>(
    name: Arc<str>,
    owner: Owner<'_>,
    callback: Box<dyn FnMut(&ResourceVersion) + Send>,
) -> (Outlet<K>, HandlerTask<K>, Subscription) {
    assemble(Handler::new(name, owner), Queue::new(false), Callback::Versions(callback), None)
}

fn assemble<K: Object>(
    handler: Handler,
    queue: Queue<K>,
    callback: Callback<K>,
    resync: Option<Resync<K>>,
) -> (Outlet<K>, HandlerTask<K>, Subscription) {
    let wants = match callback {
        Callback::Events { .. } => Wants::Events,
        Callback::Versions(_) => Wants::Versions,
    };
    let handler = Arc::new(handler);
    let channel = Arc::new(Channel { queue: Mutex::new(queue), pushed: Notify::new() });
    (
        Outlet { channel: Arc::clone(&channel), handler: Arc::clone(&handler), wants },
        HandlerTask { channel, handler: Arc::clone(&handler), callback, resync },
        Subscription { handler },
    )
}

/// Does what a handler's timer does.
#[cfg(test)]
pub(crate) type ResyncByHand<K> = Box<dyn Fn(&Store<K>)>;

// === impl Subscription ===

impl Subscription {
    /// Removes the handler, and waits until it has returned from its last call. What is queued is dropped.
    ///
    /// From inside of a handler, or of other code that an informer calls, it does not wait: it might wait for itself. If
    /// the handler is running then, that call is its last.
    ///
    /// # Cancel safety
    /// The handler is removed either way; only the waiting ends.
    pub async fn remove(self) {
        self.handler.removed.cancel();
        let is_running = *self.handler.phase.lock() == Phase::Running;
        if is_running && !is_inside() {
            self.handler.finished.cancelled().await;
        }
    }

    /// Waits until the handler has been called with everything that was there at first. Returns false if its informer
    /// stops before that.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub async fn synced(&self) -> bool {
        let mut synced = self.handler.synced.subscribe();
        tokio::select! {
            biased;
            result = synced.wait_for(|synced| *synced) => result.is_ok(),
            () = self.handler.finished.cancelled() => *self.handler.synced.borrow(),
        }
    }

    /// Whether the handler has been called with everything that was there at first.
    pub fn has_synced(&self) -> bool {
        self.handler.has_synced()
    }

    /// How many events wait for the handler.
    pub fn queued(&self) -> usize {
        self.handler.queued.load(Ordering::Relaxed)
    }

    /// How many times the handler panicked. Each panic costs it one event.
    pub fn panics(&self) -> u64 {
        self.handler.panics.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handler.removed.cancel();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("name", &self.handler.name)
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

// === impl Outlets ===

impl<K: Object> Outlets<K> {
    pub(crate) fn new() -> Self {
        Self { of_events: Vec::new(), of_versions: Vec::new() }
    }

    /// Adds a handler: what is there now, and then every change, without a gap or a repetition.
    pub(crate) fn add(
        &mut self,
        outlet: Outlet<K>,
        now: Frozen<Entry<K>>,
        version: Option<ResourceVersion>,
        synced: bool,
    ) {
        match (outlet.wants, version) {
            (Wants::Events, _) if now.len() > 0 => outlet.send(Message::Snapshot(now)),
            (Wants::Versions, Some(version)) => outlet.send(Message::Version(version)),
            _ => {}
        }
        if synced {
            outlet.synced();
        }
        match outlet.wants {
            Wants::Events => self.of_events.push(outlet),
            Wants::Versions => self.of_versions.push(outlet),
        }
    }

    /// Queues what happened for every handler; takes the events, and leaves what is to be dropped where nothing is
    /// locked. Forgets handlers that are gone.
    pub(crate) fn send(&mut self, events: &mut Vec<Event<K>>, versions: &[ResourceVersion]) {
        self.of_events.retain(|outlet| !outlet.handler.finished.is_cancelled());
        self.of_versions.retain(|outlet| !outlet.handler.finished.is_cancelled());
        if !events.is_empty()
            && let Some((last, others)) = self.of_events.split_last()
        {
            let mut garbage = Vec::new();
            for outlet in others {
                garbage.extend(outlet.events(events.clone()));
            }
            garbage.extend(last.events(std::mem::take(events)));
            *events = garbage;
        }
        for outlet in &self.of_versions {
            for version in versions {
                outlet.send(Message::Version(version.clone()));
            }
        }
    }

    /// The handlers of events.
    pub(crate) fn handlers(&self) -> Vec<Arc<Handler>> {
        let alive = self.of_events.iter().filter(|outlet| !outlet.handler.finished.is_cancelled());
        alive.map(|outlet| Arc::clone(&outlet.handler)).collect()
    }

    /// Tells every handler that what it was sent is all that was there at first.
    pub(crate) fn synced(&self) {
        for outlet in self.of_events.iter().chain(&self.of_versions) {
            outlet.synced();
        }
    }
}

// === impl Outlet ===

impl<K: Object> Outlet<K> {
    fn synced(&self) {
        self.send(Message::Synced);
    }

    fn send(&self, message: Message<K>) {
        self.channel.send(message, &self.handler);
    }

    #[cfg(test)]
    pub(crate) fn resync_by_hand(&self) -> ResyncByHand<K> {
        let (channel, handler) = (Arc::clone(&self.channel), Arc::clone(&self.handler));
        Box::new(move |store| store.resync(&channel, &handler))
    }

    /// Returns what is not needed.
    fn events(&self, events: Vec<Event<K>>) -> Vec<Event<K>> {
        let mut queue = self.channel.queue.lock();
        let pushed = queue.push_events(events);
        // Under the lock, so that the task does not take from the count what is not in it yet.
        self.handler.queued.fetch_add(pushed.added, Ordering::Relaxed);
        drop(queue);
        self.channel.pushed.notify_one();
        pushed.garbage
    }
}

// === impl Channel ===

impl<K: Object> Channel<K> {
    /// Tells the handler of all there is, once more.
    pub(crate) fn resync(&self, now: Frozen<Entry<K>>, handler: &Handler) {
        self.send(Message::Resync(now), handler);
    }

    fn send(&self, message: Message<K>, handler: &Handler) {
        let mut queue = self.queue.lock();
        let events = message.len();
        let refused = queue.push(message);
        if refused.is_none() {
            handler.queued.fetch_add(events, Ordering::Relaxed);
        }
        drop(queue);
        drop(refused);
        self.pushed.notify_one();
    }

    /// Waits for the next message.
    ///
    /// # Cancel safety
    /// It is taken in the same step in which the future completes.
    async fn pop(&self) -> Message<K> {
        loop {
            let message = self.queue.lock().pop();
            match message {
                Some(message) => return message,
                // One consumer: a push between the look above and this wait has left its permit.
                None => self.pushed.notified().await,
            }
        }
    }
}

// === impl Handler ===

impl Handler {
    fn new(name: Arc<str>, owner: Owner<'_>) -> Self {
        Self {
            metrics: owner.metrics.handler(&name),
            name,
            queued: AtomicUsize::new(0),
            panics: AtomicU64::new(0),
            removed: owner.stop.child_token(),
            phase: Mutex::new(Phase::Waiting),
            synced: watch::Sender::new(false),
            finished: CancellationToken::new(),
        }
    }

    fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Tells the metrics how many events are queued. A recorder is somebody else's code: nothing may be locked.
    #[expect(clippy::cast_precision_loss, reason = "no queue has 2^52 events")]
    pub(crate) fn show(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        quietly(|| self.metrics.queued.set(queued as f64));
    }

    fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        quietly(|| self.metrics.panics.increment(1));
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        HandlerStatus {
            name: Arc::clone(&self.name),
            queued: self.queued.load(Ordering::Relaxed),
            panics: self.panics.load(Ordering::Relaxed),
            synced: self.has_synced(),
        }
    }
}
