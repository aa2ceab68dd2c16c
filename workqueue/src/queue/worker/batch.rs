//! [`WorkBatch`]: the items that a worker lends at once.

use std::fmt;

use super::Worker;

/// Items that a [`Worker`] holds; made by [`Worker::next_batch`].
///
/// There is at least one item. The next call of the worker finishes all of them. Dropping the batch
/// does nothing.
pub struct WorkBatch<'a, T, Cause = ()> {
    worker: &'a mut Worker<T, Cause>,
}

// === impl WorkBatch ===

impl<'a, T, Cause> WorkBatch<'a, T, Cause> {
    pub(super) fn new(worker: &'a mut Worker<T, Cause>) -> Self {
        Self { worker }
    }

    /// Returns the items, in hand-out order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.worker.hand.held.iter().map(|taken| &taken.item)
    }

    /// Returns the items with their causes, in hand-out order.
    pub fn causes(&self) -> impl Iterator<Item = (&T, &Cause)> {
        self.worker.hand.held.iter().map(|taken| (&taken.item, &taken.cause))
    }

    /// Finishes all items now.
    pub fn done(self) {
        self.worker.finish();
    }

    /// Queues all items again, as [`WorkItem::give_back`](super::WorkItem::give_back) does.
    pub fn give_back(self) {
        self.worker.give_back();
    }
}

impl<T: fmt::Debug, Cause> fmt::Debug for WorkBatch<'_, T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items()).finish()
    }
}
