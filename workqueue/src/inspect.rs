//! The contents of a queue at one moment, for a debug page: see
//! [`Queue::inspect`](crate::Queue::inspect).

use tokio::time::Instant;

/// The contents of a queue at one moment; made by [`Queue::inspect`](crate::Queue::inspect).
///
/// A delayed item may also be queued or held. An item with several deadlines (of
/// [`add_after`](crate::Queue::add_after), of [`schedule`](crate::Queue::schedule), after a drop
/// without `done`) is in `delayed` once for each.
///
/// Use it when an operator asks why an object is not reconciled: the item is held, waits behind
/// others, or is delayed after failures. Use the metrics of the queue for alerts; they cost less.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::Queue;
/// use homeostat_workqueue::inspect::Operation;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = Queue::builder().inspect().build();
/// queue.add_batch(["default/web", "default/db"]);
/// queue.add_after("default/slow", Duration::from_secs(60));
/// let key = queue.try_get().expect("two are queued");
/// queue.add("default/web"); // while the worker holds it
///
/// let snapshot = queue.inspect().expect("the queue was built with `inspect`");
/// assert_eq!(snapshot.held[0].item, "default/web");
/// assert!(snapshot.held[0].again);
/// assert_eq!(snapshot.queued[0].item, "default/db");
/// assert_eq!(snapshot.queued[0].operation, Operation::Add);
/// assert_eq!(snapshot.delayed[0].item, "default/slow");
/// key.done();
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot<T> {
    /// The items that wait for a worker, longest waiting first.
    pub queued: Vec<Queued<T>>,
    /// The delayed items, earliest deadline first.
    pub delayed: Vec<Delayed<T>>,
    /// The items that workers hold, longest held first.
    pub held: Vec<Held<T>>,
}

/// An item that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued<T> {
    /// The item.
    pub item: T,
    /// The operation that queued it.
    pub operation: Operation,
    /// The time of that operation.
    pub since: Instant,
    /// Its priority; 0 in a queue without priorities.
    pub priority: i32,
    /// The number of its failures, as the rate limiter counts.
    pub failures: u32,
}

/// An item that is queued when its delay ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delayed<T> {
    /// The item.
    pub item: T,
    /// The operation that delayed it.
    pub operation: Operation,
    /// The time at which it is queued.
    pub until: Instant,
    /// The priority at which it will be queued; 0 in a queue without priorities.
    pub priority: i32,
    /// The number of its failures, as the rate limiter counts.
    pub failures: u32,
}

/// An item that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held<T> {
    /// The item.
    pub item: T,
    /// The operation that queued it.
    pub operation: Operation,
    /// The time at which the worker took it.
    pub since: Instant,
    /// True if the queue queues it again when the worker is done.
    pub again: bool,
    /// The priority at which it was queued; 0 in a queue without priorities.
    pub priority: i32,
    /// The number of its failures, as the rate limiter counts.
    pub failures: u32,
}

/// The operation that put an item into the queue; the first one, if there were several. For a
/// delayed item it is the one that set the deadline.
///
/// This is the queue's method. The reason in the author's terms is the
/// [cause](crate::Queue::because).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`add`](crate::Queue::add) or [`add_batch`](crate::Queue::add_batch).
    Add,
    /// [`add_after`](crate::Queue::add_after).
    AddAfter,
    /// [`schedule`](crate::Queue::schedule).
    Schedule,
    /// [`add_rate_limited`](crate::Queue::add_rate_limited).
    AddRateLimited,
    /// A worker dropped the item without [`done`](crate::Processing::done).
    GiveBack,
}

// === impl Snapshot ===

impl<T> Snapshot<T> {
    /// Fills in the failures of each item. The caller does this after releasing the queue's lock,
    /// because `failures` takes the lock of the rate limiter.
    pub(crate) fn set_failures(&mut self, failures: impl Fn(&T) -> u32) {
        for queued in &mut self.queued {
            queued.failures = failures(&queued.item);
        }
        for delayed in &mut self.delayed {
            delayed.failures = failures(&delayed.item);
        }
        for held in &mut self.held {
            held.failures = failures(&held.item);
        }
    }
}
