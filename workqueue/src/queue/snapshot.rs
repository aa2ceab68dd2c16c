//! Takes the snapshot that `inspect` returns.
//!
//! A slot is listed once, as queued or held. A delayed item is listed for each of its deadlines,
//! also if it is queued or held at the same time. The cost is one clone per entry, all under the
//! lock: `inspect` is a tool for debugging, not for a metric.

use crate::inspect::{Delayed, Held, Queued, Snapshot};
use crate::state::Place;

use super::core::Core;

// === impl Core ===

impl<T: Clone, C> Core<T, C> {
    /// Returns all items in no particular order, with 0 failures, or `None` without an observer.
    ///
    /// A held item shows the operation of the request for which it was taken, and `again` if it was
    /// added since.
    pub(super) fn inspect(&self) -> Option<Snapshot<T>> {
        let observer = self.observer.as_deref()?;
        let (mut queued, mut held) = (Vec::new(), Vec::new());
        for (slot, place, item) in self.state.items() {
            let Some(seen) = observer.seen(slot) else { continue };
            let (item, priority) = (item.clone(), self.state.priority(slot));
            let (since, operation) = seen.asked;
            if let Place::Held { again } = place {
                let since = seen.taken;
                held.push(Held { item, operation, since, again, priority, failures: 0 });
            } else {
                queued.push(Queued { item, operation, since, priority, failures: 0 });
            }
        }
        let delayed = self.delays.items().map(|(item, request, until)| Delayed {
            item: item.clone(),
            operation: request.operation,
            until,
            priority: request.rank.priority,
            failures: 0,
        });
        Some(Snapshot { queued, delayed: delayed.collect(), held })
    }
}
