//! The steps that queue items: adds, and the ends of delays.
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
use std::time::Duration;

use tokio::time::Instant;

use crate::delays::Kind;
use crate::inspect::Operation;
use crate::order::Rank;
use crate::request::{Request, Terms};

use super::super::many::Many;
use super::super::waiters::wake;
use super::{Next, Shared};

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
