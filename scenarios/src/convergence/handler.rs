//! A handler of an informer, and the witness of its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use futures::StreamExt as _;
use homeostat::informer::{Event, HandlerOptions, Overflow, SharedIndexInformer, Subscription};
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use super::weight::Weight;
use super::witness::Witness;
use super::{State, Truth};

/// A closure or a stream that receives the events of an informer.
pub(super) struct Handler<K> {
    pub(super) name: String,
    pub(super) manner: Manner,
    feed: Feed,
    pub(super) witness: Arc<Mutex<Witness<K>>>,
}

/// The source of a handler's events.
enum Feed {
    Callback(Subscription),
    /// A task that reads a stream of events.
    Stream(JoinSet<()>, AbortHandle),
}

/// The options of a handler. A stream has none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    pub(super) filters: bool,
    pub(super) resyncs: bool,
    pub(super) coalesces: bool,
}

/// The capacity of a stream: more than the events of a run.
const EVENTS: usize = 100_000;

// === impl Handler ===

impl<K: Weight> Handler<K> {
    /// Adds a closure. It complains about two calls at the same time.
    pub(super) fn callback(
        informer: &SharedIndexInformer<K>,
        number: usize,
        manner: Manner,
        resync: Option<Duration>,
    ) -> Self {
        let name = format!("witness {number}, {manner:?}");
        let mut options = HandlerOptions::new(name.as_str());
        if manner.filters {
            options = options.filter(|object: &K| is_wanted(&object.truth()));
        }
        if let Some(period) = resync {
            options = options.resync(period);
        }
        if manner.coalesces {
            options = options.coalesce();
        }
        let witness = Arc::new(Mutex::new(Witness::new(manner.resyncs)));
        let log = Arc::clone(&witness);
        let called = AtomicBool::new(false);
        let see = move |event: Event<K>| {
            let twice = called.swap(true, Ordering::AcqRel);
            let mut witness = log.lock();
            witness.complain_if(twice, || "two calls at the same time".to_owned());
            witness.see(event);
            called.store(false, Ordering::Release);
        };
        let feed = Feed::Callback(informer.add_handler(options, see));
        Self { name, manner, feed, witness }
    }

    /// Adds a stream of events, and a task that reads it.
    pub(super) fn stream(informer: &SharedIndexInformer<K>, number: usize) -> Self {
        let name = format!("witness {number}, a stream");
        let witness = Arc::new(Mutex::new(Witness::new(false)));
        let log = Arc::clone(&witness);
        let mut events = informer.events(name.as_str(), EVENTS, Overflow::End);
        let read = async move {
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => log.lock().see(event),
                    Err(lagged) => log.lock().complain_if(true, || lagged.to_string()),
                }
            }
        };
        let mut tasks = JoinSet::new();
        let task = tasks.spawn(read);
        Self { name, manner: Manner::default(), feed: Feed::Stream(tasks, task), witness }
    }

    /// Removes the handler. Returns the number of events that it receives after that.
    pub(super) async fn remove(self) -> usize {
        self.feed.remove().await;
        let seen = self.witness.lock().events();
        tokio::task::yield_now().await;
        self.witness.lock().events() - seen
    }

    /// Checks what must hold at any time.
    ///
    /// # Errors
    ///
    /// Returns the first violation.
    pub(super) fn is_valid(&self, set_back: bool) -> anyhow::Result<()> {
        let Self { name, feed, witness, .. } = self;
        let witness = witness.lock();
        ensure!(witness.complaints().is_empty(), "{name}: {:#?}", witness.complaints());
        let went_back = witness.went_back();
        ensure!(set_back || went_back.is_empty(), "{name}: {went_back:#?}");
        ensure!(feed.is_well(), "{name} has panicked or ended");
        Ok(())
    }

    /// Compares what the events add up to with the server's state.
    ///
    /// # Errors
    ///
    /// Returns the first difference.
    pub(super) fn agrees_with(&self, truth: &State) -> anyhow::Result<()> {
        let Self { name, manner, feed, witness } = self;
        let shadow = witness.lock().shadow();
        let mut wanted = truth.clone();
        wanted.retain(|_, truth| !manner.filters || is_wanted(truth));
        ensure!(shadow == wanted, "{name} believes {shadow:#?}\nand not {wanted:#?}");
        ensure!(feed.has_synced(), "{name} has all events, but is not synced");
        Ok(())
    }
}

// === impl Feed ===

impl Feed {
    async fn remove(self) {
        match self {
            Self::Callback(subscription) => subscription.remove().await,
            Self::Stream(mut tasks, _) => tasks.shutdown().await,
        }
    }

    fn is_well(&self) -> bool {
        match self {
            Self::Callback(subscription) => subscription.panics() == 0,
            Self::Stream(_, task) => !task.is_finished(),
        }
    }

    fn has_synced(&self) -> bool {
        match self {
            Self::Callback(subscription) => subscription.has_synced(),
            Self::Stream(..) => true,
        }
    }
}

// === impl Manner ===

impl Manner {
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let names =
            [(self.filters, "filters"), (self.resyncs, "resyncs"), (self.coalesces, "coalesces")];
        names.into_iter().filter_map(|(is_so, name)| is_so.then_some(name))
    }
}

/// Returns `true` for objects that the filter passes: even numbers, and objects without a number.
fn is_wanted((_, _, number): &Truth) -> bool {
    number.is_none_or(|number| number.is_multiple_of(2))
}
