//! Brings events, and versions, to handlers: each has a task and a queue of its own, so that none waits for another.
//!
//! The queues have no bound. A bound would stall the informer, and with it every other handler, or deadlock a handler
//! that waits for what the store has not got yet. They are measured instead: [`Subscription::queued`].

use std::{
    fmt,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    event::Event,
    object::{Object, ResourceVersion},
    store::{Entry, slab::Frozen},
};

/// After this many events in a row a handler lets other tasks run.
const YIELD: usize = 128;

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
    messages: mpsc::UnboundedSender<Message<K>>,
    handler: Arc<Handler>,
    wants: Wants,
}

#[derive(Clone, Copy, PartialEq)]
enum Wants {
    Events,
    Versions,
}

/// The author's code.
pub(crate) enum Callback<K: Object> {
    Events(Box<dyn FnMut(Event<K>) + Send>),
    Versions(Box<dyn FnMut(&ResourceVersion) + Send>),
}

/// What a handler's task works on.
pub(crate) struct HandlerTask<K: Object> {
    messages: mpsc::UnboundedReceiver<Message<K>>,
    handler: Arc<Handler>,
    callback: Callback<K>,
}

enum Message<K: Object> {
    Events(Vec<Event<K>>),
    /// What was there when the handler was added.
    Snapshot(Frozen<Entry<K>>),
    Version(ResourceVersion),
    /// All that was there at first has been sent.
    Synced,
}

/// What a handler's task and its subscription share.
struct Handler {
    name: Arc<str>,
    /// Events that are queued and not handled yet.
    queued: AtomicUsize,
    panics: AtomicU64,
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

/// Makes an outlet, the task that reads from it, and the subscription that owns it.
pub(crate) fn handler<K: Object>(
    name: Arc<str>,
    stop: &CancellationToken,
    callback: Callback<K>,
) -> (Outlet<K>, HandlerTask<K>, Subscription) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound would stall the informer; `Handler::queued` measures the depth"
    )]
    let (sender, receiver) = mpsc::unbounded_channel();
    let handler = Arc::new(Handler {
        name,
        queued: AtomicUsize::new(0),
        panics: AtomicU64::new(0),
        removed: stop.child_token(),
        phase: Mutex::new(Phase::Waiting),
        synced: watch::Sender::new(false),
        finished: CancellationToken::new(),
    });
    let wants = match callback {
        Callback::Events(_) => Wants::Events,
        Callback::Versions(_) => Wants::Versions,
    };
    (
        Outlet { messages: sender, handler: Arc::clone(&handler), wants },
        HandlerTask { messages: receiver, handler: Arc::clone(&handler), callback },
        Subscription { handler },
    )
}

// === impl Subscription ===

