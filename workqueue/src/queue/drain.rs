//! What a drain waits for, and what it hands back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Shared;
use super::waiters::Ticket;

/// What was not done when [`Queue::drain`](crate::Queue::drain) ended; each item once in each list.
#[must_use = "these items were asked for and not done: worth a line in the log"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone<T> {
    /// Workers still hold these, in no particular order. They may yet finish them.
    pub held: Vec<T>,
    /// No worker has taken these; they come in the order in which workers would have got them.
    pub queued: Vec<T>,
    /// These would have been queued later; the one that was due first comes first.
    pub delayed: Vec<T>,
}

/// Waits until nothing is queued and nothing is held.
pub(super) struct Idle<'a, T> {
    shared: &'a Arc<Shared<T>>,
    /// Its place in the line of drains, or where it had one before it was woken.
    ticket: Option<Ticket>,
}

// === impl Undone ===

impl<T> Undone<T> {
    /// Whether everything was done.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items were not done.
    pub fn len(&self) -> usize {
        self.held.len() + self.queued.len() + self.delayed.len()
    }
}

/// All of them: held, then queued, then delayed.
impl<T> IntoIterator for Undone<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        let mut items = self.held;
        items.extend(self.queued);
        items.extend(self.delayed);
        items.into_iter()
    }
}

// === impl Idle ===

impl<'a, T> Idle<'a, T> {
    pub(super) fn new(shared: &'a Arc<Shared<T>>) -> Self {
        Self { shared, ticket: None }
    }
}

impl<T> Future for Idle<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A waker's `clone` is somebody else's code: hence before the lock.
        let waker = cx.waker().clone();
        let mut core = self.shared.core.lock();
        if core.state.is_idle() {
            return Poll::Ready(());
        }
        let replaced = core.drains.wait(&mut self.ticket, waker);
        drop(core);
        drop(replaced);
        Poll::Pending
    }
}

impl<T> Drop for Idle<'_, T> {
    fn drop(&mut self) {
        // All drains are woken together: there is no wake-up to pass on.
        let left = self.ticket.and_then(|ticket| self.shared.core.lock().drains.leave(ticket));
        drop(left);
    }
}
