//! The queue's handle: `add` on one side, `get` on the other.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::delays::deadline_after;
use crate::request::Reason;

mod at_priority;
mod builder;
mod core;
mod drain;
mod get;
mod inspect;
mod many;
mod metrics;
mod observer;
mod processing;
mod shared;
mod timer;
mod waiters;

use self::get::Get;
use self::shared::Shared;

pub use self::at_priority::AtPriority;
pub use self::builder::{Builder, LOW_PRIORITY, Priorities};
pub use self::drain::Undone;
pub use self::inspect::{Delayed, Held, Queued, Snapshot};
pub use self::metrics::DURATION_BUCKETS;
pub use self::processing::Processing;

/// A queue that hands each item to one worker at a time and never loses one.
///
/// This is a handle: cheap to clone, and all clones are the same queue. What the queue promises is
/// told on the [crate's page](crate).
///
/// Use it for keys that say *where* to look, not for messages that must each be seen: two equal items
/// become one. For messages, use a channel.
///
/// `T` is hashed, compared, and cloned once per hand-out; make it cheap to clone.
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
/// let key = queue.get().await.expect("nobody has shut the queue down");
/// queue.add("default/web"); // not handed out again before it is done
/// assert!(queue.try_get().is_none());
/// key.done();
/// assert_eq!(*queue.try_get().expect("it was added while it was held"), "default/web");
///
/// let undone = queue.drain(Duration::from_secs(5)).await;
/// assert_eq!(undone.delayed, ["default/slow"]);
/// # }
/// ```
pub struct Queue<T> {
    shared: Arc<Shared<T>>,
}

// === impl Queue ===

