//! What all handles of a queue share, and every step that changes it: one lock, then wake-ups.
//!
//! Each step locks once, changes the pure parts, and carries what it has to wake or to drop out of the
//! lock. Under the lock run only `Hash`, `Eq` and `Clone` of the item; no waker, no limiter, no `Drop`.

use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;
use std::task::Waker;

use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delays::{Delayed, Delays};
use crate::order::{Rank, Ranking};
use crate::rate_limiter::RateLimiter;
use crate::state::{Added, Held, Released, State};
use crate::sync::Mutex;

use super::drain::Undone;
use super::processing::Processing;
use super::timer::Timer;
use super::waiters::Waiters;

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
}

pub(super) struct Core<T> {
    pub(super) state: State<T>,
    pub(super) delays: Delays<T>,
    /// Workers that wait for an item. If an item is queued while somebody is in this line, then at
    /// least one who was taken out of it has not looked yet.
    pub(super) workers: Waiters,
    /// Drains that wait until nothing is queued and nothing is held.
    pub(super) drains: Waiters,
    /// Set once, never reset: nothing is added any more, and no delay ends.
    pub(super) shutting_down: bool,
    /// The task that ends delays, from the first delay on.
    timer: Option<Timer>,
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
    ) -> Self {
        let core = Core {
            state: State::new(ranking),
            delays: Delays::new(),
            workers: Waiters::new(),
            drains: Waiters::new(),
            shutting_down: false,
            timer: None,
        };
        Self {
            name,
            core: Mutex::new(core),
            limiter: Mutex::new(limiter),
            timer_wake: Arc::new(Notify::new()),
            hasher: RandomState::default(),
            by_priority: ranking.is_some_and(|ranking| ranking.by_priority),
            dimension,
        }
    }

    /// Asks the user's function, and therefore runs outside of the lock.
    fn rank(&self, item: &T, priority: i32) -> Rank {
        Rank {
            priority: if self.by_priority { priority } else { 0 },
            dimension: self.dimension.as_ref().map_or(0, |of| of(item, &self.hasher)),
        }
    }

    /// A worker returns its item; `finished` says whether it called `done`.
    pub(super) fn release(&self, held: Held, finished: bool) {
        let mut core = self.core.lock();
        let released = if finished { core.state.done(held) } else { core.state.give_back(held) };
        let worker = match released {
            Released::Requeued => core.workers.next(),
            Released::Gone(_) => None,
        };
        let (drains, burst) = if core.state.is_idle() {
            (core.drains.all(), core.state.trim())
        } else {
            (Vec::new(), None)
        };
        drop(core);
        wake(worker.into_iter().chain(drains));
        drop(burst);
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

impl<T: Clone> Shared<T> {
    pub(super) fn take(shared: &Arc<Self>) -> Option<Processing<T>> {
        let taken = shared.core.lock().state.take();
        taken.map(|taken| Processing::new(shared, taken))
    }

    /// Takes out everything; what is held stays with its worker, but is not queued again.
    pub(super) fn hand_back(&self) -> Undone<T> {
        let mut core = self.core.lock();
        let undone = Undone {
            held: core.state.hand_back_held(),
            queued: core.state.take_queued(),
            delayed: core.delays.take_all(),
        };
        // Another drain may wait longer for what is here no more.
        let drains = if core.state.is_idle() { core.drains.all() } else { Vec::new() };
        drop(core);
        wake(drains);
        undone
    }
}

impl<T: Eq + Hash> Shared<T> {
    pub(super) fn add(&self, item: T, priority: i32) {
        let hash = self.hasher.hash_one(&item);
        let rank = self.rank(&item, priority);
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        let (delayed, rank) = core.overtake(hash, &item, rank);
        let (worker, merged) = core.enqueue(hash, item, rank);
        drop(core);
        wake(worker);
        drop((delayed, merged));
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
        let mut workers = Vec::new();
        let mut known = Vec::new();
        chunk.reverse(); // so that taking the first leaves the others where they are
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        while let Some((hash, item, rank)) = chunk.pop() {
            let (delayed, rank) = core.overtake(hash, &item, rank);
            known.extend(delayed);
            let (worker, merged) = core.enqueue(hash, item, rank);
            workers.extend(worker);
            known.extend(merged);
        }
        drop(core);
        wake(workers);
    }

    /// Takes back what was delayed; returns whether it was.
    pub(super) fn cancel(&self, item: &T) -> bool {
        let hash = self.hasher.hash_one(item);
        let delayed = self.core.lock().delays.remove(hash, item);
        delayed.is_some()
    }

    /// Queues what is due, up to a bound, and tells when to look again.
    pub(super) fn release_due(&self, now: Instant) -> Next {
        let mut core = self.core.lock();
        if core.shutting_down {
            return Next::End;
        }
        let mut workers = Vec::new();
        let mut merged = Vec::new();
        for _ in 0..AT_ONCE {
            let Some((hash, item, rank)) = core.delays.take_due(now) else { break };
            let (worker, known) = core.enqueue(hash, item, rank);
            workers.extend(worker);
            merged.extend(known);
        }
        let next = match core.delays.next_deadline() {
            Some(due) if due <= now => Next::Now,
            Some(due) => Next::At(due),
            None => Next::Never,
        };
        drop(core);
        wake(workers);
        next
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> Shared<T> {
    /// Delays the item until `due`; starts the timer if it does not run.
    #[track_caller]
    pub(super) fn delay(shared: &Arc<Self>, item: T, priority: i32, due: Instant) {
        let hash = shared.hasher.hash_one(&item);
        let rank = shared.rank(&item, priority);
        let mut core = shared.core.lock();
        if core.shutting_down {
            return;
        }
        // First, because it panics outside of a runtime. It ends with its runtime, and starts again on
        // the next one.
        if !core.timer.as_ref().is_some_and(Timer::is_running) {
            core.timer = Some(Timer::start(Arc::downgrade(shared), Arc::clone(&shared.timer_wake)));
        }
        let delayed = core.delays.insert(hash, item, rank, due);
        drop(core);
        if let Delayed::Next(_) = delayed {
            shared.timer_wake.notify_one();
        }
    }
}

// === impl Core ===

impl<T: Eq> Core<T> {
    /// Ends the delay of an item that is wanted now, at no lower priority than it was to have. Returns
    /// what to drop.
    fn overtake(&mut self, hash: u64, item: &T, rank: Rank) -> (Option<T>, Rank) {
        match self.delays.remove(hash, item) {
            None => (None, rank),
            Some((item, priority)) => {
                (Some(item), Rank { priority: rank.priority.max(priority), ..rank })
            }
        }
    }

    /// Queues an item; returns whom to wake and what to drop.
    fn enqueue(&mut self, hash: u64, item: T, rank: Rank) -> (Option<Waker>, Option<T>) {
        match self.state.add(hash, item, rank) {
            Added::Queued => (self.workers.next(), None),
            Added::Merged(item) => (None, Some(item)),
        }
    }
}

/// Wakes them, outside of the lock: a waker is somebody else's code.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
