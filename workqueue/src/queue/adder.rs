//! Adds items with a cause and at a priority.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use crate::delays::{Kind, deadline_after};
use crate::inspect::Operation;
use crate::request::Terms;

use super::Queue;
use super::shared::Shared;

/// Adds to a [`Queue`] with a cause and at a priority; made by [`Queue::because`] or
/// [`Queue::at_priority`].
///
/// An item has one priority: the highest at which it was added since its last hand-out. If the
/// priority of a queued item rises, the item moves to the end of its new priority. The priority of
/// a delayed item counts when its delay ends. An item that is added while held is queued at that
/// priority when its worker is done. An item that its worker drops without
/// [`done`](super::Processing::done) keeps at least its priority.
///
/// It borrows the queue and takes no lock before one of its methods adds. Use the methods of
/// [`Queue`] when neither a cause nor a priority is needed.
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
#[must_use = "this adds nothing before one of its methods is called"]
#[doc(alias = "AddWithOpts")]
pub struct Adder<'a, T, Cause = ()> {
    queue: &'a Queue<T, Cause>,
    priority: i32,
    cause: Cause,
}

// === impl Adder ===

impl<'a, T, Cause> Adder<'a, T, Cause> {
    pub(super) fn new(queue: &'a Queue<T, Cause>, cause: Cause) -> Self {
        Self { queue, priority: 0, cause }
    }

    /// Sets the priority; the default is 0. It has an effect only in a queue built with
    /// [`QueueBuilder::priorities`](super::QueueBuilder::priorities).
    pub fn at_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

impl<T, Cause> Adder<'_, T, Cause>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Adds an item, as [`Queue::add`] does.
    pub fn add(self, item: T) {
        let Self { queue, priority, cause } = self;
        queue.shared.add(item, Terms { priority, operation: Operation::Add, cause });
    }

    /// Adds several items, as [`Queue::add_batch`] does. Each item gets a clone of the cause.
    pub fn add_batch(self, items: impl IntoIterator<Item = T>)
    where
        Cause: Clone,
    {
        self.queue.shared.add_batch(items, self.priority, &self.cause);
    }

    /// Adds an item when `delay` has passed, as [`Queue::add_after`] does.
    ///
    /// If the item is already queued, its priority rises only when the delay ends.
    ///
    /// # Panics
    ///
    /// In the same cases as [`Queue::add_after`].
    #[track_caller]
    pub fn add_after(self, item: T, delay: Duration) {
        self.delay(item, delay, Operation::AddAfter);
    }

    /// Adds an item when `delay` has passed, whatever is added meanwhile, as [`Queue::schedule`]
    /// does.
    ///
    /// # Panics
    ///
    /// In the same cases as [`Queue::add_after`].
    #[track_caller]
    pub fn schedule(self, item: T, delay: Duration) {
        self.delay(item, delay, Operation::Schedule);
    }

    /// Adds an item that has failed, as [`Queue::add_rate_limited`] does.
    ///
    /// # Panics
    ///
    /// In the same cases as [`Queue::add_rate_limited`].
    ///
    /// # Examples
    ///
    /// A failed item that keeps its priority and its cause:
    ///
    /// ```
    /// use homeostat_workqueue::{Priorities, Queue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let priorities = Priorities::default();
    /// let queue = Queue::builder().priorities(priorities).causes(|_: &mut u8, _| ()).build();
    /// queue.because(7).at_priority(10).add("default/web");
    ///
    /// let key = queue.try_get().expect("it was added");
    /// queue.because(*key.cause()).at_priority(key.priority()).add_rate_limited(*key);
    /// key.done();
    ///
    /// let retry = queue.get().await.expect("the queue is not shut down"); // 5 ms later
    /// assert_eq!((*retry.cause(), retry.priority()), (7, 10));
    /// retry.done();
    /// # }
    /// ```
    #[track_caller]
    pub fn add_rate_limited(self, item: T) {
        let shared = &self.queue.shared;
        if shared.core.lock().shutting_down {
            return;
        }
        let delay = shared.limiter.when(&shared.name, &item, Instant::now());
        self.delay(item, delay, Operation::AddRateLimited);
    }

    /// Queues the item at once if the delay is zero: that needs neither the timer nor a runtime.
    #[track_caller]
    fn delay(self, item: T, delay: Duration, operation: Operation) {
        let Self { queue, priority, cause } = self;
        let terms = Terms { priority, operation, cause };
        if delay.is_zero() {
            queue.shared.add(item, terms);
        } else {
            let due = deadline_after(Instant::now(), delay);
            let kind = if operation == Operation::Schedule { Kind::Schedule } else { Kind::Delay };
            Shared::delay(&queue.shared, item, due, kind, terms);
        }
    }
}

impl<T, Cause: Clone> Clone for Adder<'_, T, Cause> {
    fn clone(&self) -> Self {
        Self { queue: self.queue, priority: self.priority, cause: self.cause.clone() }
    }
}

impl<T, Cause: Copy> Copy for Adder<'_, T, Cause> {}

impl<T, Cause: fmt::Debug> fmt::Debug for Adder<'_, T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adder")
            .field("queue", self.queue)
            .field("priority", &self.priority)
            .field("cause", &self.cause)
            .finish()
    }
}
