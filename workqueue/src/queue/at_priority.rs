//! Adding at a priority.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use crate::request::Reason;

use super::Queue;

/// Adds to a [`Queue`] at a priority; made by [`Queue::at_priority`].
///
/// An item has one priority: of all those at which it was asked for since it was last handed out, the
/// highest. If that rises while the item is queued, it goes to the end of those with its new priority. A
/// delayed item keeps its priority until it is due; an item that is asked for while it is held is
/// queued at that priority when its worker is done; one that its worker drops without
/// [`done`](super::Processing::done) falls no lower than it was.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue};
///
/// let queue = Queue::builder().priorities(Priorities::default()).build();
/// queue.at_priority(LOW_PRIORITY).add_batch(["a", "b"]);
/// queue.add("b"); // a user has changed it
/// assert_eq!(*queue.try_get().expect("two are queued"), "b");
/// ```
#[must_use = "this only says at which priority to add"]
pub struct AtPriority<'a, T> {
    pub(super) queue: &'a Queue<T>,
    pub(super) priority: i32,
}

// === impl AtPriority ===

impl<T> AtPriority<'_, T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// As [`Queue::add`].
    pub fn add(&self, item: T) {
        self.queue.shared.add(item, self.priority, Reason::Added);
    }

    /// As [`Queue::add_batch`].
    pub fn add_batch(&self, items: impl IntoIterator<Item = T>) {
        self.queue.shared.add_batch(items, self.priority);
    }

    /// As [`Queue::add_after`].
    ///
    /// A delay of an item that is queued already is a request of its own: it raises the priority of the
    /// item only when it is over.
    ///
    /// # Panics
    ///
    /// As [`Queue::add_after`].
    #[track_caller]
    pub fn add_after(&self, item: T, delay: Duration) {
        self.queue.delay(item, self.priority, delay);
    }

    /// As [`Queue::add_rate_limited`].
    ///
    /// # Panics
    ///
    /// As [`Queue::add_rate_limited`].
    #[track_caller]
    pub fn add_rate_limited(&self, item: T) {
        self.queue.retry(item, self.priority);
    }
}

impl<T> fmt::Debug for AtPriority<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtPriority")
            .field("queue", self.queue)
            .field("priority", &self.priority)
            .finish()
    }
}
