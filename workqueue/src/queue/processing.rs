//! The guard through which a worker holds an item.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::state::{Held, Taken};

use super::shared::Shared;
use super::ticker::tick;

/// An item that a worker holds. No other worker gets it until [`done`](Self::done).
///
/// If it is dropped without `done` (a panic, a cancelled future), the item is queued again, even
/// after [`Queue::shut_down`](crate::Queue::shut_down). The exception is an item that
/// [`Queue::drain`](crate::Queue::drain) has returned.
///
/// The first drop since the item was last done queues it at once. The second consecutive one
/// delays it by 5 ms, and each further one by twice as long, up to 1,000 s, so that an item whose
/// worker panics each time does not keep the workers busy. An add of the item ends the delay.
/// Without a tokio runtime and after `shut_down` the item is always queued at once.
///
/// The guard keeps the queue alive.
///
/// It dereferences to the item. It is `Send` and has no lifetime: a worker may move it into a task.
///
/// # Examples
///
/// ```
/// use homeostat_workqueue::Queue;
///
/// let queue = Queue::new();
/// queue.add("default/web");
/// drop(queue.try_get().expect("it is queued")); // without `done`: queued again
/// queue.try_get().expect("it is queued again").done();
/// assert!(queue.try_get().is_none());
/// ```
#[must_use = "dropped at once, the item is queued again"]
pub struct Processing<T, Cause = ()> {
    /// The queue and the item's cause; `None` after `done`. An `Option` instead of a separate flag
    /// keeps the guard small, because each move copies it.
    open: Option<(Arc<Shared<T, Cause>>, Cause)>,
    /// The item's slot. It is returned exactly once: by `done` or by the drop.
    held: Held,
    priority: i32,
    /// A clone of the item in the slot.
    item: T,
}

// === impl Processing ===

impl<T, Cause> Processing<T, Cause> {
    #[inline]
    fn new(shared: &Arc<Shared<T, Cause>>, taken: Taken<T, Cause>) -> Self {
        let Taken { held, item, priority, cause } = taken;
        Self { open: Some((Arc::clone(shared), cause)), held, priority, item }
    }

    /// Returns the cause of this hand-out, merged from all adds since the last one.
    ///
    /// An item that is dropped without `done` keeps its cause for the next hand-out.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_workqueue::Queue;
    ///
    /// let merge = |earlier: &mut String, later: String| *earlier += &later;
    /// let queue = Queue::builder().causes(merge).build();
    /// queue.because("a".to_owned()).add(1);
    /// let item = queue.try_get().expect("it was added");
    /// queue.because("b".to_owned()).add(1); // for the next hand-out
    /// assert_eq!(item.cause(), "a");
    /// item.done();
    /// assert_eq!(queue.try_get().expect("it was added while held").cause(), "b");
    /// ```
    pub fn cause(&self) -> &Cause {
        match &self.open {
            Some((_, cause)) => cause,
            None => unreachable!("only `done` sets `open` to `None`, and it consumes the guard"),
        }
    }

    /// Returns the priority at which the item was queued; 0 in a queue without priorities.
    ///
    /// To retry at the same priority, call
    /// `queue.at_priority(item.priority()).add_rate_limited(…)`.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Finishes the item. If it was added while held, it is queued again now.
    ///
    /// Call it for a failed item too, after
    /// [`Queue::add_rate_limited`](crate::Queue::add_rate_limited): the first drop of the guard
    /// without `done` queues the item at once, and the rate limiter counts no failure.
    #[doc(alias = "Done")]
    #[inline]
    pub fn done(mut self) {
        if let Some((shared, cause)) = self.open.take() {
            shared.done(self.held);
            drop(cause);
        }
    }
}

impl<T, Cause> Processing<T, Cause>
where
    T: Clone + Send + Sync + 'static,
    Cause: Send + 'static,
{
    /// Takes the next item, or returns `None` if nothing is queued.
    #[inline]
    pub(super) fn take(shared: &Arc<Shared<T, Cause>>) -> Option<Self> {
        let now = shared.now();
        let mut core = shared.core.lock();
        let taken = core.state.take()?;
        let waited = core.observe_taken(taken.held, now);
        drop(core);
        Some(Self::hand_out(shared, taken, waited))
    }

    /// Makes the guard of a taken item. The caller must not hold the lock.
    #[inline]
    pub(super) fn hand_out(
        shared: &Arc<Shared<T, Cause>>,
        taken: Taken<T, Cause>,
        waited: Duration,
    ) -> Self {
        let processing = Self::new(shared, taken);
        if let Some(metrics) = &shared.metrics {
            metrics.taken(processing.priority(), waited);
            tick(metrics, shared);
        }
        processing
    }
}

impl<T, Cause> Drop for Processing<T, Cause> {
    fn drop(&mut self) {
        // This needs no runtime: the runtime may have shut down already.
        if let Some((shared, cause)) = self.open.take() {
            Shared::give_back_unfinished(&shared, self.held, cause);
        }
    }
}

impl<T, Cause> Deref for Processing<T, Cause> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: fmt::Debug, Cause> fmt::Debug for Processing<T, Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processing").field(&self.item).finish()
    }
}
