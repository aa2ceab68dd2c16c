//! [`HandlerTask`]: takes from a handler's queue, and calls it.

use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{
    Channel, Handler, Phase,
    filter::Filter,
    queue::{Message, again, initial_events},
};
use crate::{
    event::Event,
    inside::Inside,
    object::{Object, ResourceVersion},
    store::Store,
};

/// The author's code.
pub(super) enum Callback<K: Object> {
    Events { handler: Box<dyn FnMut(Event<K>) + Send>, filter: Option<Filter<K>> },
    Versions(Box<dyn FnMut(&ResourceVersion) + Send>),
}

/// What a handler's task works on.
pub(crate) struct HandlerTask<K: Object> {
    pub(super) channel: Arc<Channel<K>>,
    pub(super) handler: Arc<Handler>,
    pub(super) callback: Callback<K>,
    pub(super) resync: Option<Resync<K>>,
}

/// When everything is told once more, and what that is.
pub(super) struct Resync<K: Object> {
    pub(super) period: Duration,
    pub(super) store: Arc<Store<K>>,
}

/// After this many events in a row a handler lets other tasks run.
const YIELD: usize = 128;

// === impl HandlerTask ===

impl<K: Object> HandlerTask<K> {
    /// Calls the handler with every event until it is removed or its informer is gone.
    pub(crate) async fn run(mut self) {
        let (handler, channel) = (Arc::clone(&self.handler), Arc::clone(&self.channel));
        if !handler.begin() {
            return;
        }
        let mut ticks = self.resync.as_ref().map(|resync| ticks(resync.period));
        let mut in_a_row = 0;
        loop {
            let message = tokio::select! {
                biased;
                () = handler.removed.cancelled() => return,
                () = tick(&mut ticks) => {
                    self.look_again();
                    continue;
                }
                message = channel.pop() => message,
            };
            if self.take(&handler, message, &mut in_a_row).await.is_break() {
                return;
            }
        }
    }

    /// Queues all there is, in its place among the changes.
    fn look_again(&self) {
        if let Some(resync) = &self.resync
            && self.handler.has_synced()
            && !self.channel.queue.lock().has_resync()
        {
            resync.store.resync(&self.channel, &self.handler);
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
            Message::Event(event) => {
                handler.turn(in_a_row).await?;
                self.event(event);
            }
            Message::Snapshot(frozen) => {
                for (_, entry) in frozen.iter() {
                    handler.turn(in_a_row).await?;
                    initial_events(entry).for_each(|event| self.event(event));
                }
            }
            Message::Resync(frozen) => {
                for (_, entry) in frozen.iter() {
                    handler.turn(in_a_row).await?;
                    self.event(again(entry));
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
            self.handler.count_panic();
            let name = &*self.handler.name;
            tracing::error!(handler = name, "handler panicked; it goes on with the next event");
        }
    }
}

/// However the task ends, also if it never began: the handler gets no further event.
impl<K: Object> Drop for HandlerTask<K> {
    fn drop(&mut self) {
        // If the task is dropped with its runtime, this is not a part of its run.
        let _inside = Inside::enter();
        // What the callback holds goes first, so that it is gone when `remove` returns, even if its drop panics.
        let nothing = Callback::Versions(Box::new(|_| {}));
        let callback = std::mem::replace(&mut self.callback, nothing);
        let rest = self.channel.queue.lock().close();
        let drop_all = || {
            drop(callback);
            drop(rest);
        };
        if catch_unwind(AssertUnwindSafe(drop_all)).is_err() {
            self.handler.count_panic();
        }
        *self.handler.phase.lock() = Phase::Finished;
        self.handler.queued.store(0, Ordering::Relaxed);
        self.handler.show();
        self.handler.finished.cancel();
    }
}

fn ticks(period: Duration) -> Interval {
    // A period beyond the end of time is never over.
    let now = Instant::now();
    let first = now.checked_add(period).unwrap_or_else(|| now + FAR);
    let mut ticks = interval_at(first, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Thirty years.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}

// === impl Callback ===

impl<K: Object> Callback<K> {
    fn event(&mut self, event: Event<K>) {
        if let Self::Events { handler, filter } = self {
            let event = match filter {
                Some(filter) => filter.pass(event),
                None => Some(event),
            };
            event.map(handler);
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
    /// Takes one from the queue's count; lets others run now and then. Returns whether the handler is still wanted.
    async fn turn(&self, in_a_row: &mut usize) -> ControlFlow<()> {
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.show();
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
