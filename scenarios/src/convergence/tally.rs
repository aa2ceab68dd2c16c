//! Counts of the situations that a run has covered: a run without faults proves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use homeostat_faults::{Faults, Verb};

/// Counts by situation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<String, usize>,
}

// === impl Tally ===

impl Tally {
    /// Returns the count of an event (`event: …`), a fault (`fault: …`), a request (`request: …`),
    /// or of informers and handlers with a setting (`weight: …`, `fifo: …`, `handler: …`).
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Returns the number of kinds of faults.
    pub fn fault_classes(&self) -> usize {
        self.counts.keys().filter(|what| what.starts_with("fault: ")).count()
    }

    pub(super) fn add(&mut self, what: &str, count: usize) {
        *self.counts.entry(what.to_owned()).or_default() += count;
    }

    pub(super) fn count_events(&mut self, events: impl Iterator<Item = (&'static str, usize)>) {
        events.for_each(|(event, count)| self.add(&format!("event: {event}"), count));
    }

    pub(super) fn count_faults(&mut self, faults: &Faults) {
        for entry in faults.trace().entries() {
            // Positions, lengths and times are removed, so that the rest names the kind.
            let class = entry.message().rsplit(": ").next().unwrap_or_default();
            let class: String =
                class.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
            self.add(&format!("fault: {}", class.trim()), 1);
        }
    }

    /// Must be called before another client than the informer sends a request.
    pub(super) fn count_requests(&mut self, faults: &Faults) {
        for verb in [Verb::List, Verb::Watch] {
            let count = usize::try_from(faults.count(verb, "configmaps")).unwrap_or(usize::MAX);
            self.add(&format!("request: {verb}"), count);
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(what, count)| writeln!(f, "{count:>9}  {what}"))
    }
}
