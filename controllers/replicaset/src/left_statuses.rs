//! The statuses that a pass has left to the next one.
//!
//! A pass that has created pods, or whose object was added to the queue meanwhile, is followed by
//! another one, which would often write the status again: the deletion of a pod is two changes, and
//! its replacement is a third. The first pass then leaves the status. It does so once: the next
//! pass writes, so that the status of an object whose pods change all the time is late by one pass.

use std::collections::HashSet;

use homeostat::ObjectKey;
use parking_lot::Mutex;

use crate::kind::WorkloadKind;

/// The objects whose last pass has left the status to the next one.
pub(crate) struct LeftStatuses<K: WorkloadKind>(Mutex<HashSet<ObjectKey<K>>>);

// === impl LeftStatuses ===

impl<K: WorkloadKind> LeftStatuses<K> {
    /// Leaves the status of `key` to the next pass. Returns false if the last pass has done so: the
    /// caller then writes it.
    pub(crate) fn leave(&self, key: &ObjectKey<K>) -> bool {
        self.0.lock().insert(key.clone())
    }

    /// Records that the status of `key` is written, or needs no write.
    pub(crate) fn settle(&self, key: &ObjectKey<K>) {
        self.0.lock().remove(key);
    }
}

impl<K: WorkloadKind> Default for LeftStatuses<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
