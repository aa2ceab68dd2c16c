//! Which fault hits which request: plain bookkeeping, no waiting.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    call::{Call, Calls, Verb},
    refusal::Refusal,
};

/// What is done to a request.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    LoseReply,
    DelayReply(Duration),
    DropRequest,
    Hang,
    Refuse(Refusal),
}

/// The rules, and what has come of them.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// In the order they were added.
    active: Vec<Rule>,
    requests: BTreeMap<(Verb, String), u64>,
    trace: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    calls: Calls,
    fault: Fault,
    /// How many that match still pass before the first is hit.
    pass: u64,
    /// How many are hit after those.
    hit: u64,
}

// === impl Rules ===

impl Rules {
    pub(super) fn add(&mut self, calls: Calls, fault: Fault) {
        self.active.push(Rule {
            pass: calls.first.saturating_sub(1),
            hit: calls.times,
            calls,
            fault,
        });
    }

    pub(super) fn clear(&mut self) {
        self.active.clear();
    }

    /// Counts a request, and says what is done to it. Every rule that matches counts it, also when an
    /// older rule hits it first: "the third create" is the third for everybody.
    pub(super) fn decide(&mut self, call: &Call) -> Option<Fault> {
        *self.requests.entry((call.verb, call.target())).or_insert(0) += 1;
        let mut hit = None;
        for rule in &mut self.active {
            if rule.calls.matches(call) && rule.count() && hit.is_none() {
                hit = Some(rule.fault.clone());
            }
        }
        self.active.retain(|rule| rule.hit > 0);
        hit
    }

    pub(super) fn record(&mut self, words: String) {
        tracing::debug!(fault = words, "injected");
        self.trace.push(words);
    }

    pub(super) fn trace(&self) -> &[String] {
        &self.trace
    }

    pub(super) fn requests(&self) -> &BTreeMap<(Verb, String), u64> {
        &self.requests
    }
}

// === impl Rule ===

impl Rule {
    /// Counts a request that matches; whether it is hit.
    fn count(&mut self) -> bool {
        if self.pass > 0 {
            self.pass -= 1;
            return false;
        }
        let hits = self.hit > 0;
        self.hit = self.hit.saturating_sub(1);
        hits
    }
}

// === impl Fault ===

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoseReply => f.write_str("reply lost"),
            Self::DelayReply(delay) => write!(f, "reply delayed by {delay:?}"),
            Self::DropRequest => f.write_str("request dropped"),
            Self::Hang => f.write_str("request never answered"),
            Self::Refuse(refusal) => write!(f, "refused with {refusal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn hits(rules: &mut Rules, requests: usize) -> Vec<usize> {
        let uri = "/api/v1/namespaces/a/pods".parse().unwrap();
        let create = Call::parse(&Method::POST, &uri);
        (1..=requests).filter(|_| rules.decide(&create).is_some()).collect()
    }

    #[test]
    fn a_rule_hits_the_nth_and_as_many_as_it_was_told() {
        let cases = [
            (Calls::create("pods"), vec![1]),
            (Calls::create("pods").nth(3), vec![3]),
            (Calls::create("pods").nth(2).times(2), vec![2, 3]),
            (Calls::create("pods").nth(4).always(), vec![4, 5, 6]),
            (Calls::create("pods").times(0), vec![]),
            (Calls::create("pods").nth(0), vec![1]),
            (Calls::delete("pods").always(), vec![]),
        ];
        for (calls, expected) in cases {
            let mut rules = Rules::default();
            rules.add(calls.clone(), Fault::LoseReply);
            assert_eq!(hits(&mut rules, 6), expected, "{calls:?}");
        }
    }

    #[test]
    fn every_rule_counts_what_an_older_rule_hit() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").times(2), Fault::DropRequest);
        rules.add(Calls::create("pods").nth(3), Fault::LoseReply);
        assert_eq!(hits(&mut rules, 5), [1, 2, 3]);
        assert_eq!(rules.requests()[&(Verb::Create, "pods".to_owned())], 5);
    }

    #[test]
    fn a_spent_rule_is_forgotten() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").nth(2).times(2), Fault::LoseReply);
        hits(&mut rules, 2);
        assert_eq!(rules.active.len(), 1);
        hits(&mut rules, 1);
        assert!(rules.active.is_empty());
    }
}
