//! The queue's handle, with which producers add items and workers take them.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

mod adder;
mod builder;
mod core;
mod delaying;
mod drain;
mod get;
mod many;
mod metrics;
mod observer;
mod processing;
mod shared;
mod snapshot;
mod taking;
mod task;
mod ticker;
mod timer;
mod unfinished;
mod waiters;
mod worker;
mod workers;

use self::shared::Shared;

pub use self::adder::Adder;
pub use self::builder::{LOW_PRIORITY, Priorities, QueueBuilder};
pub use self::metrics::DURATION_BUCKETS;
pub use self::processing::Processing;
pub use self::unfinished::Unfinished;
pub use self::worker::{WorkBatch, WorkItem, Worker};

/// A queue that hands each item to one worker at a time and never loses an item.
///
/// This is a handle: clones are cheap and share one queue. The [crate documentation](crate) lists
/// the promises. `Cause` is the type of the [causes](Self::because) that requests carry.
///
/// Use it for keys that name an object to reconcile, not for messages of which each one counts: the
/// queue merges equal items. For messages, use a channel.
///
/// The queue hashes and compares `T`, and clones it once per hand-out. Use a type that is cheap to
/// clone.
///
/// # Cost
///
/// All handles share one lock, which each call takes for a short time. The author's `Eq` and
/// `Clone`, and the merge function of the causes, run under it; no waker, no rate limiter and no
/// `Drop` of an item does.
///
/// # Panics
///
/// A panic of the item's `Hash`, `Eq` or `Clone`, or of the function of
/// [`fair_by`](QueueBuilder::fair_by), reaches the caller of the method. The queue stays usable and
/// loses no item that it had before.
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
/// queue.add_after("default/slow", Duration::from_secs(60));
/// queue.add("default/web");
///
/// let key = queue.get().await.expect("the queue is not shut down");
/// queue.add("default/web"); // held: queued when the worker is done
/// assert!(queue.try_get().is_none());
/// key.done();
/// assert_eq!(*queue.try_get().expect("it was added while held"), "default/web");
///
/// let unfinished = queue.drain(Duration::from_secs(5)).await;
/// assert_eq!(unfinished.delayed, ["default/slow"]);
/// # }
/// ```
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "workqueue")]
pub struct Queue<T, Cause = ()> {
    shared: Arc<Shared<T, Cause>>,
}

// === impl Queue ===

impl<T> Queue<T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Creates an empty queue without a name. Its [`add_rate_limited`](Self::add_rate_limited)
    /// waits 5 ms after the first failure of an item, then twice as long after each further one, up
    /// to 1,000 s.
    ///
    /// This spawns no task and needs no runtime.
    ///
    /// Use [`builder`](Self::builder) in production: metrics and logs need a name.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a queue with options.
    pub fn builder() -> QueueBuilder<T> {
        QueueBuilder::new()
    }

    /// Adds an item, which the queue then hands out once.
    ///
    /// An item that is already queued is not queued a second time. An item that a worker holds is
    /// queued when the worker is done. A pending delay of the item ends, except a deadline of
    /// [`schedule`](Self::schedule). After [`shut_down`](Self::shut_down) this does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add("default/web");
    /// queue.add("default/web");
    /// assert_eq!(queue.len(), 1);
    /// ```
    #[doc(alias = "Add")]
    pub fn add(&self, item: T) {
        self.because(()).add(item);
    }

    /// Adds several items in order, as [`add`](Self::add) does for each, at a lower cost.
    ///
    /// This locks the queue once per 128 items; the iterator runs outside of the lock. It wakes as
    /// many workers as it queues items. While the iterator is blocked, workers may already take the
    /// items of earlier chunks.
    ///
    /// # Examples
    ///
    /// The initial list of an informer:
    ///
    /// ```
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add_batch(["default/web", "default/db", "default/web"]);
    /// assert_eq!(queue.len(), 2);
    /// ```
    pub fn add_batch(&self, items: impl IntoIterator<Item = T>) {
        self.because(()).add_batch(items);
    }

    /// Adds an item when `delay` has passed.
    ///
    /// If an item has several delays, the earliest deadline counts. An [`add`](Self::add) in the
    /// meantime ends the delay. Any `Duration` is valid: the queue limits it to 100 years. An item
    /// that is queued or held can have a delay too; it is then handed out again later. After
    /// [`shut_down`](Self::shut_down) this does nothing.
    ///
    /// The first delay starts the queue's timer as a task on the caller's runtime, whose time
    /// driver must be enabled; the task ends with the last handle of the queue. If that runtime
    /// shuts down first, no delay ends until the next call starts the timer on another runtime.
    ///
    /// # Panics
    ///
    /// If `delay` is not zero, the queue's timer does not run yet, and the caller is outside of a
    /// tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add_after("default/web", std::time::Duration::from_secs(60));
    /// let key = queue.get().await.expect("the queue is not shut down"); // 60 s later
    /// assert_eq!(*key, "default/web");
    /// # }
    /// ```
    #[doc(alias = "AddAfter")]
    #[track_caller]
    pub fn add_after(&self, item: T, delay: Duration) {
        self.because(()).add_after(item, delay);
    }

    /// Adds an item when `delay` has passed, whatever is added meanwhile.
    ///
    /// This is [`add_after`](Self::add_after), except that an [`add`](Self::add) of the item leaves
    /// the deadline in place, as in client-go. Use it for a deadline that is computed once, such as
    /// `minReadySeconds`: an event of the object before the deadline does not remove it.
    ///
    /// If an item is scheduled several times, the earliest deadline counts. Its deadline of
    /// `add_after` is a separate one. [`cancel`](Self::cancel) removes both.
    ///
    /// # Panics
    ///
    /// In the same cases as [`add_after`](Self::add_after).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.schedule("default/web", Duration::from_secs(60));
    /// queue.add("default/web"); // an event
    /// queue.try_get().expect("it was added").done();
    ///
    /// let key = queue.get().await.expect("the queue is not shut down"); // 60 s later
    /// assert_eq!(*key, "default/web");
    /// # }
    /// ```
    #[track_caller]
    pub fn schedule(&self, item: T, delay: Duration) {
        self.because(()).schedule(item, delay);
    }

    /// Adds an item that has failed, after the delay that the rate limiter returns.
    ///
    /// Call [`forget`](Self::forget) when the item succeeds. After [`shut_down`](Self::shut_down)
    /// this does nothing, and the failure is not counted.
    ///
    /// # Panics
    ///
    /// In the same cases as [`add_after`](Self::add_after). A panic of the rate limiter is caught:
    /// the item then waits for [`FALLBACK_DELAY`](crate::FALLBACK_DELAY), 1 s.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add_rate_limited("default/web");
    /// assert_eq!(queue.failures(&"default/web"), 1);
    /// queue.forget(&"default/web");
    /// assert_eq!(queue.failures(&"default/web"), 0);
    /// # }
    /// ```
    #[doc(alias = "AddRateLimited")]
    #[track_caller]
    pub fn add_rate_limited(&self, item: T) {
        self.because(()).add_rate_limited(item);
    }

    /// Returns an [`Adder`] that adds at this priority: `queue.at_priority(10).add(item)`. Higher
    /// priorities are handed out first. The methods of the queue itself add at priority 0.
    ///
    /// Priorities have an effect only in a queue built with [`QueueBuilder::priorities`].
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue};
    ///
    /// let queue = Queue::builder().priorities(Priorities::default()).build();
    /// queue.at_priority(LOW_PRIORITY).add("resync");
    /// queue.add("change");
    /// assert_eq!(*queue.try_get().expect("two are queued"), "change");
    /// ```
    pub fn at_priority(&self, priority: i32) -> Adder<'_, T> {
        self.because(()).at_priority(priority)
    }
}