impl Subscription {
    /// Removes the handler, and waits until it has returned from its last call. What is queued is dropped.
    ///
    /// # Cancel safety
    /// The handler is removed either way; only the waiting ends.
    pub async fn remove(self) {
        self.handler.removed.cancel();
        if *self.handler.phase.lock() == Phase::Running {
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
        *self.handler.synced.borrow()
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
            (Wants::Events, _) if now.len() > 0 => outlet.send(now.len(), Message::Snapshot(now)),
            (Wants::Versions, Some(version)) => outlet.send(1, Message::Version(version)),
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

    /// Queues what happened for every handler. Forgets handlers that are gone.
    pub(crate) fn send(&mut self, events: Vec<Event<K>>, versions: &[ResourceVersion]) {
        self.of_events.retain(|outlet| !outlet.messages.is_closed());
        self.of_versions.retain(|outlet| !outlet.messages.is_closed());
        if !events.is_empty()
            && let Some((last, others)) = self.of_events.split_last()
        {
            for outlet in others {
                outlet.events(events.clone());
            }
            last.events(events);
        }
        for outlet in &self.of_versions {
            for version in versions {
                outlet.send(1, Message::Version(version.clone()));
            }
        }
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
    pub(crate) fn synced(&self) {
        self.send(0, Message::Synced);
    }

    fn events(&self, events: Vec<Event<K>>) {
        self.send(events.len(), Message::Events(events));
    }

    fn send(&self, count: usize, message: Message<K>) {
        self.handler.queued.fetch_add(count, Ordering::Relaxed);
        if self.messages.send(message).is_err() {
            // The handler is being removed: nobody counts any more.
            self.handler.queued.store(0, Ordering::Relaxed);
        }
    }
}

// === impl HandlerTask ===

impl<K: Object> HandlerTask<K> {
    /// Calls the handler with every event until it is removed or its informer is gone.
    pub(crate) async fn run(mut self) {
        let handler = Arc::clone(&self.handler);
        if !handler.begin() {
            return;
        }
        let mut in_a_row = 0;
        loop {
            let message = tokio::select! {
                biased;
                () = handler.removed.cancelled() => return,
                message = self.messages.recv() => message,
            };
            let Some(message) = message else { return };
            if self.take(&handler, message, &mut in_a_row).await.is_break() {
                return;
            }
        }
    }

    async fn take(
        &mut self,
        handler: &Handler,
        message: Message<K>,
        in_a_row: &mut usize,
    ) -> ControlFlow<()> {
        match message {
            Message::Events(events) => {
                for event in events {
                    handler.turn(in_a_row).await?;
                    self.event(event);
                }
            }
            Message::Snapshot(frozen) => {
                for (_, entry) in frozen.iter() {
                    handler.turn(in_a_row).await?;
                    initial_events(entry).for_each(|event| self.event(event));
                }
            }
            Message::Version(version) => {
                handler.turn(in_a_row).await?;
                self.call(|callback| callback.version(&version));
            }
            Message::Synced => {
                handler.synced.send_replace(true);
            }
        }
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: Event<K>) {
        self.call(|callback| callback.event(event));
    }

    fn call(&mut self, author: impl FnOnce(&mut Callback<K>)) {
        if catch_unwind(AssertUnwindSafe(|| author(&mut self.callback))).is_err() {
            self.handler.panics.fetch_add(1, Ordering::Relaxed);
            let name = &*self.handler.name;
            tracing::error!(handler = name, "handler panicked; it goes on with the next event");
        }
    }
}

/// However the task ends, also if it never began: the handler gets no further event.
impl<K: Object> Drop for HandlerTask<K> {
    fn drop(&mut self) {
        // What the callback holds goes first, so that it is gone when `remove` returns, even if its drop panics.
        let callback = std::mem::replace(&mut self.callback, Callback::Events(Box::new(|_| {})));
        if catch_unwind(AssertUnwindSafe(|| drop(callback))).is_err() {
            self.handler.panics.fetch_add(1, Ordering::Relaxed);
        }
        *self.handler.phase.lock() = Phase::Finished;
        self.handler.queued.store(0, Ordering::Relaxed);
        self.handler.finished.cancel();
    }
}

// === impl Callback ===

impl<K: Object> Callback<K> {
    fn event(&mut self, event: Event<K>) {
        if let Self::Events(callback) = self {
            callback(event);
        }
    }

    fn version(&mut self, version: &ResourceVersion) {
        if let Self::Versions(callback) = self {
            callback(version);
        }
    }
}

/// What a handler is told of an object that is there already.
fn initial_events<K: Object>(entry: &Entry<K>) -> impl Iterator<Item = Event<K>> {
    let added = |object: &Arc<K>| Event::Added { object: Arc::clone(object), initial: true };
    let (known, opaque) = match entry {
        Entry::Fits(object) => (Some(added(object)), None),
        Entry::Opaque { metadata, last_known } => {
            let metadata = Arc::clone(metadata);
            let opaque = Event::Opaque { last_known: last_known.clone(), metadata };
            (last_known.as_ref().map(added), Some(opaque))
        }
    };
    known.into_iter().chain(opaque)
}

// === impl Handler ===

impl Handler {
    /// Takes one from the queue's count; lets others run now and then. Returns whether the handler is still wanted.
    async fn turn(&self, in_a_row: &mut usize) -> ControlFlow<()> {
        self.queued.fetch_sub(1, Ordering::Relaxed);
        *in_a_row += 1;
        if *in_a_row == YIELD {
            *in_a_row = 0;
            tokio::task::yield_now().await;
        }
        if self.removed.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether the handler is to be called at all.
    fn begin(&self) -> bool {
        let mut phase = self.phase.lock();
        let wanted = *phase == Phase::Waiting && !self.removed.is_cancelled();
        *phase = if wanted { Phase::Running } else { Phase::Finished };
        wanted
    }
}
