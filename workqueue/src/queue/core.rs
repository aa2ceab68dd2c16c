//! What the queue's lock guards, and the steps under it that need more than one of its parts.

use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use crate::delays::Delays;
use crate::order::{Rank, Ranking};
use crate::request::Request;
use crate::state::{Added, Found, Held, State};

use super::observer::Observer;
use super::timer::Timer;
use super::waiters::Waiters;

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
    pub(super) timer: Option<Timer>,
    /// Only if somebody wants to know. Then, and only then, each step is told the time.
    pub(super) observer: Option<Box<Observer>>,
}

/// What became of an item that was to be queued.
pub(super) struct Enqueued<T> {
    pub(super) worker: Option<Waker>,
    /// What was known and what was delayed: to be dropped outside of the lock.
    pub(super) spare: [Option<T>; 2],
    pub(super) change: Change,
}

/// What an item that was to be queued, or was returned, has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: it was asked for already, or is gone.
    None,
    /// One more is queued at this priority.
    Queued(i32),
    /// It is held, and was not asked for since: it is to be queued at this priority.
    Wanted(i32),
    /// It was asked for, at a lower priority.
    Raised { from: i32, to: i32 },
    /// It was returned unfinished, and not asked for since: it is queued at this priority again.
    Returned(i32),
}

// === impl Core ===

impl<T> Core<T> {
    pub(super) fn new(ranking: Option<Ranking>, observed: bool) -> Self {
        Self {
            state: State::new(ranking),
            delays: Delays::new(),
            workers: Waiters::new(),
            drains: Waiters::new(),
            shutting_down: false,
            timer: None,
            observer: observed.then(|| Box::new(Observer::new())),
        }
    }

    /// A worker has taken an item. Tells how long it was queued, if that is observed.
    #[inline]
    pub(super) fn observe_taken(&mut self, held: Held, now: Option<Instant>) -> Duration {
        match (&mut self.observer, now) {
            (Some(observer), Some(now)) => observer.taken(held.slot(), now),
            _ => Duration::ZERO,
        }
    }

    /// A worker has returned an item. Tells how long it was held, if that is observed.
    #[inline]
    pub(super) fn observe_released(&mut self, held: Held, now: Option<Instant>) -> Duration {
        match (&mut self.observer, now) {
            (Some(observer), Some(now)) => observer.released(held.slot(), now),
            _ => Duration::ZERO,
        }
    }

    /// What a slot changes that is queued again, and that was asked for, while held, at this priority.
    pub(super) fn requeued(&self, slot: u32, wanted: Option<i32>) -> Change {
        let to = self.state.priority(slot);
        match wanted {
            None => Change::Returned(to),
            Some(from) if from == to => Change::None,
            Some(from) => Change::Raised { from, to },
        }
    }

    /// Gives up the memory of a burst that is over; what is returned is to be dropped outside of the lock.
    pub(super) fn trim(&mut self) -> Option<State<T>> {
        let burst = self.state.trim();
        if let (Some(observer), Some(_)) = (&mut self.observer, &burst) {
            observer.trim();
        }
        burst
    }
}

impl<T: Eq> Core<T> {
    /// Queues an item that is wanted now.
    #[inline]
    pub(super) fn add(
        &mut self,
        hash: u64,
        item: T,
        request: Request,
        now: Option<Instant>,
    ) -> Enqueued<T> {
        // All that is compared is compared before anything changes: an `Eq` that panics costs nothing
        // but this call.
        let found = self.state.find(hash, &item);
        let (delayed, rank) = self.overtake(hash, &item, request.rank);
        let mut enqueued = self.enqueue(found, item, Request { rank, ..request }, now);
        enqueued.spare[1] = delayed;
        enqueued
    }

    /// Queues the first item whose delay is over, if there is one.
    pub(super) fn end_delay(&mut self, now: Instant) -> Option<Enqueued<T>> {
        let (hash, item) = self.delays.first_due(now)?;
        let found = self.state.find(hash, item); // before anything changes, as above
        let (_, item, request) = self.delays.take_due(now)?;
        Some(self.enqueue(found, item, request, Some(now)))
    }

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

    /// Queues an item that was just searched.
    #[inline]
    fn enqueue(
        &mut self,
        found: Found,
        item: T,
        request: Request,
        now: Option<Instant>,
    ) -> Enqueued<T> {
        let Request { rank, reason } = request;
        let added = self.state.add(found, item, rank);
        if let (Some(observer), Some(now)) = (&mut self.observer, now) {
            match added {
                Added::Queued(slot) => observer.queued(slot, reason, now),
                Added::Wanted(slot, _) => observer.wanted(slot, reason, now),
                Added::Raised { .. } | Added::Merged(_) => {}
            }
        }
        let (known, change) = match added {
            Added::Queued(_) => (None, Change::Queued(rank.priority)),
            Added::Wanted(_, item) => (Some(item), Change::Wanted(rank.priority)),
            Added::Raised { from, item } => {
                (Some(item), Change::Raised { from, to: rank.priority })
            }
            Added::Merged(item) => (Some(item), Change::None),
        };
        let queued = matches!(change, Change::Queued(_));
        let worker = if queued { self.workers.next() } else { None };
        Enqueued { worker, spare: [known, None], change }
    }
}
