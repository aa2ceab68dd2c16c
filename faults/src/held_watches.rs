//! [`HeldWatches`]: a guard that holds back the events of watches.

use std::fmt;
use std::sync::Arc;

use crate::calls::Calls;
use crate::open_watches::HoldId;
use crate::rules::RuleCounts;
use crate::shared::Shared;

/// A guard that holds back the events of watches until it is dropped, returned by
/// [`Faults::hold_watches`](crate::Faults::hold_watches).
#[must_use = "dropping the guard releases the watches"]
pub struct HeldWatches {
    shared: Arc<Shared>,
    id: HoldId,
}

// === impl HeldWatches ===

impl HeldWatches {
    pub(crate) fn new(shared: Arc<Shared>, calls: Calls, counts: Arc<RuleCounts>) -> Self {
        let id = shared.watches.hold(calls, counts);
        Self { shared, id }
    }
}

impl Drop for HeldWatches {
    fn drop(&mut self) {
        self.shared.watches.release(self.id);
    }
}

impl fmt::Debug for HeldWatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldWatches").field("id", &self.id).finish_non_exhaustive()
    }
}
