//! From events to keys: the object itself, its owner, or whatever a mapper finds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::{Object, ObjectKey};
use homeostat_workqueue::{Queue, Undone};
use parking_lot::Mutex;

use crate::reconciler::Why;

/// Asks a controller to reconcile keys: what a mapper is handed.
pub struct Enqueue<K: Object> {
    inbox: Inbox<K>,
    why: Why,
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
        self.inbox.add(key, self.why.clone());
    }

    /// Asks for `key` to be reconciled after `delay`, or earlier if something else asks for it.
    pub fn add_after(&self, key: ObjectKey<K::Kind>, delay: Duration) {
        self.inbox.add_after(key, delay, self.why.clone());
    }
}

impl<K: Object> fmt::Debug for Enqueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("why", &self.why).finish_non_exhaustive()
    }
}

// === impl Inbox ===

impl<K: Object> Inbox<K> {
    pub(crate) fn new(queue: Queue<ObjectKey<K::Kind>>) -> Self {
        Self { queue, reasons: Arc::default() }
    }

    /// What a mapper gets for one event.
    pub(crate) fn enqueue(&self, why: Why) -> Enqueue<K> {
        Enqueue { inbox: self.clone(), why }
    }

    pub(crate) fn queue(&self) -> &Queue<ObjectKey<K::Kind>> {
        &self.queue
    }

    pub(crate) fn add(&self, key: ObjectKey<K::Kind>, why: Why) {
        self.note(&key, why);
        self.queue.add(key);
    }

    pub(crate) fn add_after(&self, key: ObjectKey<K::Kind>, delay: Duration, why: Why) {
        self.note(&key, why);
        self.queue.add_after(key, delay);
    }

    pub(crate) fn add_rate_limited(&self, key: ObjectKey<K::Kind>) {
        self.note(&key, Why::Retry);
        self.queue.add_rate_limited(key);
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
