//! The methods with which workers take items, and those that observe and end the queue.

use std::hash::Hash;
use std::time::Duration;

use crate::inspect::Snapshot;

use super::drain::Idle;
use super::get::Get;
use super::unfinished::Unfinished;
use super::{Processing, Queue, Worker};

// === impl Queue ===

impl<T, Cause> Queue<T, Cause>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Waits for an item and takes it. Returns `None` when the queue is shut down and nothing is
    /// queued.
    ///
    /// Items come in the order in which they were queued, unless the queue was built with
    /// [priorities](crate::QueueBuilder::priorities) or [turns](crate::QueueBuilder::fair_by). The
    /// queue wakes waiting workers in the order in which they started to wait, but a new call may
    /// take the item before the woken worker does.
    ///
    /// A worker that receives `None` can stop. If another worker drops a held item without `done`
    /// after that, the item is queued again; [`drain`](Self::drain) returns it.
    ///
    /// # Panics
    ///
    /// If `T::clone` panics; the item then stays queued.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel-safe: a dropped future has taken no item. If it was woken for an item,
    /// the queue wakes another worker instead.
    ///
    /// # Examples
    ///
    /// Two workers with one queue:
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = Queue::new();
    /// let work = |queue: Queue<u32>| async move {
    ///     let mut handled = 0;
    ///     while let Some(key) = queue.get().await {
    ///         handled += 1;
    ///         key.done();
    ///     }
    ///     handled
    /// };
    /// let first = tokio::spawn(work(queue.clone()));
    /// let second = tokio::spawn(work(queue.clone()));
    /// queue.add_batch(0..10);
    /// queue.shut_down();
    /// assert_eq!(first.await.unwrap() + second.await.unwrap(), 10);
    /// # }
    /// ```
    // Not an `async fn`: that would add a future around this one, and a copy of the returned item.
    #[doc(alias = "Get")]
    pub fn get(&self) -> impl Future<Output = Option<Processing<T, Cause>>> + Send {
        Get::new(&self.shared)
    }

    /// Returns a worker, which lends items at a lower cost than [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add("default/web");
    /// queue.shut_down();
    ///
    /// let mut worker = queue.worker();
    /// while let Some(key) = worker.next().await {
    ///     assert_eq!(*key, "default/web");
    /// }
    /// # }
    /// ```
    pub fn worker(&self) -> Worker<T, Cause> {
        Worker::new(&self.shared)
    }

    /// Takes an item, or returns `None` if nothing is queued.
    ///
    /// It may take an item before a worker that waits in [`get`](Self::get). Use it in tests and in
    /// code that polls; a worker uses `get`.
    ///
    /// # Panics
    ///
    /// If `T::clone` panics; the item then stays queued.
    pub fn try_get(&self) -> Option<Processing<T, Cause>> {
        Processing::take(&self.shared)
    }

    /// Returns a copy of the queued, delayed and held items, or `None` if the queue was built
    /// without [`inspect`](crate::QueueBuilder::inspect) and has no metrics.
    ///
    /// This copies all items under the queue's lock. Use it for a debug page, not in a loop.
    pub fn inspect(&self) -> Option<Snapshot<T>> {
        self.shared.inspect()
    }

    /// Returns the time until the item is queued: zero if it is queued or held, and the rest of its
    /// earliest delay otherwise. Returns `None` if the queue does not have the item.
    ///
    /// It works without [`inspect`](crate::QueueBuilder::inspect), and takes one lookup.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use std::time::Duration;
    ///
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add_after("default/web", Duration::from_secs(9));
    /// assert_eq!(queue.time_until_due(&"default/web"), Some(Duration::from_secs(9)));
    /// assert_eq!(queue.time_until_due(&"default/db"), None);
    /// # }
    /// ```
    pub fn time_until_due(&self, item: &T) -> Option<Duration> {
        self.shared.time_until_due(item)
    }

    /// Returns true if a worker gets the item next, or gets it again: it is queued, or it was added
    /// while a worker holds it. A delayed item does not count.
    ///
    /// A worker that holds the item may leave work to the worker that gets it again. It takes one
    /// lookup.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add("default/web");
    /// let held = queue.get().await.expect("the queue is not shut down");
    /// assert!(!queue.is_requested(&"default/web"));
    /// queue.add("default/web");
    /// assert!(queue.is_requested(&"default/web"));
    /// # held.done();
    /// # }
    /// ```
    pub fn is_requested(&self, item: &T) -> bool {
        self.shared.is_requested(item)
    }

    /// Returns the number of queued items. Delayed and held items do not count.
    ///
    /// The number may be out of date when the call returns: other threads add and take items. Use
    /// it for logs and tests, not to decide if `get` would wait.
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.core.lock().state.queued()
    }

    /// Returns true if no item is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if [`shut_down`](Self::shut_down) or [`drain`](Self::drain) was called.
    ///
    /// It stays true: a queue that was shut down cannot be started again.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.core.lock().shutting_down
    }

    /// Returns the queue's name, or an empty string if the builder set none.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Shuts the queue down: from now on adds are ignored, queued items are still handed out, and
    /// then [`get`](Self::get) returns `None` to each worker.
    ///
    /// Delayed items stay delayed until [`drain`](Self::drain) returns them. A held item is still
    /// queued again if it was added meanwhile or is dropped without `done`.
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add("a");
    /// queue.shut_down();
    /// queue.add("b"); // ignored
    /// assert_eq!(queue.len(), 1);
    /// ```
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.shared.shut_down();
    }

    /// Shuts the queue down, waits until no item is queued or held, for at most `timeout`, and
    /// returns the items that are still held, queued or delayed.
    ///
    /// It does not wait for delays: after the shutdown no delay ends, and the delayed items are
    /// returned.
    ///
    /// Keep the workers running until this returns: without them a drain with queued or held items
    /// waits for the whole timeout. A returned item is not queued again, even if its worker drops
    /// it without `done`. If several drains run at the same time, each item is returned by one of
    /// them.
    ///
    /// # Panics
    ///
    /// If the future is polled outside of a tokio runtime with the time driver enabled, or if the
    /// `Clone` or `Eq` of an item panics. No item is taken out then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the first poll, the queue is shut down, and no item is
    /// returned or lost. Call `drain` again to get the items.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = homeostat_workqueue::Queue::new();
    /// queue.add("default/web");
    /// let key = queue.try_get().expect("it was added");
    /// let unfinished = queue.drain(std::time::Duration::from_secs(5)).await;
    /// assert_eq!(unfinished.held, ["default/web"]);
    /// key.done();
    /// # }
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self, timeout: Duration) -> Unfinished<T> {
        self.shared.shut_down();
        let idle = Idle::new(&self.shared);
        // The remaining items are returned in both cases: idle, and timed out.
        let _: Result<(), _> = tokio::time::timeout(timeout, idle).await;
        self.shared.hand_back()
    }
}
