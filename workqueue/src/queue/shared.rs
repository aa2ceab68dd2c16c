//! The state that all handles of a queue share, and the steps that change it.
//!
//! Each step takes the lock once, changes the pure parts, and wakes tasks and drops items after the
//! release. The only code of the author that runs under the lock is `Eq` and `Clone` of the item
//! and the merge function: no waker, no rate limiter and no `Drop` of an item.
//!
//! Lock order, outermost first: the limiter, the ticker of the metrics, the core. No step takes a
//! further lock while it holds the core.

use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cause::Merge;
use crate::delays::All;
use crate::inspect::Snapshot;
use crate::order::{Rank, Ranking};
use crate::rate_limiter::{GuardedLimiter, RateLimiter};
use crate::request::{Request, Terms};
use crate::state::{Held, Released};
use crate::sync::Mutex;

use super::core::{Change, Core};
use super::metrics::Metrics;
use super::unfinished::Unfinished;
use super::waiters::wake;

mod adding;

/// Calls the author's function and hashes its result.
pub(super) type Dimension<T> = Box<dyn Fn(&T, &RandomState) -> u64 + Send + Sync>;

/// Owned by all handles and all guards. The timer and the task of the metrics have weak references,
/// so that the queue ends with its last handle or guard.
pub(super) struct Shared<T, C> {
    pub(super) name: Arc<str>,
    /// The queue's lock. No step takes another lock while it holds this one.
    pub(super) core: Mutex<Core<T, C>>,
    /// It has its own lock, because it is the author's code. This lock comes before that of `core`:
    /// a limiter that adds to its own queue holds both. No step calls the limiter while it holds
    /// the lock of `core`.
    pub(super) limiter: GuardedLimiter<T>,
    /// Wakes the timer when the next deadline changes. It is outside of `core` because the timer
    /// holds it too.
    pub(super) timer_wake: Arc<Notify>,
    /// Seeded per queue. All hashes are computed by it, outside of the lock.
    pub(super) hasher: RandomState,
    /// True if the queue orders by priority.
    by_priority: bool,
    /// Returns the group by which the items of one priority take turns; `None` without turns.
    dimension: Option<Dimension<T>>,
    pub(super) metrics: Option<Metrics>,
    /// True if the core has an observer.
    pub(super) observed: bool,
    /// Returns an unfinished item. A function pointer, because the `Drop` of a guard has no bounds
    /// on `T`.
    give_back: GiveBack<T, C>,
}

/// The type of [`Shared::give_back`].
type GiveBack<T, C> = fn(&Arc<Shared<T, C>>, Held, C);

/// The queue's options.
pub(super) struct Options<T, C> {
    pub(super) name: Arc<str>,
    pub(super) limiter: Box<dyn RateLimiter<T>>,
    pub(super) merge: Merge<C>,
    pub(super) ranking: Option<Ranking>,
    pub(super) dimension: Option<Dimension<T>>,
    /// True if the queue records times and operations for `inspect`.
    pub(super) inspected: bool,
    /// [`Shared::give_back`].
    pub(super) give_back: GiveBack<T, C>,
}

/// The next step of the timer.
///
/// Computed under the lock together with the release of due items, so that no deadline is set in
/// between without a wake-up.
pub(super) enum Next {
    /// Run again: more items are due.
    Now,
    /// Sleep until this instant or a wake-up.
    At(Instant),
    /// Sleep until a wake-up.
    Never,
    /// End: the queue is shut down.
    End,
}

// === impl Shared ===

impl<T, C> Shared<T, C> {
    /// Creates the state of an empty queue. Registers the metrics, which calls the recorder; spawns
    /// no task.
    pub(super) fn new(options: Options<T, C>) -> Self {
        let Options { name, limiter, merge, ranking, dimension, inspected, give_back } = options;
        let by_priority = ranking.is_some_and(|ranking| ranking.by_priority);
        let metrics = Metrics::new(&name, by_priority);
        let observed = inspected || metrics.is_some();
        Self {
            name,
            core: Mutex::new(Core::new(ranking, merge, observed)),
            limiter: GuardedLimiter::new(limiter),
            timer_wake: Arc::new(Notify::new()),
            hasher: RandomState::default(),
            by_priority,
            dimension,
            metrics,
            observed,
            give_back,
        }
    }

    /// Returns the current time, or `None` without an observer. Reading the clock takes a third of
    /// the time of an add.
    #[inline]
    pub(super) fn now(&self) -> Option<Instant> {
        self.observed.then(Instant::now)
    }

    /// Computes the rank, which calls the author's function. The caller must not hold the lock.
    pub(super) fn request(&self, item: &T, terms: Terms<C>) -> Request<C> {
        let Terms { priority, operation, cause } = terms;
        Request { rank: self.rank(item, priority), operation, cause, given_back: 0 }
    }