impl<T> Queue<T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Makes an empty queue without a name, whose [`add_rate_limited`](Self::add_rate_limited) waits
    /// 5 ms after an item's first failure, then twice as long each time, up to 1,000 s.
    ///
    /// This spawns nothing and needs no runtime.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Makes a queue with options.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    /// Asks for the item to be handed out once from now on.
    ///
    /// An item that is queued already is not queued twice. One that a worker holds is queued when the
    /// worker is done. One that is delayed is not delayed any longer. After
    /// [`shut_down`](Self::shut_down) this does nothing.
    pub fn add(&self, item: T) {
        self.shared.add(item, 0, Reason::Added);
    }

    /// Adds all of these, in order, as [`add`](Self::add) does each, at less cost.
    ///
    /// The queue is locked once for many items; the iterator runs while it is not. As many workers are
    /// woken as items were queued. Items that come before one that the iterator waits for may be handed
    /// out already.
    pub fn add_batch(&self, items: impl IntoIterator<Item = T>) {
        self.shared.add_batch(items, 0);
    }

    /// Takes back the delay of an item; returns whether it was delayed.
    ///
    /// What is queued already is handed out all the same, and a failure that was counted stays so until
    /// [`forget`](Self::forget).
    pub fn cancel(&self, item: &T) -> bool {
        self.shared.cancel(item)
    }

    /// Asks for the item to be handed out once, when `delay` has passed.
    ///
    /// Of several delays of one item the one that ends first counts, and an [`add`](Self::add) in the
    /// meantime ends it. Any `Duration` is fine: what is longer than a century waits a century. A delay
    /// of an item that is queued or held at the moment stands: it asks for another look, later.
    /// After [`shut_down`](Self::shut_down) this does nothing.
    ///
    /// # Panics
    ///
    /// If `delay` is not zero, and this is called outside of a tokio runtime before the queue's timer
    /// runs. The first delay starts that timer, as a task on the runtime of its caller; it ends with
    /// the last handle of the queue. The runtime must have its time driver enabled. If it ends before the
    /// queue, no delay is over until the next call starts the timer again, on another one.
    #[track_caller]
    pub fn add_after(&self, item: T, delay: Duration) {
        self.delay(item, 0, delay);
    }

    /// Asks for an item that has failed to be handed out again, when the rate limiter allows it.
    ///
    /// Call [`forget`](Self::forget) when it has succeeded. After [`shut_down`](Self::shut_down) this
    /// does nothing, and the failure is not counted.
    ///
    /// # Panics
    ///
    /// As [`add_after`](Self::add_after), and if the limiter does.
    #[track_caller]
    pub fn add_rate_limited(&self, item: T) {
        self.retry(item, 0);
    }

    /// Adds at a priority, in any of the ways to add: higher ones are handed out first. Everything else
    /// is added at 0.
    ///
    /// This counts only in a queue that was built with [`Builder::priorities`].
    pub fn at_priority(&self, priority: i32) -> AtPriority<'_, T> {
        AtPriority { queue: self, priority }
    }

    /// Lets the rate limiter forget the item's failures. The item stays queued, delayed or held.
    pub fn forget(&self, item: &T) {
        self.shared.limiter.lock().forget(item);
    }

    /// How often the item has failed, as the rate limiter counts, since it was last forgotten.
    pub fn failures(&self, item: &T) -> u32 {
        self.shared.limiter.lock().failures(item)
    }

    /// Waits for an item and takes it; `None` once the queue is shut down and nothing is queued.
    ///
    /// Items come in the order in which they were queued, unless the queue was built with
    /// [priorities](Builder::priorities) or to be [fair](Builder::fair_by). Workers that wait are served in the order
    /// in which they came, but one that has just come may be faster than one that has just been woken.
    ///
    /// A worker that sees `None` can end. An item that another worker still holds may be queued again
    /// after that, when it is dropped without `done`: [`drain`](Self::drain) hands it back then.
    ///
    /// # Cancel safety
    ///
    /// This is cancel-safe: if the future is dropped, no item was taken, and if it had been woken for
    /// an item, another worker is woken instead.
    // No `async fn`: that would be one more future around this one, and one more copy of what it hands out.
    pub fn get(&self) -> impl Future<Output = Option<Processing<T>>> + Send {
        Get::new(&self.shared)
    }

    /// Takes an item if one is queued.
    pub fn try_get(&self) -> Option<Processing<T>> {
        Shared::take(&self.shared)
    }

    /// What is queued, delayed and held, since when and why; `None` if the queue was not built to be
    /// [inspected](Builder::inspect) and has no metrics.
    ///
    /// This copies all items under the queue's lock: for a page that somebody looks at, not for a loop.
    pub fn inspect(&self) -> Option<Snapshot<T>> {
        self.shared.inspect()
    }

    /// How many items are queued. Those that are delayed or held do not count.
    pub fn len(&self) -> usize {
        self.shared.core.lock().state.queued()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`shut_down`](Self::shut_down) or [`drain`](Self::drain) was called.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.core.lock().shutting_down
    }

    /// The name that the builder was given.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Ends the queue: nothing is added from now on, what is queued is still handed out, and then
    /// [`get`](Self::get) returns `None` to everybody.
    ///
    /// What is delayed stays so, until [`drain`](Self::drain) hands it back. An item that is held and
    /// was added meanwhile, or that is dropped without `done`, is queued again nevertheless.
    pub fn shut_down(&self) {
        self.shared.shut_down();
    }

    /// Shuts down, waits until nothing is queued and nothing is held, but no longer than `deadline`,
    /// and hands back what is left: the items that are still held or queued, and those that were
    /// delayed.
    ///
    /// The workers have to go on for this to end before the deadline. What is handed back is not queued
    /// again, also not when its worker drops it without `done`. Of several drains at the same time,
    /// each item is handed back by one.
    ///
    /// # Panics
    ///
    /// If it is polled outside of a tokio runtime with its time driver enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue is shut down, but nothing was handed back; it can be drained
    /// again.
    pub async fn drain(&self, deadline: Duration) -> Undone<T> {
        self.shared.shut_down();
        let idle = drain::Idle::new(&self.shared);
        // Whether it is idle or the time is over: what is left is what is left.
        let _: Result<(), _> = tokio::time::timeout(deadline, idle).await;
        self.shared.hand_back()
    }
}

impl<T> Queue<T>
where
    T: Eq + Hash + Send + Sync + 'static,
{
    #[track_caller]
    fn delay(&self, item: T, priority: i32, delay: Duration) {
        self.ask_after(item, priority, delay, Reason::Delayed);
    }

    #[track_caller]
    fn retry(&self, item: T, priority: i32) {
        if self.shared.core.lock().shutting_down {
            return;
        }
        let delay = self.shared.limiter.lock().when(&item, Instant::now());
        self.ask_after(item, priority, delay, Reason::RateLimited);
    }

    #[track_caller]
    fn ask_after(&self, item: T, priority: i32, delay: Duration, reason: Reason) {
        if delay.is_zero() {
            self.shared.add(item, priority, reason);
        } else {
            let due = deadline_after(Instant::now(), delay);
            Shared::delay(&self.shared, item, priority, due, reason);
        }
    }
}

impl<T> Clone for Queue<T> {
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

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared.core.lock();
        let (queued, held, delayed) = (core.state.queued(), core.state.held(), core.delays.len());
        let shutting_down = core.shutting_down;
        drop(core); // the formatter is the caller's code
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .field("queued", &queued)
            .field("held", &held)
            .field("delayed", &delayed)
            .field("shutting_down", &shutting_down)
            .finish_non_exhaustive()
    }
}
