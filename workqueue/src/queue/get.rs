//! The future behind `Queue::get`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

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
}

impl<T: Clone + Send + Sync + 'static> Future for Get<'_, T> {
    type Output = Option<Processing<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waker = None;
        loop {
            let now = self.shared.now();
            let mut core = self.shared.core.lock();
            let taken = core.state.take();
            if taken.is_some() || core.shutting_down {
                let held = taken.as_ref().map(|taken| taken.held);
                let waited = held.map(|held| core.observe_taken(held, now)).unwrap_or_default();
                // It is still in the line if it was polled without having been woken.
                let left = self.ticket.take().and_then(|ticket| core.workers.leave(ticket));
                drop(core);
                drop(left);
                let shared = self.shared;
                return Poll::Ready(taken.map(|taken| Shared::hand_out(shared, taken, waited)));
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
