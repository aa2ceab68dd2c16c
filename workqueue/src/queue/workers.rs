//! The line of workers that wait for items, and the number of them that are woken. Pure.
//!
//! Waking a task costs more than handing an item out, and a woken worker takes more than one item
//! before it waits again. So an add wakes a worker only if no woken worker is on its way, and the
//! woken worker wakes the next one when it finds further items. Every 16 queued items have a
//! woken worker of their own, so that a woken worker whose thread is blocked delays at most 16
//! items.

use std::task::Waker;

use super::waiters::{Ticket, Waiters};

/// The waiting workers. Each waker that leaves is returned, so that the caller wakes or drops it
/// outside of the lock.
pub(super) struct Workers {
    line: Waiters,
    /// The number of workers that were woken and have neither polled nor left since.
    woken: usize,
    /// The number of [`Worker`](super::Worker)s, waiting or not: the share of a batch depends on
    /// it.
    pub(super) registered: usize,
}

/// The number of queued items for which one more worker is woken.
const ITEMS_PER_WAKE: usize = 16;

// === impl Workers ===

impl Workers {
    pub(super) fn new() -> Self {
        Self { line: Waiters::new(), woken: 0, registered: 0 }
    }

    /// Takes out the worker that has waited longest, if the queued items need one more.
    #[inline]
    pub(super) fn wake_for(&mut self, queued: usize) -> Option<Waker> {
        if self.woken * ITEMS_PER_WAKE >= queued {
            return None;
        }
        let waker = self.line.next()?;
        self.woken += 1;
        Some(waker)
    }

    /// Returns true if the worker waits in the line with a waker that wakes the same task.
    pub(super) fn waits_with(&self, ticket: Option<Ticket>, waker: &Waker) -> bool {
        let waits = ticket.and_then(|ticket| self.line.waker(ticket));
        waits.is_some_and(|waits| waits.will_wake(waker))
    }

    /// Waits in the line. The worker keeps its place unless it was woken.
    ///
    /// Returns the previous waker of that place.
    pub(super) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: Waker) -> Option<Waker> {
        let woken = ticket.is_some_and(|ticket| self.line.waker(ticket).is_none());
        self.woken -= usize::from(woken);
        self.line.wait(ticket, waker)
    }

    /// Ends the wait of a worker that polls or is dropped. Returns its waker if it was not woken.
    #[inline]
    pub(super) fn leave(&mut self, ticket: &mut Option<Ticket>) -> Option<Waker> {
        let waker = self.line.leave(ticket.take()?);
        self.woken -= usize::from(waker.is_none());
        waker
    }

    /// Takes out all wakers.
    pub(super) fn all(&mut self) -> Vec<Waker> {
        let wakers = self.line.all();
        self.woken += wakers.len();
        wakers
    }
}
