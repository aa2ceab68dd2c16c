//! The future behind `Queue::get`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use super::processing::Processing;
use super::shared::Shared;
use super::waiters::Ticket;

/// Waits for an item. Takes one only in the poll that returns it, and passes a wake-up on when it is
/// dropped.
pub(super) struct Get<'a, T> {
    shared: &'a Arc<Shared<T>>,
    /// Its place in the line of workers, or where it had one before it was woken.
    ticket: Option<Ticket>,
}

// === impl Get ===

impl<'a, T> Get<'a, T> {
    pub(super) fn new(shared: &'a Arc<Shared<T>>) -> Self {
        Self { shared, ticket: None }
    }

    /// Leaves the line: it is still there if it was polled without having been woken.
    fn leave(&mut self, core: &mut Core<T>) -> Option<Waker> {
        self.ticket.take().and_then(|ticket| core.workers.leave(ticket))
    }
}

impl<T: Clone + Send + Sync + 'static> Future for Get<'_, T> {
    type Output = Option<Processing<T>>;

    /// A part of the caller, so that what it hands out is not copied on its way.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waker = None;
        loop {
            let now = self.shared.now();
            let mut core = self.shared.core.lock();
            if let Some(taken) = core.state.take() {
                let waited = core.observe_taken(taken.held, now);
                let left = self.leave(&mut core);
                drop(core);
                drop(left);
                return Poll::Ready(Some(Shared::hand_out(self.shared, taken, waited)));
            }
            if core.shutting_down {
                let left = self.leave(&mut core);
                drop(core);
                drop(left);
                return Poll::Ready(None);
            }
            if let Some(waker) = waker.take() {
                let replaced = core.workers.wait(&mut self.ticket, waker);
                drop(core);
                drop(replaced);
                return Poll::Pending;
            }
            // A waker's `clone` is somebody else's code: hence outside of the lock, and a second look.
            drop(core);
            waker = Some(cx.waker().clone());
        }
    }
}

impl<T> Drop for Get<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut core = self.shared.core.lock();
        let left = core.workers.leave(ticket);
        // Woken, but gone before it looked: what it was woken for is somebody else's now.
        let next =
            if left.is_none() && core.state.queued() > 0 { core.workers.next() } else { None };
        drop(core);
        drop(left);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
