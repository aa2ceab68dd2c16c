//! What all handles of a queue share, and every step that changes it: one lock, then wake-ups.
//!
//! Each step locks once, changes the pure parts, and carries what it has to wake or to drop out of the
//! lock. Under the lock run only `Hash`, `Eq` and `Clone` of the item; no waker, no limiter, no `Drop`.

use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delays::Delayed;
use crate::order::{Rank, Ranking};
use crate::rate_limiter::RateLimiter;
use crate::request::{Reason, Request};
use crate::state::{Held, Released, Taken};
use crate::sync::Mutex;

use super::core::{Change, Core};
use super::drain::Undone;
use super::inspect::Snapshot;
use super::many::Many;
use super::metrics::Metrics;
use super::processing::Processing;
use super::timer::Timer;

/// The user's function, and then the hash of what it returned.
pub(super) type Dimension<T> = Box<dyn Fn(&T, &RandomState) -> u64 + Send + Sync>;

pub(super) struct Shared<T> {
    pub(super) name: Arc<str>,
    pub(super) core: Mutex<Core<T>>,
    /// Under a lock of its own, because it is the user's code. Never locked together with `core`.
    pub(super) limiter: Mutex<Box<dyn RateLimiter<T>>>,
    /// Tells the timer that the next deadline has changed. Not in `core`: the timer holds it, too.
    timer_wake: Arc<Notify>,
    hasher: RandomState,
    /// Whether the priorities of items count.
    by_priority: bool,
    /// By what the items of one priority take turns, if they do.
    dimension: Option<Dimension<T>>,
    pub(super) metrics: Option<Metrics>,
    /// Whether the core has an observer.
    observed: bool,
}

/// What the timer does next.
pub(super) enum Next {
    /// More is due already.
    Now,
    /// Sleep until then, or until it is woken.
    At(Instant),
    /// Sleep until it is woken.
    Never,
    /// The queue is shut down: no delay ends any more.
    End,
}

/// How many items are queued under one lock, so that workers get in between.
const AT_ONCE: usize = 128;

// === impl Shared ===

impl<T> Shared<T> {
    pub(super) fn new(
        name: Arc<str>,
        limiter: Box<dyn RateLimiter<T>>,
        ranking: Option<Ranking>,
        dimension: Option<Dimension<T>>,
        inspected: bool,
    ) -> Self {
        let by_priority = ranking.is_some_and(|ranking| ranking.by_priority);
        let metrics = Metrics::new(&name, by_priority);
        let observed = inspected || metrics.is_some();
        Self {
            name,
            core: Mutex::new(Core::new(ranking, observed)),
            limiter: Mutex::new(limiter),
            timer_wake: Arc::new(Notify::new()),
            hasher: RandomState::default(),
            by_priority,
            dimension,
            metrics,
            observed,
        }
    }

    /// The time, if anybody wants to know: to read the clock takes a third of what an add does.
    #[inline]
    pub(super) fn now(&self) -> Option<Instant> {
        self.observed.then(Instant::now)
    }

    /// Asks the user's function, and therefore runs outside of the lock.
    fn rank(&self, item: &T, priority: i32) -> Rank {
        Rank {
            priority: if self.by_priority { priority } else { 0 },
            dimension: self.dimension.as_ref().map_or(0, |of| of(item, &self.hasher)),
        }
    }

    /// A worker returns its item; `finished` says whether it called `done`.
    #[inline]
    pub(super) fn release(&self, held: Held, finished: bool) {
        let now = self.now();
        let mut core = self.core.lock();
        let released = if finished { core.state.done(held) } else { core.state.give_back(held) };
        let worked = core.observe_released(held, now);
        let (woken, change) = match released {
            Released::Requeued { wanted } => {
                (core.workers.next(), core.requeued(held.slot(), wanted))
            }
            Released::Gone(_) => (None, Change::None),
        };
        let (drains, burst) = if core.state.is_idle() {
            (core.drains.all(), core.trim())
        } else {
            (Vec::new(), None)
        };
        drop(core);
        wake(woken.into_iter().chain(drains));
        drop(burst);
        if let Some(metrics) = &self.metrics {
            metrics.released(worked, change);
        }
    }

    pub(super) fn shut_down(&self) {
        let mut core = self.core.lock();
        core.shutting_down = true;
        let workers = core.workers.all();
        drop(core);
        wake(workers);
        self.timer_wake.notify_one();
    }
}

/// A queue that is gone counts no longer; nothing else would set its gauges back.
impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.handed_back(self.core.lock().state.requests().collect());
            metrics.stop();
        }
    }
}

