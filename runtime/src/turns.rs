//! [`Turns`]: one key, one worker, also in a controller with two queues.
//!
//! Each queue alone gives a key to one worker. With two queues a worker of either may get the same
//! key. The second one leaves the key to the first: when that is done, the key goes back to the
//! queue that the second one took it from.
//!
//! The lock is held for one operation on a map, and never while a key is reconciled. A controller
//! with one queue pays a check of an `Option`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::request::{RequestQueue, Trigger};
use crate::target::Target;

/// The keys in the hands of a controller's workers.
///
/// `None` in a controller with one queue, which needs no such record.
pub(crate) struct Turns<T: Target>(Option<Arc<Held<T>>>);

/// The held keys, each with the requests that came meanwhile.
type Held<T> = Mutex<HashMap<<T as Target>::Key, Vec<Waiting<T>>>>;

/// The right to reconcile a key. Dropping it queues the key where other workers left it.
///
/// It is dropped before the worker finishes the item, so that no request is lost in between.
pub(crate) struct Turn<T: Target> {
    held: Option<(Arc<Held<T>>, T::Key)>,
}

/// A request that was left to the worker that holds its key.
///
/// A trigger and a priority for each worker that came meanwhile; the queue merges them.
struct Waiting<T: Target> {
    queue: RequestQueue<T>,
    trigger: Trigger,
    priority: i32,
}

// === impl Turns ===

impl<T: Target> Turns<T> {
    /// Returns the record of a controller with one queue, or with two.
    pub(crate) fn new(has_two_queues: bool) -> Self {
        Self(has_two_queues.then(Arc::default))
    }

    /// Returns the right to reconcile `key`, or `None` if another worker has it: then that worker
    /// adds the key to `queue` again.
    pub(crate) fn take(
        &self,
        key: &T::Key,
        queue: &RequestQueue<T>,
        (trigger, priority): (&Trigger, i32),
    ) -> Option<Turn<T>> {
        let Some(held) = &self.0 else { return Some(Turn { held: None }) };
        let mut keys = held.lock();
        if let Some(waiting) = keys.get_mut(key) {
            waiting.push(Waiting { queue: queue.clone(), trigger: trigger.clone(), priority });
            return None;
        }
        keys.insert(key.clone(), Vec::new());
        Some(Turn { held: Some((Arc::clone(held), key.clone())) })
    }
}

impl<T: Target> Clone for Turns<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

// === impl Turn ===

impl<T: Target> Turn<T> {
    /// Queues the key where other workers left it.
    ///
    /// Returns the turn again if one of these queues was shut down, which takes no key any more:
    /// the worker that holds the key then reconciles it again.
    pub(crate) fn pass_on(self) -> Option<Self> {
        let (held, key) = self.held.as_ref()?;
        let mut keys = held.lock();
        let waiting = keys.get_mut(key)?;
        if !waiting.iter().any(|it| it.queue.is_shutting_down()) {
            return None;
        }
        waiting.clear();
        drop(keys);
        Some(self)
    }
}

impl<T: Target> Drop for Turn<T> {
    fn drop(&mut self) {
        let Some((held, key)) = self.held.take() else { return };
        let waiting = held.lock().remove(&key).unwrap_or_default();
        for Waiting { queue, trigger, priority } in waiting {
            queue.because(trigger).at_priority(priority).add(key.clone());
        }
    }
}
