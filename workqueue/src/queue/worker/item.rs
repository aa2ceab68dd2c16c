//! [`WorkItem`]: the item that a worker lends.

use std::fmt;
use std::ops::Deref;

use super::Worker;
use crate::state::Taken;

/// An item that a [`Worker`] holds; made by [`Worker::next`].
///
/// It dereferences to the item. The next call of [`Worker::next`] finishes the item, and so does
/// [`done`](Self::done). Dropping it does nothing, unlike a dropped
/// [`Processing`](crate::Processing): the worker still holds the item. To have it queued again,
/// call [`give_back`](Self::give_back).
pub struct WorkItem<'a, T, Cause = ()> {
    worker: &'a mut Worker<T, Cause>,
}

// === impl WorkItem ===

impl<'a, T, Cause> WorkItem<'a, T, Cause> {
    pub(super) fn new(worker: &'a mut Worker<T, Cause>) -> Self {
        Self { worker }
    }

    fn taken(&self) -> &Taken<T, Cause> {
        self.worker.hand.held.first().expect("an item is lent while the worker holds it")
    }

    /// Returns the cause of this hand-out, merged from all adds since the last one.
    pub fn cause(&self) -> &Cause {
        &self.taken().cause
    }

    /// Returns the priority at which the item was queued; 0 in a queue without priorities.
    pub fn priority(&self) -> i32 {
        self.taken().priority
    }

    /// Finishes the item now. If it was added while held, it is queued again.
    ///
    /// The next call of [`Worker::next`] does the same under the lock that it takes anyway.
    #[doc(alias = "Done")]
    pub fn done(self) {
        self.worker.finish();
    }

    /// Queues the item again, as a dropped [`Processing`](crate::Processing) does: at once the
    /// first time, and after a delay if it was given back before.
    pub fn give_back(self) {
        self.worker.give_back();
    }
}

impl<T, Cause> Deref for WorkItem<'_, T, Cause> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.taken().item
    }
}

impl<T: fmt::Debug, Cause> fmt::Debug for WorkItem<'_, T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkItem").field(&**self).finish()
    }
}
