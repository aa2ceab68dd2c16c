//! What was exercised: a run in which nothing happened proves nothing.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use homeostat_apiserver::faults::{Faults, Verb};

/// How often what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<String, usize>,
}

// === impl Tally ===

impl Tally {
    /// How often this happened: an event (`event: …`), a fault (`fault: …`), a request (`request: …`), an informer or a
    /// handler that was made so (`weight: …`, `fifo: …`, `handler: …`).
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// How many kinds of faults there were.
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
            // Without places, lengths and times: what is left names the class.
            let class = entry.words().rsplit(": ").next().unwrap_or_default();
            let class: String =
                class.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
            self.add(&format!("fault: {}", class.trim()), 1);
        }
    }

    /// To be called before anybody but the informer asks.
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
