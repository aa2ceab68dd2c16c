//! [`HandlerTask`]: takes events from a handler's queue, and calls the handler.
//!
//! A panic of the author's code is caught, counted and logged, and the task continues with the next
//! event. Removal is checked before each object. When the task
//! ends, however it ends, its drop closes the queue and marks the handler as finished.
//!
//! The life of a task:
//!
//! 1. `begin`: if the handler was removed before the task ran for the first time, it ends here.
//! 2. One message at a time: a removal first, then a resync that is due, then the next message. The
//!    order of the `select!` is fixed (`biased`), so that a handler with a long queue still stops
//!    at once.
//! 3. After each 128 events it yields to the runtime.
//! 4. The drop, also by an abort or by the end of the runtime: the callback, the rest of the queue,
//!    the phase `Finished`, and then the signal for which `remove` waits.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeostat_core::user_code;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::calls::Calls;
use super::channel::Channel;
use super::filter::Filter;
use super::handler::{Handler, Phase};
use super::options::Matters;
use super::queue::{Message, SharedEvents, initial_events, redelivery};
use crate::callback::CallbackGuard;
use crate::event::Event;
use crate::object::{Object, ResourceVersion};
use crate::store::Store;

/// The author's code.
///
/// A handler has one callback, which one task calls: the author's code needs no lock and is never
/// called twice at the same time.
pub(super) enum Callback<K: Object> {
    /// The handler of events, its filter, and its predicate on updates.
    Events {
        handler: Box<dyn FnMut(Event<K>) + Send>,
        filter: Option<Filter<K>>,
        updates: Option<Matters<K>>,
    },
    /// The handler of versions; it has no filter.
    Versions(Box<dyn FnMut(&ResourceVersion) + Send>),
}

/// The task of one handler.
///
/// It owns the author's callback: dropping the task drops the callback, outside of every lock.
///
/// It holds no handle of the informer: an informer whose last handle is dropped ends although its
/// handlers run.
pub(crate) struct HandlerTask<K: Object> {
    pub(super) channel: Arc<Channel<K>>,
    pub(super) handler: Arc<Handler>,
    pub(super) callback: Callback<K>,
    pub(super) calls: Calls,
    pub(super) resync: Option<Resync<K>>,
}

/// The period of resyncs, and the store to read.
pub(super) struct Resync<K: Object> {
    pub(super) period: Duration,
    pub(super) store: Arc<Store<K>>,
}

/// After this many events without a pause a handler's task yields to other tasks.
///
/// A handler never awaits, so without this a long queue would keep a thread of the runtime.
const YIELD: usize = 128;

// === impl HandlerTask ===

