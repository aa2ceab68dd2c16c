//! Who waits, in the order in which they came. Pure: it keeps wakers, but never wakes one.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// Names a place in the line; not used again when the waiter has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A line of wakers. All that leave it are returned, to be woken or dropped outside of the lock.
pub(super) struct Waiters {
    /// Ascending by ticket. A waiter that is to be woken is not in here any more.
    line: VecDeque<(Ticket, Waker)>,
    next: u64,
}

// === impl Waiters ===

impl Waiters {
    pub(super) fn new() -> Self {
        Self { line: VecDeque::new(), next: 0 }
    }

    /// Waits in the line: at the place of its ticket if it still has one, otherwise at the end.
    ///
    /// Returns the waker that it had there before.
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

    /// Leaves the line; `None` if the waiter was taken out of it to be woken.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let place = self.place(ticket)?;
        self.line.remove(place).map(|(_, waker)| waker)
    }

    /// Takes out the one that has waited longest.
    pub(super) fn next(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|(_, waker)| waker)
    }

    /// Takes out everybody.
    pub(super) fn all(&mut self) -> Vec<Waker> {
        // Mostly there is nobody, and this is asked often.
        if self.line.is_empty() {
            return Vec::new();
        }
        self.line.drain(..).map(|(_, waker)| waker).collect()
    }

    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.line.binary_search_by_key(&ticket, |&(ticket, _)| ticket).ok()
    }
}
