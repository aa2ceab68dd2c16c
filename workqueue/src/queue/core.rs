//! The state behind the queue's lock, and the steps that change several parts of it.
//!
//! A `Core` wakes no task and drops no item: it returns wakers and items for the
//! caller to wake and drop after the release of the lock. `Shared` owns the lock and calls each
//! step.

use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use crate::cause::Merge;
use crate::delays::{Delays, Kind, Waiting};
use crate::order::Ranking;
use crate::request::Request;
use crate::state::{Added, Found, Held, State};

use super::observer::Observer;
use super::task::OwnedTask;
use super::waiters::Waiters;
use super::workers::Workers;

/// The parts of a queue that change together. Protected by `Shared::core`.
pub(super) struct Core<T, C> {
    /// The queued and held items.
    pub(super) state: State<T, C>,
    /// The delayed items. After `shut_down` it only shrinks, by `cancel` and by a drain.
    pub(super) delays: Delays<T, C>,
    /// Merges the causes of an item that is added twice.
    pub(super) merge: Merge<C>,
    /// Workers that wait for an item. While an item is queued and a worker waits here, at least one
    /// woken worker has not polled yet.
    pub(super) workers: Workers,
    /// Drains that wait until no item is queued or held.
    pub(super) drains: Waiters,
    /// Set by `shut_down` and never reset: adds are ignored, and no delay ends.
    pub(super) shutting_down: bool,
    /// The task that ends delays; `None` before the first delay.
    pub(super) timer: Option<OwnedTask>,
    /// `Some` if the queue is inspected or measured. Only then does a step receive the time.
    pub(super) observer: Option<Box<Observer>>,
}

/// The outcome of adding an item.
pub(super) struct Enqueued<T, C> {
    /// The worker to wake for a newly queued item, if one waits.
    pub(super) worker: Option<Waker>,
    /// The item that was merged and those whose delays ended. The caller drops them outside of the
    /// lock.
    pub(super) spare: [Option<T>; 3],
    /// The cause of an item that a drain has returned. The caller drops it outside of the lock.
    pub(super) ignored: Option<C>,
    /// The effect on the depth, for the metrics.
    pub(super) change: Change,
}

/// The effect of an add or a release on the queue's depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// None: the item was already requested, or is gone.
    None,
    /// The item is newly queued at this priority.
    Queued(i32),
    /// The item is held and requested again, for the first time since its hand-out, at this
    /// priority.
    Wanted(i32),
    /// The item was already requested, at a lower priority.
    Raised { from: i32, to: i32 },
    /// The worker dropped the item without `done`; it is queued again at this priority.
    Returned(i32),
}

// === impl Core ===

impl<T, C> Core<T, C> {
    pub(super) fn new(ranking: Option<Ranking>, merge: Merge<C>, observed: bool) -> Self {
        Self {
            state: State::new(ranking),
            delays: Delays::new(),
            merge,
            workers: Workers::new(),
            drains: Waiters::new(),
            shutting_down: false,
            timer: None,
            observer: observed.then(|| Box::new(Observer::new())),
        }
    }

    /// Returns the waker of a worker if the queued items need one more.
    #[inline]
    pub(super) fn wake_worker(&mut self) -> Option<Waker> {
        self.workers.wake_for(self.state.queued())
    }

    /// Records that a worker has taken an item. Returns how long it was queued, or zero without an
    /// observer.
    #[inline]
    pub(super) fn observe_taken(&mut self, held: Held, now: Option<Instant>) -> Duration {
        match (&mut self.observer, now) {
            (Some(observer), Some(now)) => observer.taken(held.slot(), now),
            _ => Duration::ZERO,
        }
    }

    /// Records that a worker has returned an item. Returns how long it was held, or zero without an
    /// observer.
    #[inline]
    pub(super) fn observe_released(&mut self, held: Held, now: Option<Instant>) -> Duration {
        match (&mut self.observer, now) {
            (Some(observer), Some(now)) => observer.released(held.slot(), now),
            _ => Duration::ZERO,
        }
    }

    /// Returns the change of a slot that is queued again and was requested, while held, at priority
    /// `wanted`.
    pub(super) fn requeued(&self, slot: u32, wanted: Option<i32>) -> Change {
        let to = self.state.priority(slot);
        match wanted {
            None => Change::Returned(to),
            Some(from) if from == to => Change::None,
            Some(from) => Change::Raised { from, to },
        }
    }

