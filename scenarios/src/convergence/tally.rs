//! What was exercised: a run in which nothing happened proves nothing.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use homeostat_apiserver::faults::{Faults, Verb};

use super::witness::Witness;

/// How often what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<String, usize>,
}

// === impl Tally ===

impl Tally {
    /// How often this happened: an event (`event: …`), a fault (`fault: …`), a request (`request: …`).
    pub fn count(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// How many kinds of faults there were.
    pub fn fault_classes(&self) -> usize {
        self.counts.keys().filter(|what| what.starts_with("fault: ")).count()
    }

    pub(super) fn count_events(&mut self, witness: &Witness) {
        for (event, count) in witness.counts() {
            *self.counts.entry(format!("event: {event}")).or_default() += count;
        }
    }

    pub(super) fn count_faults(&mut self, faults: &Faults) {
        for entry in faults.trace().entries() {
            // Without places, lengths and times: what is left names the class.
            let class = entry.words().rsplit(": ").next().unwrap_or_default();
            let class: String =
                class.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
            *self.counts.entry(format!("fault: {}", class.trim())).or_default() += 1;
        }
    }

    /// To be called before anybody but the informer asks.
    pub(super) fn count_requests(&mut self, faults: &Faults) {
        for verb in [Verb::List, Verb::Watch] {
            let count = usize::try_from(faults.count(verb, "configmaps")).unwrap_or(usize::MAX);
            *self.counts.entry(format!("request: {verb}")).or_default() += count;
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