    /// Returns the rank of an item for the order. A queue without priorities has one level, 0, and
    /// a queue without turns has one group, 0.
    ///
    /// # Panics
    ///
    /// If the function of `fair_by` panics.
    fn rank(&self, item: &T, priority: i32) -> Rank {
        Rank {
            priority: if self.by_priority { priority } else { 0 },
            dimension: self.dimension.as_ref().map_or(0, |of| of(item, &self.hasher)),
        }
    }

    /// Finishes an item.
    #[inline]
    pub(super) fn done(&self, held: Held) {
        self.release(held, |core| core.state.done(held));
    }

    /// Returns an item that its worker dropped without `done`: see [`Shared::give_back`].
    pub(super) fn give_back_unfinished(shared: &Arc<Self>, held: Held, cause: C) {
        (shared.give_back)(shared, held, cause);
        let queue = &*shared.name;
        tracing::debug!(queue, "item dropped before it was done, queued again");
    }

    /// Ends a hand-out by `step`: wakes a worker if the item is queued again, and all drains if the
    /// queue is idle then.
    ///
    /// The order is fixed: observe, count and pick the wakers under the lock; wake, drop, report
    /// and measure after it. It runs in `Drop` of a guard, so that it must not panic and needs no
    /// bound on `T`.
    #[inline]
    pub(super) fn release(&self, held: Held, step: impl FnOnce(&mut Core<T, C>) -> Released<T, C>) {
        let now = self.now();
        let mut core = self.core.lock();
        let released = step(&mut core);
        let worked = core.observe_released(held, now);
        let (woken, change) = match released {
            Released::Requeued { wanted } => {
                (core.wake_worker(), core.requeued(held.slot(), wanted))
            }
            Released::Gone(..) => (None, Change::None),
        };
        let panics = core.merge.take_panics();
        let (drains, burst) = core.settle_if_idle();
        drop(core);
        wake(woken.into_iter().chain(drains));
        drop(burst);
        panics.report(&self.name);
        if let Some(metrics) = &self.metrics {
            metrics.released(worked, change);
        }
    }

    /// Ignores adds from now on, and wakes all workers and the timer, which then end.
    ///
    /// Drains are not woken: an item that is queued at this time is still handed out. Calling it
    /// twice has no further effect.
    pub(super) fn shut_down(&self) {
        let mut core = self.core.lock();
        core.shutting_down = true;
        let workers = core.workers.all();
        drop(core);
        wake(workers);
        self.timer_wake.notify_one();
    }
}

/// Removes the queue's items from the gauges: nothing else would reset them.
impl<T, C> Drop for Shared<T, C> {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            // No lock: nothing else refers to the queue any more.
            metrics.handed_back(self.core.get_mut().state.requests().collect());
            metrics.stop();
        }
    }
}

impl<T: Clone + Eq, C> Shared<T, C> {
    /// Takes out all items. Held items stay with their workers, but are not queued again.
    ///
    /// The queue is empty afterwards, except for the held slots, which are vacated when their
    /// workers return. Causes and later delays of the same items are dropped after the release of
    /// the lock.
    ///
    /// # Panics
    ///
    /// If the `Clone` or `Eq` of an item panics. Nothing is taken out then.
    pub(super) fn hand_back(&self) -> Unfinished<T> {
        let mut core = self.core.lock();
        let mut priorities = Vec::new();
        if self.metrics.is_some() {
            priorities.extend(core.state.requests());
        }
        // All comparisons and clones run before any change.
        let entries = core.delays.entries_by_slot();
        let (held, causes) = core.state.hand_back_held();
        let queued = core.state.take_queued();
        let All { items: delayed, later } = core.delays.take_all(&entries);
        // Another drain with a longer timeout may wait for the items that are now gone.
        let drains = if core.state.is_idle() { core.drains.all() } else { Vec::new() };
        drop(core);
        wake(drains);
        if let Some(metrics) = &self.metrics {
            metrics.handed_back(priorities);
        }
        drop((causes, later)); // after the wake-ups, because it may panic
        let items = |requests: Vec<(T, C)>| requests.into_iter().map(|(item, _)| item).collect();
        Unfinished { held, queued: items(queued), delayed: items(delayed) }
    }
}

impl<T, C> Shared<T, C>
where
    T: Clone + Send + Sync + 'static,
    C: Send + 'static,
{
    /// Returns a snapshot of all items, or `None` without an observer.
    ///
    /// The items are cloned under the lock and sorted after it. The failures come from the limiter,
    /// which has its own lock, so that they can be newer than the items.
    pub(super) fn inspect(&self) -> Option<Snapshot<T>> {
        let mut snapshot = self.core.lock().inspect()?;
        snapshot.queued.sort_by_key(|queued| queued.since);
        snapshot.delayed.sort_by_key(|delayed| delayed.until);
        snapshot.held.sort_by_key(|held| held.since);
        snapshot.set_failures(|item| self.limiter.failures(&self.name, item));
        Some(snapshot)
    }
}
