//! The queue's options.

use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::order::Ranking;
use crate::rate_limiter::{ExponentialFailureRateLimiter, RateLimiter};

use super::Queue;
use super::shared::{Dimension, Shared};

/// The priority for what nobody waits for: the first look at everything after a start, and the regular
/// ones after that. What a user has just changed comes before it, at 0.
pub const LOW_PRIORITY: i32 = -100;

/// How priorities are obeyed: higher ones first, but no item waits for ever.
///
/// Every tenth hand-out is not the item with the highest priority but the one that has been queued
/// longest, whatever its priority. So an item that has `p` others queued before it is handed out within
/// `10 · (p + 1)` hand-outs, however many more important ones keep coming, and they get nine
/// tenths of the workers even then.
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

/// Makes a [`Queue`]; every option has a default.
#[must_use = "a builder makes no queue before `build`"]
pub struct Builder<T> {
    name: Arc<str>,
    limiter: Box<dyn RateLimiter<T>>,
    priorities: Option<Priorities>,
    dimension: Option<Dimension<T>>,
    inspected: bool,
}

// === impl Priorities ===

impl Priorities {
    /// Hands out the item that has been queued longest, whatever its priority, every so many-th time.
    ///
    /// An item with `p` others queued before it is handed out within `every · (p + 1)` hand-outs.
    pub fn oldest_every(self, every: NonZeroU32) -> Self {
        Self { oldest_every: Some(every) }
    }

    /// Hands out what has the highest priority, always: what has a low one can wait for ever.
    pub fn strict(self) -> Self {
        Self { oldest_every: None }
    }
}

/// The longest queued item every tenth time.
impl Default for Priorities {
    fn default() -> Self {
        Self { oldest_every: NonZeroU32::new(10) }
    }
}

// === impl Builder ===

impl<T> Builder<T>
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        Self {
            name: Arc::from(""),
            limiter: Box::<ExponentialFailureRateLimiter<T>>::default(),
            priorities: None,
            dimension: None,
            inspected: false,
        }
    }

    /// Names the queue, for logs, and for metrics.
    ///
    /// If there is a recorder for the `metrics` facade when the queue is built, a queue with a name
    /// reports the metrics of client-go's queues, with the label `name`: `workqueue_depth`,
    /// `workqueue_adds_total`, `workqueue_queue_duration_seconds`, `workqueue_work_duration_seconds`,
    /// `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds` and
    /// `workqueue_retries_total`. The depth counts what is asked for: also an item that is held and was
    /// added again, unlike [`Queue::len`]. With [`priorities`](Self::priorities) it has the label `priority`,
    /// too: 25 of them, and `exceeded_cardinality_limit` for all others. (A recorder without any state,
    /// whose type has no size, cannot be told from none.)
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Decides how long [`Queue::add_rate_limited`] waits.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Hands out items by the priority that they were added [at](Queue::at_priority), and those of one
    /// priority in the order in which they were queued. Without this, priorities are ignored.
    pub fn priorities(mut self, priorities: Priorities) -> Self {
        self.priorities = Some(priorities);
        self
    }

    /// Lets the items of one priority take turns by this (a namespace, a tenant): each hand-out is the
    /// next one's who has something queued, so that nobody waits for all that another one has queued
    /// before.
    ///
    /// While two of them have items of the same priority queued, and nothing of a higher one is, the
    /// numbers of their hand-outs differ by no more than one; only the turns of the longest queued item
    /// ([`Priorities`]) come on top.
    ///
    /// The function runs outside of the queue's lock, once for each add. Only the hash of what it returns
    /// counts, so that two whose hashes are the same share their turns. What it returns cannot borrow from
    /// the item; where a copy of a name is too dear, return a hash of it.
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

    /// Remembers since when and why items are in the queue, for [`Queue::inspect`]. This reads the clock
    /// at each step, which a queue that is neither inspected nor measured does not.
    pub fn inspect(mut self) -> Self {
        self.inspected = true;
        self
    }

    /// Makes the queue. This spawns nothing and needs no runtime.
    pub fn build(self) -> Queue<T> {
        let ranking = self.ranking();
        let shared = Shared::new(self.name, self.limiter, ranking, self.dimension, self.inspected);
        Queue { shared: Arc::new(shared) }
    }

    fn ranking(&self) -> Option<Ranking> {
        let fair = self.dimension.is_some();
        match self.priorities {
            Some(Priorities { oldest_every }) => {
                Some(Ranking { by_priority: true, oldest_every, fair })
            }
            // Turns alone let nobody wait for ever: the oldest need no turn of their own.
            None if fair => Some(Ranking { by_priority: false, oldest_every: None, fair }),
            None => None,
        }
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("priorities", &self.priorities)
            .field("fair", &self.dimension.is_some())
            .finish_non_exhaustive()
    }
}
