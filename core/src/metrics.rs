//! The policy for metrics recorders, shared by all crates.
//!
//! * Metrics are on where their owner has a name and a recorder is installed when the owner is
//!   built. Handles are taken once, at construction: install the recorder first.
//! * A recorder is the author's code: it never runs while a lock is held, and its panic is logged
//!   and swallowed.
//! * A clock is read for a metric only if the metric is on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Returns true if a metrics recorder is installed.
///
/// The `metrics` facade has no such question. Its own "no recorder" is a static without fields, so
/// a *local* recorder without fields counts as none. The global recorder counts in any case.
///
/// Call it once, where a value with metrics is built, and keep the answer: a recorder that is
/// installed later is not noticed. That is what makes a metric that is off free of cost.
///
/// # Examples
///
/// ```
/// use homeostat_core::metrics::is_recorded;
///
/// assert!(!is_recorded(), "no recorder is installed in this process");
/// ```
pub fn is_recorded() -> bool {
    metrics::with_recorder(|recorder| {
        let address = ptr::from_ref(recorder).addr();
        // The global recorder is in a box. The box of a type without fields has no memory: its
        // address is the alignment of the type, and a static never has this address.
        size_of_val(recorder) > 0 || address == align_of_val(recorder)
    })
}

/// Runs `update`, which calls the recorder. A panic of the recorder is logged and swallowed.
///
/// Call it while no lock is held: a recorder may take its own locks, or call back.
///
/// # Examples
///
/// ```
/// use homeostat_core::metrics::record;
///
/// record(|| metrics::counter!("shop_orders_total").increment(1));
/// record(|| panic!("the recorder has a bug")); // Logged, and no panic here.
/// ```
pub fn record(update: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(update)).is_err() {
        tracing::error!("the metrics recorder panicked; its update is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_the_recorder_is_swallowed() {
        record(|| panic!("full"));
    }

    #[test]
    fn no_recorder_is_installed_at_first() {
        assert!(!is_recorded());
    }
}
