//! The builder of a queue, with its options.

use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::cause::Merge;
use crate::order::Ranking;
use crate::rate_limiter::{ExponentialFailureRateLimiter, RateLimiter};

use super::Queue;
use super::shared::{Dimension, Options, Shared};

/// The priority for work that can wait: the initial list after a start, and resyncs. Changes are
/// added at 0 and come first. (controller-runtime's `handler.LowPriority` has the same value.)
pub const LOW_PRIORITY: i32 = -100;

/// The order by priority: higher priorities first, and no item waits forever.
///
/// Every tenth hand-out is the item that has been queued longest, whatever its priority. With `p`
/// items queued before it, an item is handed out within `10 · (p + 1)` hand-outs. Higher priorities
/// still get nine of ten hand-outs.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
///
/// use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue};
///
/// let third = NonZeroU32::new(3).expect("not zero");
/// let queue = Queue::builder().priorities(Priorities::default().oldest_every(third)).build();
/// queue.at_priority(LOW_PRIORITY).add_batch(["low", "low too"]);
/// queue.add_batch(["a", "b", "c"]);
/// let order = [(); 5].map(|()| {
///     let item = queue.try_get().expect("five were added");
///     let name = *item;
///     item.done();
///     name
/// });
/// assert_eq!(order, ["a", "b", "low", "c", "low too"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an option for the queue's builder"]
pub struct Priorities {
    oldest_every: Option<NonZeroU32>,
}

/// Builds a [`Queue`]; each option has a default.
///
/// Made by [`Queue::builder`]. Defaults: no name and so no metrics, a per-item back-off of 5 ms to
/// 1,000 s, FIFO order, no causes, no inspection.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::{Priorities, Queue, default_controller_rate_limiter};
///
/// let queue: Queue<String> = Queue::builder()
///     .name("replicaset")
///     .rate_limiter(default_controller_rate_limiter())
///     .priorities(Priorities::default())
///     .build();
/// assert_eq!(queue.name(), "replicaset");
/// ```
#[must_use = "a builder makes no queue before `build`"]
pub struct QueueBuilder<T, Cause = ()> {
    name: Arc<str>,
    limiter: Box<dyn RateLimiter<T>>,
    /// Does nothing before `causes` is called: `Cause` is then `()`.
    merge: Merge<Cause>,
    priorities: Option<Priorities>,
    dimension: Option<Dimension<T>>,
    inspected: bool,
}

// === impl Priorities ===

impl Priorities {
    /// Sets how often the queue ignores the priorities: each `every`-th hand-out is the item that
    /// has been queued longest. The default is 10.
    ///
    /// With `p` items queued before it, an item is handed out within `every · (p + 1)` hand-outs.
    pub fn oldest_every(self, every: NonZeroU32) -> Self {
        Self { oldest_every: Some(every) }
    }

    /// Always hands out the highest priority. Items of a low priority can wait forever.
    ///
    /// Use it only if high priorities are rare. controller-runtime's priority queue has this order.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::{Priorities, Queue};
    ///
    /// let queue = Queue::builder().priorities(Priorities::default().strict()).build();
    /// queue.at_priority(-1).add(0);
    /// queue.add_batch(1..=20);
    /// for _ in 0..20 {
    ///     let item = queue.try_get().expect("20 of priority 0 are queued");
    ///     assert_ne!(*item, 0);
    ///     item.done();
    /// }
    /// assert_eq!(*queue.try_get().expect("one is left"), 0);
    /// ```
    pub fn strict(self) -> Self {
        Self { oldest_every: None }
    }
}

/// Every tenth hand-out is the item that has been queued longest.
impl Default for Priorities {
    fn default() -> Self {
        Self { oldest_every: NonZeroU32::new(10) }
    }
}

// === impl QueueBuilder ===

impl<T> QueueBuilder<T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        Self {
            name: Arc::from(""),
            limiter: Box::<ExponentialFailureRateLimiter<T>>::default(),
            merge: Merge::new(|(), ()| ()),
            priorities: None,
            dimension: None,
            inspected: false,
        }
    }

    /// Lets each request carry a cause: the reason for which the item was added, as a type of the
    /// author.
    ///
    /// The queue merges the causes of an item that is added several times: `merge(earlier, later)`
    /// merges `later` into `earlier`. The queue calls it when an item is added that is already
    /// queued or delayed, or was already added while held, and when a worker drops an item that was
    /// added meanwhile. Without causes (`Cause = ()`) the queue stores nothing and calls nothing.
    ///
    /// `merge` runs under the queue's lock. Keep it short, and do not call the queue in it. If it
    /// panics, `earlier` keeps its value at the panic, and the panic is logged and counted. The
    /// queue does not call it for a zero-sized type, because two such causes are always equal.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Trigger {
    ///     Changed,
    ///     Resync,
    /// }
    ///
    /// // A change is more than a resync; otherwise the first trigger stays.
    /// let queue = Queue::builder()
    ///     .causes(|earlier: &mut Trigger, later: Trigger| {
    ///         if *earlier == Trigger::Resync {
    ///             *earlier = later;
    ///         }
    ///     })
    ///     .build();
    /// queue.because(Trigger::Resync).add("default/web");
    /// queue.because(Trigger::Changed).add("default/web");
    ///
    /// let key = queue.try_get().expect("it was added");
    /// assert_eq!(*key.cause(), Trigger::Changed);
    /// key.done();
    /// assert!(queue.try_get().is_none(), "one request, one hand-out");
    /// ```
    pub fn causes<Cause: Send + 'static>(
        self,
        merge: impl Fn(&mut Cause, Cause) + Send + 'static,
    ) -> QueueBuilder<T, Cause> {
        let Self { name, limiter, merge: _, priorities, dimension, inspected } = self;
        QueueBuilder { name, limiter, merge: Merge::new(merge), priorities, dimension, inspected }
    }
}

