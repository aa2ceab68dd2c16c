//! A FIFO line of wakers. Pure: it stores wakers and never wakes one; the caller does, by [`wake`].
//!
//! The line is short: one entry per waiting worker or drain. A place is found by its ticket in
//! `O(log n)`; leaving from the middle moves the entries behind it.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// Identifies a place in the line; tickets are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A line of wakers. Each waker that leaves it is returned, so that the caller wakes or drops it
/// outside of the lock.
pub(super) struct Waiters {
    /// Ascending by ticket. A woken waiter is no longer in it.
    line: VecDeque<(Ticket, Waker)>,
    /// The number of the next ticket.
    next: u64,
}

// === impl Waiters ===

impl Waiters {
    pub(super) fn new() -> Self {
        Self { line: VecDeque::new(), next: 0 }
    }

    /// Waits in the line: at the place of the ticket if it still has one, otherwise at the end.
    ///
    /// Returns the previous waker of that place.
    pub(super) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: Waker) -> Option<Waker> {
        if let Some(place) = ticket.and_then(|ticket| self.place(ticket)) {
            return Some(mem::replace(&mut self.line[place].1, waker));
        }
        let new = Ticket(self.next);
        self.next += 1;
        self.line.push_back((new, waker));
        *ticket = Some(new);
        None
    }

    /// Leaves the line; `None` if the waiter has been woken.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let place = self.place(ticket)?;
        self.line.remove(place).map(|(_, waker)| waker)
    }

    /// Takes out the waker that has waited longest.
    pub(super) fn next(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|(_, waker)| waker)
    }

    /// Takes out all wakers.
    pub(super) fn all(&mut self) -> Vec<Waker> {
        // The line is usually empty, and this is called often.
        if self.line.is_empty() {
            return Vec::new();
        }
        self.line.drain(..).map(|(_, waker)| waker).collect()
    }

    /// Returns the waker at a place; `None` if the waiter was woken or has left.
    pub(super) fn waker(&self, ticket: Ticket) -> Option<&Waker> {
        self.place(ticket).map(|place| &self.line[place].1)
    }

    /// Returns the index of a ticket in the line; `None` if its waiter was woken or has left.
    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.line.binary_search_by_key(&ticket, |&(ticket, _)| ticket).ok()
    }
}

/// Wakes these tasks. The caller must not hold the lock, because a waker runs the executor's code.
pub(super) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
