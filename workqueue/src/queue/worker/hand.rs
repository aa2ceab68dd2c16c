//! The items of one worker.
//!
//! A step of a worker has two halves. `finish` and `take` run under the lock; they move items
//! between lists and collect the updates of the metrics. `settle` runs after the release; it drops
//! the finished items, which is the author's code, and calls the recorder.

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use crate::state::{Released, Taken};

use super::super::core::{Change, Core};
use super::super::metrics::Metrics;

/// The items that a worker holds, and those that it has finished.
///
/// All lists keep their memory, so that a step allocates nothing.
pub(super) struct Hand<T, C> {
    pub(super) held: Vec<Taken<T, C>>,
    /// True if the caller has received the held items: the next step finishes them. It is false
    /// while a step runs, so that the items of a step that panics are given back.
    pub(super) lent: bool,
    /// The items that the present step finishes. Dropped outside of the lock.
    finished: Vec<Taken<T, C>>,
    /// The twins of these items, from their slots. Dropped outside of the lock.
    spare: Vec<T>,
    /// The updates of the metrics; empty in a queue that is not observed.
    updates: Vec<Update>,
}

/// An update of the metrics.
enum Update {
    /// An item of this priority was taken after it had waited.
    Taken(i32, Duration),
    /// An item was held for this time.
    Released(Duration, Change),
}

// === impl Hand ===

impl<T, C> Hand<T, C> {
    pub(super) fn new() -> Self {
        Self {
            held: Vec::new(),
            lent: false,
            finished: Vec::new(),
            spare: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// Finishes the held items. Returns true if there were any.
    ///
    /// Calls `done` for each held item, in hand-out order. It drops nothing: the items stay in
    /// `finished` and `spare` until `settle`.
    #[inline]
    pub(super) fn finish(&mut self, core: &mut Core<T, C>, now: Option<Instant>) -> bool {
        self.lent = false;
        mem::swap(&mut self.held, &mut self.finished);
        for taken in &self.finished {
            let released = core.state.done(taken.held);
            let change = match released {
                Released::Requeued { wanted } => core.requeued(taken.held.slot(), wanted),
                Released::Gone(item, _) => {
                    self.spare.extend(item);
                    Change::None
                }
            };
            if now.is_some() {
                let worked = core.observe_released(taken.held, now);
                self.updates.push(Update::Released(worked, change));
            }
        }
        !self.finished.is_empty()
    }

    /// Updates the metrics, and then drops the finished items. The caller must not hold the lock.
    #[inline]
    pub(super) fn settle(&mut self, metrics: Option<&Metrics>) {
        if let Some(metrics) = metrics {
            for update in self.updates.drain(..) {
                match update {
                    Update::Taken(priority, waited) => metrics.taken(priority, waited),
                    Update::Released(worked, change) => metrics.released(worked, change),
                }
            }
        }
        self.updates.clear();
        self.finished.clear();
        self.spare.clear();
    }
}

impl<T: Clone, C> Hand<T, C> {
    /// Takes up to `most` items: this worker's share of the queued items.
    ///
    /// With several workers each takes its share, so that one worker does not hold items for which
    /// others wait.
    ///
    /// # Panics
    ///
    /// If the item's `Clone` panics. The items that were taken before stay in `held` and are given
    /// back by the next poll.
    #[inline]
    pub(super) fn take(&mut self, core: &mut Core<T, C>, most: usize, now: Option<Instant>) {
        let number = if most == 1 {
            1
        } else {
            core.state.queued().div_ceil(core.workers.registered.max(1)).min(most)
        };
        for _ in 0..number {
            let Some(taken) = core.state.take() else { return };
            if now.is_some() {
                let waited = core.observe_taken(taken.held, now);
                self.updates.push(Update::Taken(taken.priority, waited));
            }
            self.held.push(taken);
        }
    }
}