impl<K: Object> HandlerTask<K> {
    /// Returns the handler's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.handler.name
    }

    /// Returns true if the handler must get no further event.
    pub(crate) fn is_removed(&self) -> bool {
        self.handler.removed.is_cancelled()
    }

    /// Calls the handler with every event until it is removed or its informer is gone.
    ///
    /// # Cancel safety
    ///
    /// If the task is aborted, the event that the handler is processing is the last one. The events
    /// that wait are dropped with the queue.
    pub(crate) async fn run(mut self) {
        let (handler, channel) = (Arc::clone(&self.handler), Arc::clone(&self.channel));
        if !handler.begin() {
            return;
        }
        let mut ticks = self.resync.as_ref().map(|resync| ticks(resync.period));
        let mut since_yield = 0;
        loop {
            let message = tokio::select! {
                biased;
                () = handler.removed.cancelled() => return,
                () = tick(&mut ticks) => {
                    self.resync();
                    continue;
                }
                message = channel.pop() => message,
            };
            let mut message = Some(message);
            let taken = self.take(&handler, &mut message, &mut since_yield).await;
            drop_rest(message);
            if taken.is_break() {
                return;
            }
        }
    }

    /// Queues all objects again, in order with the changes.
    ///
    /// Nothing is queued before the initial list is complete, and nothing while an earlier resync
    /// waits: a slow handler does not accumulate them.
    fn resync(&self) {
        if let Some(resync) = &self.resync
            && self.handler.has_synced()
            && !self.channel.queue.lock().has_resync()
        {
            self.channel.resync(&resync.store, &self.handler);
        }
    }

    /// Processes one message. Breaks if the handler was removed meanwhile. What is left of the
    /// message stays in it.
    ///
    /// Each event is removed from the queue's count before the handler is called, so that `queued`
    /// is 0 while the last one is processed.
    async fn take(
        &mut self,
        handler: &Handler,
        message: &mut Option<Message<K>>,
        since_yield: &mut usize,
    ) -> ControlFlow<()> {
        match message {
            Some(Message::Events(events)) => {
                for event in events.iter() {
                    handler.turn(since_yield).await?;
                    self.event(event);
                }
            }
            Some(Message::Event(_)) => {
                handler.turn(since_yield).await?;
                if let Some(Message::Event(event)) = message {
                    self.event(event);
                }
            }
            Some(Message::Snapshot(frozen)) => {
                for entry in frozen.iter() {
                    handler.turn(since_yield).await?;
                    initial_events(entry).for_each(|event| self.event(&event));
                }
            }
            Some(Message::Resync(frozen)) => {
                for entry in frozen.iter() {
                    handler.turn(since_yield).await?;
                    self.event(&redelivery(entry));
                }
            }
            Some(Message::Version(version)) => {
                handler.turn(since_yield).await?;
                self.call(|callback| callback.version(version));
            }
            Some(Message::Synced) => {
                handler.synced.send_replace(true);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &Event<K>) {
        let started = Instant::now();
        self.call(|callback| callback.event(event.clone()));
        self.calls.ended(&self.handler, started, || event.key());
    }

    /// A panic is counted for the handler and logged. The state of the callback is the one at the
    /// panic; the author decides if it is still valid.
    fn call(&mut self, author: impl FnOnce(&mut Callback<K>)) {
        if user_code("handler", || author(&mut self.callback)).is_err() {
            self.handler.count_panic();
            let name = &*self.handler.name;
            tracing::error!(handler = name, "handler panicked; it continues with the next event");
        }
    }
}

/// Drops objects that may be in no other place: their `Drop` is the author's code.
///
/// The rest is not empty if the handler was removed in the middle of a message.
fn drop_rest<K: Object>(message: Option<Message<K>>) {
    match message {
        Some(Message::Events(events)) => drop_events(events),
        message => drop_object(message),
    }
}

/// Drops a batch, and its events if no handler needs it any more. A panic costs one event its
/// memory.
pub(crate) fn drop_events<K: Object>(events: SharedEvents<K>) {
    Arc::into_inner(events).into_iter().flatten().for_each(drop_object);
}

/// Runs the author's `Drop`, and logs its panic.
fn drop_object<T>(object: T) {
    if user_code("drop", || drop(object)).is_err() {
        tracing::error!("the drop of an object panicked; its memory is lost");
    }
}

/// Closes the queue, however the task ends, even if it never started.
impl<K: Object> Drop for HandlerTask<K> {
    fn drop(&mut self) {
        // A task that is dropped with its runtime is not being polled.
        let _guard = CallbackGuard::enter();
        // The callback is dropped first, so that its captures are gone when `remove` returns, even
        // if a drop panics.
        let nothing = Callback::Versions(Box::new(|_| {}));
        let callback = std::mem::replace(&mut self.callback, nothing);
        let rest = self.channel.queue.lock().close();
        let drop_all = || {
            drop(callback);
            drop(rest);
        };
        if user_code("handler", drop_all).is_err() {
            self.handler.count_panic();
        }
        *self.handler.phase.lock() = Phase::Finished;
        self.handler.queued.store(0, Ordering::Relaxed);
        self.handler.show();
        self.handler.finished.cancel();
    }
}

/// Returns the timer of a resync. A tick that comes late delays the following ones.
///
/// The first tick comes one period after the start of the task, not at once: the initial list has
/// just been delivered.
fn ticks(period: Duration) -> Interval {
    // A period beyond the end of time never ends.
    let now = Instant::now();
    let first = now.checked_add(period).unwrap_or_else(|| now + FAR);
    let mut ticks = interval_at(first, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Thirty years.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// Waits for the next resync; forever without a timer.
async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Returns false for an update that the author's predicate rejects. A resync is not rejected: it
/// delivers one object as both states.
///
/// It runs under the same `user_code` as the handler: a panic of the predicate costs the event.
fn matters<K: Object>(updates: Option<&Matters<K>>, event: &Event<K>) -> bool {
    match (updates, event) {
        (Some(matters), Event::Updated { old, new }) => Arc::ptr_eq(old, new) || matters(old, new),
        _ => true,
    }
}

// === impl Callback ===

impl<K: Object> Callback<K> {
    fn event(&mut self, event: Event<K>) {
        if let Self::Events { handler, filter, updates } = self {
            let event = match filter {
                Some(filter) => filter.pass(event),
                None => Some(event),
            };
            event.filter(|event| matters(updates.as_ref(), event)).map(handler);
        }
    }

    fn version(&mut self, version: &ResourceVersion) {
        if let Self::Versions(handler) = self {
            handler(version);
        }
    }
}

// === impl Handler ===

impl Handler {
    /// Counts one event as taken, and yields now and then. Breaks if the handler was removed.
    ///
    /// The check for a removal comes after the yield, so that no event follows a removal that
    /// another task made meanwhile.
    async fn turn(&self, since_yield: &mut usize) -> ControlFlow<()> {
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.show();
        *since_yield += 1;
        if *since_yield == YIELD {
            *since_yield = 0;
            tokio::task::yield_now().await;
        }
        if self.removed.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns true if the handler was not removed before its task started.
    ///
    /// The phase decides under its lock, so that `remove` sees either a task that will end by
    /// itself or one that never ran.
    fn begin(&self) -> bool {
        let mut phase = self.phase.lock();
        let wanted = *phase == Phase::Waiting && !self.removed.is_cancelled();
        *phase = if wanted { Phase::Running } else { Phase::Finished };
        wanted
    }
}