impl<T, Cause> Queue<T, Cause>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Returns an [`Adder`] that adds with a cause: `queue.because(cause).add(item)`.
    ///
    /// The worker that takes the item reads the cause with [`Processing::cause`]. If the item is
    /// already queued or delayed, or was added while held, the function passed to
    /// [`QueueBuilder::causes`] merges the two causes. A cause needs no additional lock.
    ///
    /// # Examples
    ///
    /// The number of events behind one reconcile:
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// let queue = Queue::builder().causes(|events: &mut u32, more: u32| *events += more).build();
    /// queue.because(1).add("default/web");
    /// queue.because(1).add("default/web");
    /// let key = queue.try_get().expect("it was added");
    /// assert_eq!(*key.cause(), 2);
    /// key.done();
    /// ```
    pub fn because(&self, cause: Cause) -> Adder<'_, T, Cause> {
        Adder::new(self, cause)
    }

    /// Removes the delays of an item. Returns true if the item was delayed.
    ///
    /// An item that is already queued stays queued, and the rate limiter keeps its failures until
    /// [`forget`](Self::forget). The delay of an item that its worker dropped without `done` stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add_after("default/web", Duration::from_secs(60));
    /// assert!(queue.cancel(&"default/web"));
    /// assert!(!queue.cancel(&"default/web"), "it has no delay any more");
    /// # }
    /// ```
    pub fn cancel(&self, item: &T) -> bool {
        self.shared.cancel(item)
    }

    /// Resets the item's failures in the rate limiter. The item stays queued, delayed or held.
    ///
    /// Without this call the item keeps its place in the limiter's memory, and its next
    /// failure waits as long as if it had never succeeded. If the limiter panics, the panic is
    /// logged and counted, and nothing else happens.
    #[doc(alias = "Forget")]
    pub fn forget(&self, item: &T) {
        self.shared.limiter.forget(&self.shared.name, item);
    }

    /// Returns the number of failures of the item since the last [`forget`](Self::forget), as the
    /// rate limiter counts them.
    ///
    /// Use it to give up after a number of attempts. It is 0 if the limiter does not count per
    /// item, or if it panics.
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self, item: &T) -> u32 {
        self.shared.limiter.failures(&self.shared.name, item)
    }
}

impl<T, Cause> Clone for Queue<T, Cause> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Queue<T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<T, Cause> fmt::Debug for Queue<T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared.core.lock();
        let (queued, held, delayed) = (core.state.queued(), core.state.held(), core.delays.len());
        let shutting_down = core.shutting_down;
        drop(core); // formatting runs the caller's code
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .field("queued", &queued)
            .field("held", &held)
            .field("delayed", &delayed)
            .field("shutting_down", &shutting_down)
            .finish_non_exhaustive()
    }
}