    /// Returns the drains to wake if the queue is idle, and the memory of a past burst. The caller
    /// drops it outside of the lock.
    #[inline]
    pub(super) fn settle_if_idle(&mut self) -> (Vec<Waker>, Option<State<T, C>>) {
        if self.state.is_idle() { (self.drains.all(), self.trim()) } else { (Vec::new(), None) }
    }

    /// Releases the memory of a past burst. The caller drops the returned state outside of the
    /// lock.
    fn trim(&mut self) -> Option<State<T, C>> {
        let burst = self.state.trim();
        if let (Some(observer), Some(_)) = (&mut self.observer, &burst) {
            observer.trim();
        }
        burst
    }
}

impl<T: Eq, C> Core<T, C> {
    /// Queues an item and ends its delay.
    ///
    /// An item that waits for `add_after` or after a return is taken out of the delays: the add
    /// makes it ready now. A deadline of `schedule` stays.
    #[inline]
    pub(super) fn add(
        &mut self,
        hash: u64,
        item: T,
        request: Request<C>,
        now: Option<Instant>,
    ) -> Enqueued<T, C> {
        // All comparisons run before any change, so that a panic of `Eq` changes nothing.
        let found = self.state.find(hash, &item);
        let [delayed, rest] = self.delays.find_all(hash, &item, [Kind::Delay, Kind::Rest]);
        let (delayed, request) = self.overtake(delayed, request);
        let (rest, request) = self.overtake(rest, request);
        let mut enqueued = self.enqueue(found, item, request, now);
        enqueued.spare[1] = delayed;
        enqueued.spare[2] = rest;
        enqueued
    }

    /// Queues the first item whose delay has ended, if any.
    ///
    /// Returns `None` if nothing is due at `now`. The item keeps the operation of the request that
    /// set its deadline, for `inspect`.
    pub(super) fn end_delay(&mut self, now: Instant) -> Option<Enqueued<T, C>> {
        let (hash, item) = self.delays.first_due(now)?;
        let found = self.state.find(hash, item); // before any change, as above
        let due = self.delays.take_due(now)?;
        Some(self.enqueue(found, due.item, due.request, Some(now)))
    }

    /// Ends the delay in this slot, if any, because its item is added now. The request takes the
    /// higher of both priorities and the merged cause. Returns the delayed item, which the caller
    /// drops outside of the lock.
    #[inline]
    fn overtake(&mut self, slot: Option<u32>, mut request: Request<C>) -> (Option<T>, Request<C>) {
        let Some(slot) = slot else { return (None, request) };
        let Waiting { item, request: mut delayed, .. } = self.delays.remove_found(slot);
        self.merge.merge(&mut delayed.cause, request.cause);
        request.rank.priority = request.rank.priority.max(delayed.rank.priority);
        request.given_back = request.given_back.max(delayed.given_back);
        (Some(item), Request { cause: delayed.cause, ..request })
    }

    /// Queues an item that the caller has just looked up.
    #[inline]
    fn enqueue(
        &mut self,
        found: Found,
        item: T,
        request: Request<C>,
        now: Option<Instant>,
    ) -> Enqueued<T, C> {
        let (priority, operation) = (request.rank.priority, request.operation);
        let added = self.state.add(found, item, request, &mut self.merge);
        if let (Some(observer), Some(now)) = (&mut self.observer, now) {
            match added {
                Added::Queued(slot) => observer.queued(slot, operation, now),
                Added::Wanted(slot, _) => observer.wanted(slot, operation, now),
                Added::Raised { .. } | Added::Merged(_) | Added::Ignored(..) => {}
            }
        }
        let mut ignored = None;
        let (known, change) = match added {
            Added::Queued(_) => (None, Change::Queued(priority)),
            Added::Wanted(_, item) => (Some(item), Change::Wanted(priority)),
            Added::Raised { from, item } => (Some(item), Change::Raised { from, to: priority }),
            Added::Merged(item) => (Some(item), Change::None),
            Added::Ignored(item, cause) => {
                ignored = Some(cause);
                (Some(item), Change::None)
            }
        };
        let queued = matches!(change, Change::Queued(_));
        let worker = if queued { self.wake_worker() } else { None };
        Enqueued { worker, spare: [known, None, None], ignored, change }
    }
}
