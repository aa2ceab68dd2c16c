//! The guard that a worker holds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::state::{Held, Taken};

use super::shared::Shared;

/// An item that this worker, and no other, may work on until it is [`done`](Self::done).
///
/// Dropped without `done` (a panic, a future that was cancelled) the item is given back *and* queued
/// again, also after [`Queue::shut_down`](crate::Queue::shut_down): nobody has finished it.
/// Only one that [`Queue::drain`](crate::Queue::drain) has handed back is not queued again.
///
/// This keeps its queue alive.
#[must_use = "dropped at once, the item is queued again"]
pub struct Processing<T> {
    /// `None` once it is done. (Not a flag beside it: that has to be carried along with each move.)
    shared: Option<Arc<Shared<T>>>,
    held: Held,
    priority: i32,
    item: T,
}

// === impl Processing ===

impl<T> Processing<T> {
    #[inline]
    pub(super) fn new(shared: &Arc<Shared<T>>, taken: Taken<T>) -> Self {
        let Taken { held, item, priority } = taken;
        Self { shared: Some(Arc::clone(shared)), held, priority, item }
    }

    /// The priority at which the item was queued; 0 in a queue without priorities.
    ///
    /// Retry at it: `queue.at_priority(item.priority()).add_rate_limited(…)`.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Finishes the item. If it was added in the meantime, it is queued again now.
    #[inline]
    pub fn done(mut self) {
        if let Some(shared) = self.shared.take() {
            shared.release(self.held, true);
        }
    }
}

impl<T> Drop for Processing<T> {
    fn drop(&mut self) {
        // Nothing here needs a runtime: it may have ended already.
        if let Some(shared) = self.shared.take() {
            shared.release(self.held, false);
            let queue = &*shared.name;
            tracing::debug!(queue, "an item was dropped before it was done: it is given back");
        }
    }
}

impl<T> Deref for Processing<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: fmt::Debug> fmt::Debug for Processing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processing").field(&self.item).finish()
    }
}
