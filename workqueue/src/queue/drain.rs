//! The wait of a drain.
//!
//! A drain waits in its own line. The step that makes the queue idle wakes all drains; each one
//! checks under the lock if the queue is still idle.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Shared;
use super::waiters::Ticket;

/// A future that waits until no item is queued or held.
pub(super) struct Idle<'a, T, C> {
    shared: &'a Arc<Shared<T, C>>,
    /// The ticket of its place in the line of drains; stale after a wake-up.
    ticket: Option<Ticket>,
}

// === impl Idle ===

impl<'a, T, C> Idle<'a, T, C> {
    pub(super) fn new(shared: &'a Arc<Shared<T, C>>) -> Self {
        Self { shared, ticket: None }
    }
}

impl<T, C> Future for Idle<'_, T, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A waker's `clone` is the caller's code, so it runs before the lock is taken.
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

impl<T, C> Drop for Idle<'_, T, C> {
    fn drop(&mut self) {
        // A wake-up goes to all drains at once, so that there is none to pass on.
        let left = self.ticket.and_then(|ticket| self.shared.core.lock().drains.leave(ticket));
        drop(left);
    }
}
