//! [`Sum`]: a counter of a number that another part of the informer counts.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::Counter;

/// A counter that follows a number.
///
/// It adds what the number has gained and never sets the counter: informers that have the same
/// labels one after the other share the series, which is the sum of their numbers.
pub(super) struct Sum {
    counter: Counter,
    /// The part of the number that the counter has.
    counted: AtomicU64,
}

// === impl Sum ===

impl Sum {
    /// Follows a number that begins with 0.
    pub(super) fn new(counter: Counter) -> Self {
        Self { counter, counted: AtomicU64::new(0) }
    }

    /// Raises the counter by what the number has gained since the last call. Calls the recorder.
    pub(super) fn follow(&self, number: u64) {
        let counted = self.counted.fetch_max(number, Ordering::Relaxed);
        if number > counted {
            self.counter.increment(number - counted);
        }
    }
}
