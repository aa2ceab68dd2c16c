//! A worker that owns its handle of the queue, and lends the items that it takes.
//!
//! One step under one lock finishes the items of the last call, takes new ones, and waits in the
//! line if there are none. Compared with `get` and `done` this saves a lock and a reference count
//! per item, and the waker is cloned only if the worker waits.

mod batch;
mod hand;
mod item;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::{fmt, iter};

pub use self::batch::WorkBatch;
use self::hand::Hand;
pub use self::item::WorkItem;
use super::shared::Shared;
use super::ticker::tick;
use super::waiters::{Ticket, wake};
use crate::state::Taken;

/// A worker of a queue; made by [`Queue::worker`](crate::Queue::worker).
///
/// [`next`](Self::next) lends one item; the next call of it finishes this item. This is the
/// cheapest way to take items: one lock per item for the worker, and no reference count. Use
/// [`Queue::get`](crate::Queue::get) if the item moves into another task.
///
/// If the worker is dropped while it holds items (a panic, a cancelled task, a `break`), they are
/// queued again, as a dropped [`Processing`](crate::Processing) is. A worker that stops on purpose
/// calls [`WorkItem::done`] before.
///
/// A worker keeps the queue alive.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::Queue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add_batch(["default/web", "default/db"]);
/// queue.shut_down();
///
/// let mut worker = queue.worker();
/// let mut handled = Vec::new();
/// while let Some(key) = worker.next().await {
///     handled.push(*key); // the next call of `next` finishes the key
/// }
/// assert_eq!(handled, ["default/web", "default/db"]);
/// # }
/// ```
pub struct Worker<T, Cause = ()> {
    shared: Arc<Shared<T, Cause>>,
    hand: Hand<T, Cause>,
    /// A waker of the current task for the next wait.
    waker: Option<Waker>,
}

/// A future that takes items in the poll that returns true; false after the shut-down.
struct Take<'a, T, C> {
    worker: &'a mut Worker<T, C>,
    /// The maximum number of items.
    most: usize,
    /// The ticket of its place in the line of workers; stale after a wake-up.
    ticket: Option<Ticket>,
}

// === impl Worker ===

impl<T, Cause> Worker<T, Cause> {
    pub(super) fn new(shared: &Arc<Shared<T, Cause>>) -> Self {
        shared.core.lock().workers.registered += 1;
        Self { shared: Arc::clone(shared), hand: Hand::new(), waker: None }
    }

    /// Finishes the held items under one lock. They are dropped after all of them are finished: a
    /// drop that panics leaves none of them held.
    fn finish(&mut self) {
        let Self { shared, hand, .. } = self;
        let now = shared.now();
        let mut core = shared.core.lock();
        hand.finish(&mut core, now);
        let next: Vec<_> = iter::from_fn(|| core.wake_worker()).collect();
        let (drains, burst) = core.settle_if_idle();
        drop(core);
        wake(next.into_iter().chain(drains));
        drop(burst);
        hand.settle(shared.metrics.as_ref());
    }

    /// Queues the held items again, and drops them after that.
    fn give_back(&mut self) {
        let held = &mut self.hand.held;
        held.reverse(); // `pop` then takes the first one
        let mut items = Vec::with_capacity(held.len());
        while let Some(Taken { held, item, cause, .. }) = self.hand.held.pop() {
            items.push(item);
            Shared::give_back_unfinished(&self.shared, held, cause);
        }
    }

    /// Leaves the line. A worker that was woken wakes another one for the item, and so does one
    /// whose call panicked: the call may have queued items again.
    fn leave(&self, ticket: &mut Option<Ticket>) {
        if ticket.is_none() && self.hand.lent {
            return;
        }
        let mut core = self.shared.core.lock();
        let left = core.workers.leave(ticket);
        let next = core.wake_worker();
        drop(core);
        drop(left);
        wake(next);
    }
}

