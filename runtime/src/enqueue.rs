//! From events to keys: the object itself, its owner, or whatever a mapper finds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::{Event, Object, ObjectKey};
use homeostat_workqueue::{LOW_PRIORITY, Queue, Undone};
use parking_lot::Mutex;

use crate::reconciler::Why;

/// Asks a controller to reconcile keys: what a mapper is handed.
///
/// In a controller with [priorities](crate::ControllerBuilder::priorities) it asks at [`LOW_PRIORITY`] for what its event
/// does not say to have changed: objects that were listed at the start, and resyncs, whose resourceVersion is the same as
/// before. For everything else it asks at 0.
pub struct Enqueue<K: Object> {
    inbox: Inbox<K>,
    why: Why,
    priority: i32,
}

/// A controller's queue, and beside it why each key is in it.
pub(crate) struct Inbox<K: Object> {
    queue: Queue<ObjectKey<K::Kind>>,
    /// The first reason for each key that is queued or delayed; taken out together with the key. Never a key that was
    /// neither: the queue may take keys that nobody gave a reason for, not the other way round.
    reasons: Arc<Mutex<HashMap<ObjectKey<K::Kind>, Why>>>,
}

// === impl Enqueue ===

impl<K: Object> Enqueue<K> {
    /// Asks for `key` to be reconciled.
    pub fn add(&self, key: ObjectKey<K::Kind>) {
        self.inbox.add(key, self.priority, self.why.clone());
    }

    /// Asks for `key` to be reconciled after `delay`, or earlier if something else asks for it.
    pub fn add_after(&self, key: ObjectKey<K::Kind>, delay: Duration) {
        self.inbox.add_after(key, self.priority, delay, self.why.clone());
    }

    /// Asks at another priority: higher ones are reconciled first.
    #[must_use = "this only says at which priority to ask"]
    pub fn at_priority(&self, priority: i32) -> Self {
        Self { inbox: self.inbox.clone(), why: self.why.clone(), priority }
    }
}

impl<K: Object> fmt::Debug for Enqueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue")
            .field("why", &self.why)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

// === impl Inbox ===

impl<K: Object> Inbox<K> {
    pub(crate) fn new(queue: Queue<ObjectKey<K::Kind>>) -> Self {
        Self { queue, reasons: Arc::default() }
    }

    /// What a mapper gets for one event.
    pub(crate) fn enqueue<P: Object>(&self, event: &Event<P>, why: Why) -> Enqueue<K> {
        Enqueue { inbox: self.clone(), why, priority: priority_of(event) }
    }

    pub(crate) fn queue(&self) -> &Queue<ObjectKey<K::Kind>> {
        &self.queue
    }

    pub(crate) fn add(&self, key: ObjectKey<K::Kind>, priority: i32, why: Why) {
        self.note(&key, why);
        self.queue.at_priority(priority).add(key);
    }

    pub(crate) fn add_after(
        &self,
        key: ObjectKey<K::Kind>,
        priority: i32,
        delay: Duration,
        why: Why,
    ) {
        self.note(&key, why);
        self.queue.at_priority(priority).add_after(key, delay);
    }

    pub(crate) fn add_rate_limited(&self, key: ObjectKey<K::Kind>, priority: i32) {
        self.note(&key, Why::Retry);
        self.queue.at_priority(priority).add_rate_limited(key);
    }

    /// Why `key` was handed out.
    pub(crate) fn take_reason(&self, key: &ObjectKey<K::Kind>) -> Why {
        self.reasons.lock().remove(key).unwrap_or(Why::Unknown)
    }

    pub(crate) async fn drain(&self, deadline: Duration) -> Undone<ObjectKey<K::Kind>> {
        self.queue.drain(deadline).await
    }

    /// Before the key is queued: a worker may take it at once. The first reason stands, except that a change is
    /// more than the retry or the second look that waits for its time: it is what brings the key forward.
    fn note(&self, key: &ObjectKey<K::Kind>, why: Why) {
        if self.queue.is_shutting_down() {
            return;
        }
        let mut reasons = self.reasons.lock();
        match reasons.get_mut(key) {
            Some(waiting @ (Why::Retry | Why::RequeueAfter)) => *waiting = why,
            Some(_) => {}
            None => {
                reasons.insert(key.clone(), why);
            }
        }
    }
}

impl<K: Object> Clone for Inbox<K> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), reasons: Arc::clone(&self.reasons) }
    }
}

impl<K: Object> fmt::Debug for Inbox<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// What was listed at the start, or is told once more although it is the same, can wait for what users have just changed.
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
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn version(resource_version: &str) -> Arc<ConfigMap> {
        let resource_version = Some(resource_version.to_owned());
        let metadata = ObjectMeta { resource_version, ..ObjectMeta::default() };
        Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
    }

    #[test]
    fn only_what_was_listed_or_is_unchanged_can_wait() {
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