impl<T, Cause> QueueBuilder<T, Cause>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Names the queue in logs and metrics.
    ///
    /// If there is a recorder for the `metrics` facade when the queue is built, a queue with a name
    /// reports the metrics of client-go's queues, with the label `name`: `workqueue_depth`,
    /// `workqueue_adds_total`, `workqueue_queue_duration_seconds`,
    /// `workqueue_work_duration_seconds`, `workqueue_unfinished_work_seconds`,
    /// `workqueue_longest_running_processor_seconds` and `workqueue_retries_total`. Unlike
    /// [`Queue::len`], the depth also counts held items that were added again. With
    /// [`priorities`](Self::priorities) the depth also has the label `priority`, with up to 25
    /// values, and `exceeded_cardinality_limit` for all other priorities.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the rate limiter, which computes the delay of [`Queue::add_rate_limited`]. The default
    /// is [`ExponentialFailureRateLimiter::default`].
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Hands out items by their [priority](Queue::at_priority), and items of equal priority in the
    /// order in which they were queued. Without this option, priorities have no effect.
    pub fn priorities(mut self, priorities: Priorities) -> Self {
        self.priorities = Some(priorities);
        self
    }

    /// Lets namespaces, tenants or other groups take turns within a priority. `dimension` returns
    /// the group of an item. Each hand-out is the first item of the next group that has items
    /// queued, so that a group with many items does not delay a group with few.
    ///
    /// While two groups have items of the highest queued priority, the numbers of their hand-outs
    /// differ by at most 1. The hand-outs of the longest queued item ([`Priorities`]) come in
    /// addition.
    ///
    /// The function runs outside of the queue's lock, once per add. Only the hash of its result
    /// counts: groups with the same hash share their turns. The result cannot borrow from the item;
    /// to avoid a copy of a name, return a hash of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// let queue = Queue::builder().fair_by(|&(tenant, _): &(&str, u32)| tenant).build();
    /// queue.add_batch([("busy", 1), ("busy", 2), ("busy", 3), ("quiet", 1)]);
    /// let held = [(); 4].map(|()| queue.try_get().expect("four were added"));
    /// assert_eq!(*held[1], ("quiet", 1));
    /// ```
    pub fn fair_by<D: Hash>(mut self, dimension: impl Fn(&T) -> D + Send + Sync + 'static) -> Self {
        self.dimension = Some(Box::new(move |item, hasher| hasher.hash_one(dimension(item))));
        self
    }

    /// Records when and by which operation items were queued, for [`Queue::inspect`]. Each add and
    /// each hand-out then reads the clock, as in a queue with metrics.
    ///
    /// Queues with metrics can be inspected without it.
    pub fn inspect(mut self) -> Self {
        self.inspected = true;
        self
    }

    /// Builds the queue. This spawns no task and needs no runtime.
    pub fn build(self) -> Queue<T, Cause> {
        let ranking = self.ranking();
        let Self { name, limiter, merge, priorities: _, dimension, inspected } = self;
        let give_back = Shared::give_back;
        let options = Options { name, limiter, merge, ranking, dimension, inspected, give_back };
        Queue { shared: Arc::new(Shared::new(options)) }
    }

    /// Returns the options of the order; `None` for FIFO.
    fn ranking(&self) -> Option<Ranking> {
        let fair = self.dimension.is_some();
        match self.priorities {
            Some(Priorities { oldest_every }) => {
                Some(Ranking { by_priority: true, oldest_every, fair })
            }
            // With turns alone no item waits forever, so that no ageing is needed.
            None if fair => Some(Ranking { by_priority: false, oldest_every: None, fair }),
            None => None,
        }
    }
}

impl<T, Cause> fmt::Debug for QueueBuilder<T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("name", &self.name)
            .field("priorities", &self.priorities)
            .field("fair", &self.dimension.is_some())
            .finish_non_exhaustive()
    }
}