impl<T, Cause> Worker<T, Cause>
where
    T: Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Finishes the item of the last call, waits for an item and takes it. Returns `None` when the
    /// queue is shut down and nothing is queued.
    ///
    /// The order and the end are those of [`Queue::get`](crate::Queue::get). An item that was
    /// added while held is queued again when it is finished.
    ///
    /// # Panics
    ///
    /// If `T::clone` panics; the item then stays queued.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel-safe: a dropped future has taken no item. If it was polled, it has
    /// finished the item of the last call.
    pub async fn next(&mut self) -> Option<WorkItem<'_, T, Cause>> {
        let taken = Take { worker: self, most: 1, ticket: None }.await;
        taken.then_some(WorkItem::new(self))
    }

    /// Finishes the items of the last call, waits for an item, and takes up to `most` items under
    /// one lock. Returns `None` when the queue is shut down and nothing is queued.
    ///
    /// A batch is at most this worker's share: the queued items divided by the number of
    /// [`Worker`]s of the queue, rounded up. A `most` of 0 counts as 1.
    ///
    /// All items of a batch are held until the next call. Use it for work that takes microseconds
    /// per item, such as filling a channel or a bulk request: while the first item waits, no other
    /// worker can take the last one.
    ///
    /// # Panics
    ///
    /// If `T::clone` panics. The items then stay queued or are queued again.
    ///
    /// # Cancel safety
    ///
    /// As [`next`](Self::next).
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = Queue::new();
    /// queue.add_batch(0..100);
    /// queue.shut_down();
    ///
    /// let mut worker = queue.worker();
    /// let mut sizes = Vec::new();
    /// while let Some(batch) = worker.next_batch(64).await {
    ///     sizes.push(batch.items().count());
    /// }
    /// assert_eq!(sizes, [64, 36]);
    /// # }
    /// ```
    pub async fn next_batch(&mut self, most: usize) -> Option<WorkBatch<'_, T, Cause>> {
        let taken = Take { worker: self, most: most.max(1), ticket: None }.await;
        taken.then_some(WorkBatch::new(self))
    }

    /// Finishes the items of the last call and takes new ones, under one lock. Waits in the line if
    /// nothing is queued.
    #[inline]
    fn step(&mut self, most: usize, ticket: &mut Option<Ticket>) -> Poll<bool> {
        let Self { shared, hand, waker } = self;
        let now = shared.now();
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        let finished = hand.finish(core, now);
        hand.take(core, most, now);
        let outcome = match hand.held.is_empty() {
            false => Poll::Ready(true),
            true if core.shutting_down => Poll::Ready(false),
            true => Poll::Pending,
        };
        let left = match (outcome, waker.as_ref()) {
            (Poll::Ready(_), _) => core.workers.leave(ticket),
            (Poll::Pending, Some(known)) if core.workers.waits_with(*ticket, known) => None,
            (Poll::Pending, _) => waker.take().and_then(|new| core.workers.wait(ticket, new)),
        };
        let next = core.wake_worker();
        let (drains, burst) = if finished { core.settle_if_idle() } else { (Vec::new(), None) };
        drop(guard);
        drop(left);
        wake(next.into_iter().chain(drains));
        drop(burst);
        hand.settle(shared.metrics.as_ref());
        if let (Poll::Ready(true), Some(metrics)) = (outcome, &shared.metrics) {
            tick(metrics, shared);
        }
        outcome
    }
}

/// Queues the held items again.
impl<T, Cause> Drop for Worker<T, Cause> {
    fn drop(&mut self) {
        // First, because the drop of an item may panic.
        self.shared.core.lock().workers.registered -= 1;
        // This needs no runtime: the runtime may have shut down already.
        self.give_back();
        // The updates of a call that panicked.
        self.hand.settle(self.shared.metrics.as_ref());
    }
}

impl<T, Cause> fmt::Debug for Worker<T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queue, held) = (&self.shared.name, self.hand.held.len());
        f.debug_struct("Worker").field("queue", queue).field("held", &held).finish_non_exhaustive()
    }
}

// === impl Take ===

impl<T, C> Future for Take<'_, T, C>
where
    T: Clone + Send + Sync + 'static,
    C: Send + 'static,
{
    type Output = bool;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let Self { worker, most, ticket } = &mut *self;
        // The items of a call that panicked were never lent.
        if !worker.hand.lent {
            worker.give_back();
            worker.hand.settle(worker.shared.metrics.as_ref());
        }
        // A waker's `clone` is the caller's code, so it runs outside of the lock. A worker that
        // takes an item keeps its waker for the next call.
        if !worker.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            worker.waker = Some(cx.waker().clone());
        }
        let outcome = worker.step(*most, ticket);
        worker.hand.lent = outcome == Poll::Ready(true);
        outcome
    }
}

impl<T, C> Drop for Take<'_, T, C> {
    fn drop(&mut self) {
        self.worker.leave(&mut self.ticket);
    }
}
