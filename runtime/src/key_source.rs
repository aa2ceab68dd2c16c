//! [`KeySource`]: adds keys to a controller's queue from outside of its informers.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::enqueue::Enqueue;
use crate::target::Target;

/// A handle that adds keys to a controller's queue from any task: a webhook, a subscription to a
/// message bus, another controller.
///
/// Make it first, give clones to the tasks, and pass it to
/// [`ControllerBuilder::source`](crate::ControllerBuilder::source). Keys that are added before the
/// controller is built wait for it. One source feeds one controller.
///
/// # Examples
///
/// ```
/// use homeostat::{Controller, KeySource, ObjectKey, SharedIndexInformer};
/// # use homeostat::Reconciler;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # fn doc(maps: &SharedIndexInformer<ConfigMap>, reconciler: impl Reconciler<ConfigMap>) {
/// let pushed = KeySource::<ConfigMap>::new("webhook");
/// let controller = Controller::builder("maps", maps).source(&pushed).build(reconciler);
/// // In the task that serves the webhook:
/// pushed.add(ObjectKey::namespaced("shop", "settings"));
/// # }
/// ```
#[doc(alias = "Channel")]
#[doc(alias = "GenericEvent")]
pub struct KeySource<T: Target> {
    shared: Arc<Shared<T>>,
}

struct Shared<T: Target> {
    name: Arc<str>,
    /// Adds to the controller's second queue.
    to_second: bool,
    /// The controller's queue, once it is built.
    bound: OnceLock<Enqueue<T>>,
    /// The keys that were added before.
    early: Mutex<Vec<(T::Key, Duration)>>,
}

// === impl KeySource ===

impl<T: Target> KeySource<T> {
    /// Returns a source. The [trigger](crate::Trigger::Source) of its keys has this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::to(false, name.into())
    }

    /// Returns a source of the controller's
    /// [second queue](crate::ControllerBuilder::second_queue). In a controller without one it adds
    /// to the only queue.
    pub fn of_second_queue(name: impl Into<Arc<str>>) -> Self {
        Self::to(true, name.into())
    }

    fn to(to_second: bool, name: Arc<str>) -> Self {
        let (bound, early) = (OnceLock::new(), Mutex::default());
        Self { shared: Arc::new(Shared { name, to_second, bound, early }) }
    }

    /// Returns the name.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Adds `key` to the controller's queue.
    ///
    /// Nothing is added after the manager has begun to drain the queue.
    pub fn add(&self, key: T::Key) {
        self.add_after(key, Duration::ZERO);
    }

    /// Adds `key` to the controller's queue after `delay`, or earlier if an event adds it. A delay
    /// counts from the controller's construction if that comes later.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime if `delay` is not zero.
    pub fn add_after(&self, key: T::Key, delay: Duration) {
        if let Some(enqueue) = self.shared.bound.get() {
            add(enqueue, key, delay);
            return;
        }
        self.shared.early.lock().push((key, delay));
        // The controller may have been built since the first look.
        self.flush();
    }

    /// Connects the source with its controller's queue.
    ///
    /// # Panics
    ///
    /// Panics if another controller has the source.
    pub(crate) fn bind(&self, enqueue: Enqueue<T>) {
        let enqueue = if self.shared.to_second { enqueue.to_second_queue() } else { enqueue };
        let is_first = self.shared.bound.set(enqueue).is_ok();
        assert!(is_first, "the source {:?} feeds another controller already", self.shared.name);
        self.flush();
    }

    /// Adds the early keys if the controller is built.
    fn flush(&self) {
        let Some(enqueue) = self.shared.bound.get() else { return };
        let early = std::mem::take(&mut *self.shared.early.lock());
        for (key, delay) in early {
            add(enqueue, key, delay);
        }
    }
}

impl<T: Target> Clone for KeySource<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Target> fmt::Debug for KeySource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySource").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

fn add<T: Target>(enqueue: &Enqueue<T>, key: T::Key, delay: Duration) {
    if delay.is_zero() {
        enqueue.add(key);
    } else {
        enqueue.add_after(key, delay);
    }
}
