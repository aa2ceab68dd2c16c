//! [`Watched`]: a resource of the store, with its metrics.

use homeostat_core::GroupResource;
use homeostat_core::metrics::record;
use metrics::{Counter, Histogram};

use super::state::Outcome;

/// A resource of the store with its metrics. It never changes after the store is created.
pub(super) struct Watched {
    pub(super) name: GroupResource,
    /// The number of times that an owner had to wait.
    skips: Counter,
    /// The time from the response to a write until the cache showed it.
    shown_after: Histogram,
}

// === impl Watched ===

impl Watched {
    pub(super) fn new(controller: &str, name: GroupResource) -> Self {
        let labels =
            || [("group", name.group.to_string()), ("resource", name.resource.to_string())];
        let (mut skips, mut shown_after) = (Counter::noop(), Histogram::noop());
        record(|| {
            let name = format!("{controller}_stale_sync_skips_total");
            let text = "Number of reconciles skipped because of a stale cache, by written resource";
            metrics::describe_counter!(name.clone(), text);
            skips = metrics::counter!(name, &labels());
        });
        record(|| {
            let name = format!("{controller}_write_observed_seconds");
            let text = "Time in seconds until the cache shows a write, by written resource";
            metrics::describe_histogram!(name.clone(), text);
            shown_after = metrics::histogram!(name, &labels());
        });
        Self { name, skips, shown_after }
    }

    pub(super) fn count_skip(&self) {
        record(|| self.skips.increment(1));
    }

    pub(super) fn record<Key, Uid>(&self, outcome: &Outcome<Key, Uid>) {
        for shown_after in &outcome.shown_after {
            record(|| self.shown_after.record(shown_after.as_secs_f64()));
        }
    }
}
