//! The wait of a drain, and the items that it returns.
//!
//! A drain waits in its own line. The step that makes the queue idle wakes all drains; each one
//! checks under the lock if the queue is still idle.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::Shared;
use super::waiters::Ticket;

/// The items that were not done when [`Queue::drain`](crate::Queue::drain) ended; each list
/// contains an item at most once.
///
/// An item that is delayed and also queued or held is in two lists.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::Queue;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add("default/web");
/// queue.add_after("default/slow", Duration::from_secs(60));
/// let unfinished = queue.drain(Duration::from_secs(1)).await; // no worker runs
/// assert_eq!(unfinished.len(), 2);
/// let items: Vec<_> = unfinished.into_iter().collect();
/// assert_eq!(items, ["default/web", "default/slow"]);
/// # }
/// ```
#[must_use = "log the items that are not done"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished<T> {
    /// The items that workers still hold, in no particular order. The workers may still finish
    /// them.
    pub held: Vec<T>,
    /// The items that no worker has taken, in hand-out order.
    pub queued: Vec<T>,
    /// The items whose delay had not ended, earliest deadline first.
    pub delayed: Vec<T>,
}

/// A future that waits until no item is queued or held.
pub(super) struct Idle<'a, T, C> {
    shared: &'a Arc<Shared<T, C>>,
    /// The ticket of its place in the line of drains; stale after a wake-up.
    ticket: Option<Ticket>,
}

// === impl Unfinished ===

impl<T> Unfinished<T> {
    /// Returns true if all items were done.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items that were not done.
    pub fn len(&self) -> usize {
        self.held.len() + self.queued.len() + self.delayed.len()
    }
}

/// Iterates over all items: held, then queued, then delayed.
impl<T> IntoIterator for Unfinished<T> {
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
