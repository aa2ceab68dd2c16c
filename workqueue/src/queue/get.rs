//! The future behind `Queue::get`.
//!
//! A wake-up is a hint, not a reservation: the woken future takes an item under the lock, and if
//! another worker was faster it waits at the end of the line. A woken future that is dropped passes
//! its wake-up on, so that no queued item stays without a worker while workers wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::processing::Processing;
use super::shared::Shared;
use super::waiters::{Ticket, wake};

/// A future that waits for an item. It takes the item in the poll that returns it. If it is dropped
/// after a wake-up, it wakes another worker.
pub(super) struct Get<'a, T, C> {
    /// Borrowed, so that a waiting future costs no reference count; the guard takes one.
    shared: &'a Arc<Shared<T, C>>,
    /// The ticket of its place in the line of workers; stale after a wake-up.
    ticket: Option<Ticket>,
}

// === impl Get ===

impl<'a, T, C> Get<'a, T, C> {
    pub(super) fn new(shared: &'a Arc<Shared<T, C>>) -> Self {
        Self { shared, ticket: None }
    }
}

/// Each turn of the loop holds the lock once. A poll takes at most two turns, except if the waker
/// is replaced in between.
impl<T, C> Future for Get<'_, T, C>
where
    T: Clone + Send + Sync + 'static,
    C: Send + 'static,
{
    type Output = Option<Processing<T, C>>;

    /// Inlined into the caller, so that the returned item is not copied.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut waker = None;
        loop {
            let now = this.shared.now();
            let mut core = this.shared.core.lock();
            if let Some(taken) = core.state.take() {
                let waited = core.observe_taken(taken.held, now);
                let left = core.workers.leave(&mut this.ticket);
                let next = core.wake_worker();
                drop(core);
                drop(left);
                wake(next);
                return Poll::Ready(Some(Processing::hand_out(this.shared, taken, waited)));
            }
            if core.shutting_down {
                let left = core.workers.leave(&mut this.ticket);
                drop(core);
                drop(left);
                return Poll::Ready(None);
            }
            if let Some(waker) = waker.take() {
                let replaced = core.workers.wait(&mut this.ticket, waker);
                drop(core);
                drop(replaced);
                return Poll::Pending;
            }
            if core.workers.waits_with(this.ticket, cx.waker()) {
                return Poll::Pending;
            }
            // A waker's `clone` is the caller's code, so it runs outside of the lock. The loop then
            // checks the queue again.
            drop(core);
            waker = Some(cx.waker().clone());
        }
    }
}

/// A future that was woken but dropped before its poll wakes another worker for the item.
impl<T, C> Drop for Get<'_, T, C> {
    fn drop(&mut self) {
        if self.ticket.is_none() {
            return;
        }
        let mut core = self.shared.core.lock();
        let left = core.workers.leave(&mut self.ticket);
        let next = core.wake_worker();
        drop(core);
        drop(left);
        wake(next);
    }
}
