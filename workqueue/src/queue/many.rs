//! The work that remains after several items were queued under one lock.

use std::task::Waker;

use super::core::{Change, Enqueued};
use super::metrics::Metrics;
use super::waiters::wake;

/// The outcomes of items that were queued under one lock. The caller creates it before it takes the
/// lock and drops it after the release. The drop wakes the workers, drops the spare items and
/// updates the metrics, even if an `Eq` panicked under the lock.
///
/// The order of the drop is workers first: they can run while this thread still drops items and
/// calls the recorder.
pub(super) struct Many<'a, T, C> {
    /// At most one per newly queued item.
    workers: Vec<Waker>,
    /// Items that were merged with an equal one.
    spare: Vec<T>,
    /// Causes of items that a drain has returned.
    ignored: Vec<C>,
    /// Empty in a queue without metrics.
    changes: Vec<Change>,
    metrics: Option<&'a Metrics>,
}

// === impl Many ===

impl<'a, T, C> Many<'a, T, C> {
    pub(super) fn new(metrics: Option<&'a Metrics>) -> Self {
        Self {
            workers: Vec::new(),
            spare: Vec::new(),
            ignored: Vec::new(),
            changes: Vec::new(),
            metrics,
        }
    }

    /// Keeps the outcome of one item. It runs under the lock, so it drops and wakes nothing.
    pub(super) fn push(&mut self, enqueued: Enqueued<T, C>) {
        self.workers.extend(enqueued.worker);
        self.spare.extend(enqueued.spare.into_iter().flatten());
        self.ignored.extend(enqueued.ignored);
        if self.metrics.is_some() {
            self.changes.push(enqueued.change);
        }
    }
}

impl<T, C> Drop for Many<'_, T, C> {
    fn drop(&mut self) {
        wake(self.workers.drain(..));
        for change in self.changes.drain(..) {
            self.metrics.iter().for_each(|metrics| metrics.changed(change));
        }
        // The fields are dropped last, because the drop of an item may panic.
    }
}
