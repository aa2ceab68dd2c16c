//! What is left to do when many items were queued under one lock.

use std::task::Waker;

use super::core::{Change, Enqueued};
use super::metrics::Metrics;
use super::shared::wake;

/// What became of items that were queued under one lock. Made before the lock, and dropped after it, this
/// wakes, drops and counts; also when an `Eq` has panicked half-way.
pub(super) struct Many<'a, T> {
    workers: Vec<Waker>,
    spare: Vec<T>,
    /// Empty unless somebody counts.
    changes: Vec<Change>,
    metrics: Option<&'a Metrics>,
}

// === impl Many ===

impl<'a, T> Many<'a, T> {
    pub(super) fn new(metrics: Option<&'a Metrics>) -> Self {
        Self { workers: Vec::new(), spare: Vec::new(), changes: Vec::new(), metrics }
    }

    pub(super) fn push(&mut self, enqueued: Enqueued<T>) {
        self.workers.extend(enqueued.worker);
        self.spare.extend(enqueued.spare.into_iter().flatten());
        if self.metrics.is_some() {
            self.changes.push(enqueued.change);
        }
    }
}

impl<T> Drop for Many<'_, T> {
    fn drop(&mut self) {
        wake(self.workers.drain(..));
        self.spare.clear();
        for change in self.changes.drain(..) {
            self.metrics.iter().for_each(|metrics| metrics.changed(change));
        }
    }
}
