//! The queues of a controller, and the handle that mappers get.

use std::fmt;
use std::time::Duration;

use homeostat_informer::{Event, Object};
use homeostat_workqueue::LOW_PRIORITY;

use crate::request::{ChangeKind, RequestQueue, Trigger};
use crate::target::Target;

/// The queues of one controller.
pub(crate) struct Queues<T: Target> {
    pub(crate) first: RequestQueue<T>,
    /// `None` in most controllers.
    pub(crate) second: Option<RequestQueue<T>>,
}

/// A handle to a controller's queue that mappers get: it adds keys to reconcile.
///
/// Clones add to the same queue. A clone may outlive the call of the mapper, for example in a task
/// that adds the key when an answer arrives.
///
/// In a controller with [priorities](crate::ControllerBuilder::priorities) the handle adds keys at
/// [`LOW_PRIORITY`] for events that report no change: objects of the initial list, and resyncs,
/// whose `resourceVersion` is the same as before. It adds keys at 0 for all other events.
///
/// A call takes the queue's lock for a short time and never waits for room. Adding a key that is
/// queued already adds nothing; adding one that is being reconciled queues it again after that.
///
/// # Examples
///
/// ```
/// # use homeostat::{Controller, ControllerBuilder, ObjectKey, SharedInformerFactory};
/// # use homeostat::{Event, Object, SharedIndexInformer};
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # fn doc(maps: &SharedIndexInformer<ConfigMap>, secrets: &SharedIndexInformer<Secret>) {
/// // Each Secret is copied into the ConfigMap of the same name, a second later.
/// let builder = Controller::builder("copier", maps).watches(secrets, |event, enqueue| {
///     let key = ObjectKey::from_metadata(event.metadata());
///     enqueue.add_after(key, std::time::Duration::from_secs(1));
/// });
/// # }
/// ```
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "EnqueueRequestsFromMapFunc")]
pub struct Enqueue<T: Target> {
    queues: Queues<T>,
    /// Adds to the second queue, if there is one.
    to_second: bool,
    /// The trigger of the event for which the handle was made.
    trigger: Trigger,
    /// Ignored by a queue without priorities.
    priority: i32,
}

// === impl Queues ===

impl<T: Target> Queues<T> {
    /// Returns the queues of a controller with one queue.
    pub(crate) fn one(queue: RequestQueue<T>) -> Self {
        Self { first: queue, second: None }
    }
}

impl<T: Target> Clone for Queues<T> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), second: self.second.clone() }
    }
}

// === impl Enqueue ===

impl<T: Target> Enqueue<T> {
    /// Returns the handle for keys that `trigger` adds.
    pub(crate) fn new(queues: &Queues<T>, trigger: Trigger) -> Self {
        Self { queues: queues.clone(), to_second: false, trigger, priority: 0 }
    }

    /// Returns the handle for the mapper of one event.
    pub(crate) fn for_event<P: Object>(
        queues: &Queues<T>,
        event: &Event<P>,
        trigger: impl FnOnce(ChangeKind) -> Trigger,
    ) -> Self {
        let trigger = trigger(ChangeKind::of(event));
        Self { priority: priority_of(event), ..Self::new(queues, trigger) }
    }

    /// Adds `key` to the queue.
    ///
    /// Nothing is added after the manager has begun to drain the queue.
    ///
    /// Several calls for one key before a worker takes it lead to one reconcile.
    pub fn add(&self, key: T::Key) {
        self.queue().because(self.trigger.clone()).at_priority(self.priority).add(key);
    }

    /// Adds `key` to the queue after `delay`, or earlier if another event adds it.
    ///
    /// Of two delays of one key the earlier one counts.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime if `delay` is not zero. A mapper runs inside of one.
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: T::Key, delay: Duration) {
        self.queue().because(self.trigger.clone()).at_priority(self.priority).add_after(key, delay);
    }

    /// Returns a handle that adds keys at another priority. Higher priorities are reconciled first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use homeostat::{Controller, Reconciler, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>, secrets: &SharedIndexInformer<Secret>) {
    /// use homeostat::{ObjectKey, Priorities};
    ///
    /// // A changed Secret is more urgent than any other change.
    /// let builder = Controller::builder("copier", maps)
    ///     .priorities(Priorities::default())
    ///     .watches(secrets, |event, enqueue| {
    ///         enqueue.at_priority(100).add(ObjectKey::from_metadata(event.metadata()));
    ///     });
    /// # }
    /// ```
    #[must_use = "this returns a handle and adds nothing"]
    pub fn at_priority(&self, priority: i32) -> Self {
        Self { priority, ..self.clone() }
    }

    /// Returns a handle that adds keys to the controller's
    /// [second queue](crate::ControllerBuilder::second_queue).
    ///
    /// In a controller without a second queue it adds them to the only one.
    #[must_use = "this returns a handle and adds nothing"]
    pub fn to_second_queue(&self) -> Self {
        Self { to_second: true, ..self.clone() }
    }

    fn queue(&self) -> &RequestQueue<T> {
        let second = self.queues.second.as_ref().filter(|_| self.to_second);
        second.unwrap_or(&self.queues.first)
    }
}

impl<T: Target> Clone for Enqueue<T> {
    fn clone(&self) -> Self {
        let Self { queues, to_second, trigger, priority } = self;
        Self {
            queues: queues.clone(),
            to_second: *to_second,
            trigger: trigger.clone(),
            priority: *priority,
        }
    }
}

impl<T: Target> fmt::Debug for Enqueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue")
            .field("trigger", &self.trigger)
            .field("priority", &self.priority)
            .field("to_second", &self.to_second)
            .finish_non_exhaustive()
    }
}

/// Returns the priority of the keys that `event` adds: what the initial list and resyncs add can
/// wait for what users have just changed.
fn priority_of<P: Object>(event: &Event<P>) -> i32 {
    let can_wait = match event {
        Event::Added { initial, .. } => *initial,
        Event::Updated { old, new } => {
            old.metadata().resource_version == new.metadata().resource_version
        }
        _ => false,
    };
    if can_wait { LOW_PRIORITY } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn version(resource_version: &str) -> Arc<ConfigMap> {
        let resource_version = Some(resource_version.to_owned());
        let metadata = ObjectMeta { resource_version, ..ObjectMeta::default() };
        Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
    }

    #[test]
    fn only_listed_and_unchanged_objects_can_wait() {
        let updated = |old, new| Event::Updated { old: version(old), new: version(new) };
        let added = |initial| Event::Added { object: version("1"), initial };
        let deleted = Event::Deleted { last_known: version("1"), certain: true };
        let opaque = Event::Opaque { last_known: Some(version("1")), metadata: Arc::default() };
        for (event, priority) in [
            (added(true), LOW_PRIORITY),
            (added(false), 0),
            (updated("1", "1"), LOW_PRIORITY),
            (updated("1", "2"), 0),
            (deleted, 0),
            (opaque, 0),
        ] {
            assert_eq!(priority_of::<ConfigMap>(&event), priority, "{event:?}");
        }
    }
}