impl<T: Clone> Shared<T> {
    /// Takes out everything; what is held stays with its worker, but is not queued again.
    pub(super) fn hand_back(&self) -> Undone<T> {
        let mut core = self.core.lock();
        let mut priorities = Vec::new();
        if self.metrics.is_some() {
            priorities.extend(core.state.requests());
        }
        let undone = Undone {
            held: core.state.hand_back_held(),
            queued: core.state.take_queued(),
            delayed: core.delays.take_all(),
        };
        // Another drain may wait longer for what is here no more.
        let drains = if core.state.is_idle() { core.drains.all() } else { Vec::new() };
        drop(core);
        wake(drains);
        if let Some(metrics) = &self.metrics {
            metrics.handed_back(priorities);
        }
        undone
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    /// What is where, if that is observed.
    pub(super) fn inspect(&self) -> Option<Snapshot<T>> {
        let mut snapshot = self.core.lock().inspect()?;
        snapshot.queued.sort_by_key(|queued| queued.since);
        snapshot.delayed.sort_by_key(|delayed| delayed.until);
        snapshot.held.sort_by_key(|held| held.since);
        let limiter = self.limiter.lock();
        snapshot.set_failures(|item| limiter.failures(item));
        drop(limiter);
        Some(snapshot)
    }

    #[inline]
    pub(super) fn take(shared: &Arc<Self>) -> Option<Processing<T>> {
        let now = shared.now();
        let mut core = shared.core.lock();
        let taken = core.state.take()?;
        let waited = core.observe_taken(taken.held, now);
        drop(core);
        Some(Self::hand_out(shared, taken, waited))
    }

    /// To be called outside of the lock with what was taken under it.
    #[inline]
    pub(super) fn hand_out(shared: &Arc<Self>, taken: Taken<T>, waited: Duration) -> Processing<T> {
        // First, because a recorder is somebody else's code: if it panics, the item is given back.
        let processing = Processing::new(shared, taken);
        if let Some(metrics) = &shared.metrics {
            metrics.taken(processing.priority(), waited);
            metrics.tick(shared);
        }
        processing
    }
}

impl<T: Eq + Hash> Shared<T> {
    pub(super) fn add(&self, item: T, priority: i32, reason: Reason) {
        let hash = self.hasher.hash_one(&item);
        let rank = self.rank(&item, priority);
        let now = self.now();
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        let enqueued = core.add(hash, item, Request { rank, reason }, now);
        drop(core);
        wake(enqueued.worker);
        drop(enqueued.spare);
        if let Some(metrics) = &self.metrics {
            metrics.changed(enqueued.change);
            if reason != Reason::Added {
                metrics.retried();
            }
        }
    }

    pub(super) fn add_batch(&self, items: impl IntoIterator<Item = T>, priority: i32) {
        let mut items = items.into_iter();
        let mut chunk = Vec::new();
        loop {
            // The iterator is the caller's code, and a hash takes a while: both outside of the lock.
            let hashed = items.by_ref().take(AT_ONCE);
            chunk.extend(hashed.map(|item| {
                let rank = self.rank(&item, priority);
                (self.hasher.hash_one(&item), item, rank)
            }));
            if chunk.is_empty() {
                return;
            }
            self.add_chunk(&mut chunk);
            chunk.clear();
        }
    }

    /// Queues these, in order, under one lock. Leaves in the chunk what is to be dropped.
    fn add_chunk(&self, chunk: &mut Vec<(u64, T, Rank)>) {
        let mut many = Many::new(self.metrics.as_ref());
        let now = self.now();
        chunk.reverse(); // so that taking the first leaves the others where they are
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        while let Some((hash, item, rank)) = chunk.pop() {
            many.push(core.add(hash, item, Request { rank, reason: Reason::Added }, now));
        }
        drop(core);
        drop(many);
    }

    /// Takes back what was delayed; returns whether it was.
    pub(super) fn cancel(&self, item: &T) -> bool {
        let hash = self.hasher.hash_one(item);
        let delayed = self.core.lock().delays.remove(hash, item);
        delayed.is_some()
    }

    /// Queues what is due, up to a bound, and tells when to look again.
    pub(super) fn release_due(&self, now: Instant) -> Next {
        let mut many = Many::new(self.metrics.as_ref());
        let mut core = self.core.lock();
        if core.shutting_down {
            return Next::End;
        }
        for _ in 0..AT_ONCE {
            let Some(enqueued) = core.end_delay(now) else { break };
            many.push(enqueued);
        }
        let next = match core.delays.next_deadline() {
            Some(due) if due <= now => Next::Now,
            Some(due) => Next::At(due),
            None => Next::Never,
        };
        drop(core);
        drop(many);
        next
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> Shared<T> {
    /// Delays the item until `due`; starts the timer if it does not run.
    #[track_caller]
    pub(super) fn delay(shared: &Arc<Self>, item: T, priority: i32, due: Instant, reason: Reason) {
        let hash = shared.hasher.hash_one(&item);
        let request = Request { rank: shared.rank(&item, priority), reason };
        let mut core = shared.core.lock();
        if core.shutting_down {
            return;
        }
        // First, because it panics outside of a runtime. It ends with its runtime, and starts again on
        // the next one.
        if !core.timer.as_ref().is_some_and(Timer::is_running) {
            core.timer = Some(Timer::start(Arc::downgrade(shared), Arc::clone(&shared.timer_wake)));
        }
        let delayed = core.delays.insert(hash, item, request, due);
        drop(core);
        if let Delayed::Next(_) = delayed {
            shared.timer_wake.notify_one();
        }
        if let Some(metrics) = &shared.metrics {
            metrics.retried();
        }
    }
}

/// Wakes them, outside of the lock: a waker is somebody else's code.
pub(super) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
