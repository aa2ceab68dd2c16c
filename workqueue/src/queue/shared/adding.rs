//! The steps that queue items: adds, delays, and items that are given back.
//!
//! Each step has the same order:
//!
//! 1. Without the lock, run the author's code that may be slow or may panic: the hash, the group of
//!    `fair_by`, the iterator of a batch.
//! 2. Lock the core. After `shut_down` stop here: the item is dropped and nothing is counted.
//! 3. Compare items. `Eq` is the author's code and may panic, so that every comparison precedes the
//!    first change.
//! 4. Change the state, the delays and the observer.
//! 5. Release the lock. Then wake tasks, report a panic of the merge function, update the metrics,
//!    and drop merged items and replaced causes, which is the author's code.
//!
//! A panic in step 1 or 3 reaches the caller of the add and leaves the queue as it was. The merge
//! function and the metrics recorder run under `catch_unwind`: their panics are counted and logged.

use std::hash::{BuildHasher as _, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::delays::{Delayed, Kind, Waiting, deadline_after};
use crate::inspect::Operation;
use crate::order::Rank;
use crate::request::{Request, Terms};
use crate::state::Held;

use super::super::core::Change;
use super::super::many::Many;
use super::super::timer::Timer;
use super::{Next, Shared, wake};

/// The maximum number of items that are queued under one lock, so that workers can take it in
/// between.
const AT_ONCE: usize = 128;

// === impl Shared ===

impl<T: Eq + Hash, C> Shared<T, C> {
    /// Adds one item. Every single add ends here: `Queue::add` and the adders of priorities, causes
    /// and operations.
    ///
    /// An operation other than [`Operation::Add`] is a retry that has no delay, such as `add_after`
    /// with a delay of 0. client-go counts it in `workqueue_retries_total`, and so does this.
    ///
    /// # Panics
    ///
    /// If the item's `Hash` or `Eq`, or the function of `fair_by`, panics. The queue is unchanged
    /// then.
    pub(in crate::queue) fn add(&self, item: T, terms: Terms<C>) {
        let (hash, operation) = (self.hasher.hash_one(&item), terms.operation);
        let request = self.request(&item, terms);
        let now = self.now();
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        let enqueued = core.add(hash, item, request, now);
        let panics = core.merge.take_panics();
        drop(core);
        wake(enqueued.worker);
        panics.report(&self.name);
        if let Some(metrics) = &self.metrics {
            metrics.changed(enqueued.change);
            if operation != Operation::Add {
                metrics.retried();
            }
        }
        drop((enqueued.spare, enqueued.ignored)); // last, because it may panic
    }

    /// Returns the time until the item is due; `None` if the queue does not have it.
    pub(in crate::queue) fn time_until_due(&self, item: &T) -> Option<Duration> {
        let hash = self.hasher.hash_one(item);
        let core = self.core.lock();
        if core.state.find(hash, item).is_known() {
            return Some(Duration::ZERO);
        }
        let deadline = core.delays.deadline_of(hash, item)?;
        drop(core);
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    pub(in crate::queue) fn is_requested(&self, item: &T) -> bool {
        let hash = self.hasher.hash_one(item);
        self.core.lock().state.is_requested(hash, item)
    }

    /// Adds items in their order, in chunks of [`AT_ONCE`]. Each item gets a clone of `cause`.
    ///
    /// If the iterator panics, the items of earlier chunks are queued and those of the present
    /// chunk are dropped.
    pub(in crate::queue) fn add_batch(
        &self,
        items: impl IntoIterator<Item = T>,
        priority: i32,
        cause: &C,
    ) where
        C: Clone,
    {
        let mut items = items.into_iter();
        let mut chunk = Vec::new();
        loop {
            // The iterator is the caller's code, and hashing takes time: both run outside of the
            // lock.
            let hashed = items.by_ref().take(AT_ONCE);
            chunk.extend(hashed.map(|item| {
                let rank = self.rank(&item, priority);
                (self.hasher.hash_one(&item), item, rank, cause.clone())
            }));
            if chunk.is_empty() {
                return;
            }
            self.add_chunk(&mut chunk);
            chunk.clear();
        }
    }

    /// Queues these items, in order, under one lock. Items left in the chunk are dropped by the
    /// caller.
    ///
    /// An `Eq` that panics leaves the items before it queued: the drop of `many` still wakes their
    /// workers and counts them.
    fn add_chunk(&self, chunk: &mut Vec<(u64, T, Rank, C)>) {
        let mut many = Many::new(self.metrics.as_ref());
        let now = self.now();
        chunk.reverse(); // `pop` then takes the first item without moving the others
        let mut core = self.core.lock();
        if core.shutting_down {
            return;
        }
        while let Some((hash, item, rank, cause)) = chunk.pop() {
            let request = Request { rank, operation: Operation::Add, cause, given_back: 0 };
            many.push(core.add(hash, item, request, now));
        }
        let panics = core.merge.take_panics();
        drop(core);
        drop(many);
        panics.report(&self.name);
    }

    /// Removes the delay of an item. Returns true if the item was delayed.
    ///
    /// It removes the entries of `add_after` and `schedule`. It leaves the entry of an item that
    /// was given back ([`Kind::Rest`]): that entry is the request of a worker, and removing it
    /// would lose the request. Both lookups come before both removals.
    pub(in crate::queue) fn cancel(&self, item: &T) -> bool {
        let hash = self.hasher.hash_one(item);
        let mut core = self.core.lock();
        let found = core.delays.find_all(hash, item, [Kind::Delay, Kind::Schedule]);
        let delayed = found.map(|slot| slot.map(|slot| core.delays.remove_found(slot)));
        drop(core);
        delayed.iter().any(Option::is_some)
    }

    /// Queues up to `AT_ONCE` due items and returns the timer's next step.
    ///
    /// A due item is queued like an add: it merges with the item if that is queued or held. The
    /// delay ends in the same step under the same lock, so that no snapshot and no drain finds the
    /// item in neither place.
    pub(in crate::queue) fn release_due(&self, now: Instant) -> Next {
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
        let panics = core.merge.take_panics();
        drop(core);
        drop(many);
        panics.report(&self.name);
        next
    }
}

impl<T, C> Shared<T, C>
where
    T: Eq + Hash + Send + Sync + 'static,
    C: Send + 'static,
{
    /// Delays the item until `due`. Starts the timer unless it runs.
    ///
    /// The timer is woken only if the new deadline is the earliest of all. Its sleep ends early
    /// enough for all others.
    ///
    /// # Panics
    ///
    /// If the timer does not run and the caller is outside of a tokio runtime, or if the item's
    /// `Hash` or `Eq` panics. The queue is unchanged then.
    #[track_caller]
    pub(in crate::queue) fn delay(
        shared: &Arc<Self>,
        item: T,
        due: Instant,
        kind: Kind,
        terms: Terms<C>,
    ) {
        let hash = shared.hasher.hash_one(&item);
        let request = shared.request(&item, terms);
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        if core.shutting_down {
            return;
        }
        // First, because this panics outside of a runtime. The timer ends with its runtime; a later
        // call starts it on another one.
        if !core.timer.as_ref().is_some_and(Timer::is_running) {
            let Some(timer) = Self::start_timer(shared) else {
                panic!("a delay starts the queue's timer, which needs a tokio runtime")
            };
            core.timer = Some(timer);
        }
        let waiting = Waiting { item, hash, kind, request };
        let delayed = core.delays.insert(waiting, due, &mut core.merge);
        let panics = core.merge.take_panics();
        drop(guard);
        if let Delayed::Next(_) = delayed {
            shared.timer_wake.notify_one();
        }
        panics.report(&shared.name);
        if let Some(metrics) = &shared.metrics {
            metrics.retried();
        }
    }

    /// Starts the timer on the caller's runtime; `None` outside of a runtime.
    fn start_timer(shared: &Arc<Self>) -> Option<Timer> {
        Timer::start(Arc::downgrade(shared), Arc::clone(&shared.timer_wake))
    }

    /// Returns an unfinished item: it is queued again, with the worker's cause.
    ///
    /// The first time since it was last done it is queued at once. The second consecutive time it
    /// is delayed by 5 ms, and each further time by twice as long, so that an item whose worker
    /// panics each time does not keep the workers busy.
    pub(in crate::queue) fn give_back(shared: &Arc<Self>, held: Held, cause: C) {
        let rest = shared.core.lock().state.given_back(held).and_then(rest_after);
        match rest {
            Some(rest) => Self::rest(shared, held, cause, rest),
            None => shared.requeue(held, cause),
        }
    }

    /// Delays an unfinished item. If it was added meanwhile, if the queue is shut down or if the
    /// timer cannot run, queues it at once.
    ///
    /// The lock was free since the caller read the item's count, so that this checks again if the
    /// item was added or returned by a drain.
    ///
    /// This runs in the `Drop` of a guard, possibly while a panic unwinds: nothing here panics.
    fn rest(shared: &Arc<Self>, held: Held, cause: C, rest: Duration) {
        let now = Instant::now();
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        if !core.timer.as_ref().is_some_and(Timer::is_running) {
            core.timer = Self::start_timer(shared);
        }
        let runs = core.timer.as_ref().is_some_and(Timer::is_running);
        if !runs || core.shutting_down || core.state.given_back(held).is_none() {
            drop(guard);
            return shared.requeue(held, cause);
        }
        // Before any change, and caught: this may run in an unwinding, where a panic that leaves
        // a `Drop` ends the process.
        let find =
            || core.state.item(held).map(|(hash, item)| core.delays.find(hash, item, Kind::Rest));
        let Ok(Some(found)) = catch_unwind(AssertUnwindSafe(find)) else {
            drop(guard);
            return shared.requeue(held, cause);
        };
        let worked = core.observe_released(held, shared.observed.then_some(now));
        let Some((hash, item, request)) = core.state.rest(held, cause) else { return };
        let waiting = Waiting { item, hash, kind: Kind::Rest, request };
        let due = deadline_after(now, rest);
        let delayed = core.delays.insert_found(found, waiting, due, &mut core.merge);
        let panics = core.merge.take_panics();
        drop(guard);
        if let Delayed::Next(_) = delayed {
            shared.timer_wake.notify_one();
        }
        panics.report(&shared.name);
        if let Some(metrics) = &shared.metrics {
            metrics.released(worked, Change::None);
        }
    }
}

impl<T, C> Shared<T, C> {
    /// Queues an unfinished item again at once.
    ///
    /// It needs no bound on `T` and no runtime. It is the fallback of each case in which the item
    /// cannot wait.
    fn requeue(&self, held: Held, cause: C) {
        self.release(held, |core| core.state.give_back(held, cause, &mut core.merge));
    }
}

/// The delay of an item that is given back for the second time.
const FIRST_REST: Duration = Duration::from_millis(5);

/// The longest delay of an item that is given back: 1,000 s, as in the default rate limiter.
const LONGEST_REST: Duration = Duration::from_secs(1000);

/// Returns the delay of an item that was given back `before` times since it was last done; `None`
/// if it is queued at once.
///
/// The delay is `FIRST_REST · 2^(before - 1)`, at most [`LONGEST_REST`]. A power that overflows
/// counts as the largest `u32`, which exceeds the maximum.
fn rest_after(before: u32) -> Option<Duration> {
    let factor = 2_u32.checked_pow(before.checked_sub(1)?).unwrap_or(u32::MAX);
    Some(FIRST_REST.saturating_mul(factor).min(LONGEST_REST))
}
