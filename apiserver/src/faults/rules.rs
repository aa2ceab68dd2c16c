//! Which fault hits which request: plain bookkeeping, no waiting.

use std::fmt;
use std::time::Duration;

use super::call::{Call, Verb};
use super::calls::Calls;
use super::chaos::Chaos;
use super::refusal::Refusal;
use super::shadow::Writer;
use super::stream::StreamFault;
use crate::clock::Chance;

/// What is done to a request.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    // Instead of sending it, or before:
    DropRequest,
    LoseRequest,
    Hang,
    DelayRequest(Duration),
    Refuse(Refusal),
    Shadow(Writer),
    // Once it has been carried out:
    LoseReply,
    WithholdReply,
    ReplaceReply(Refusal),
    DelayReply(Duration),
    TruncateReply(u64),
    CorruptReply(u64),
    // When a watch opens:
    Stream(StreamFault),
    Rewind(u64),
    /// One of these, or none, by chance.
    Chaos(Chaos),
}

/// Rules in the order they were added, each with how often it still hits.
#[derive(Debug)]
pub(super) struct Rules<F> {
    active: Vec<Rule<F>>,
    next_id: u64,
}

/// Names a rule, so that it can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleId(u64);

#[derive(Debug)]
struct Rule<F> {
    id: RuleId,
    calls: Calls,
    fault: F,
    /// How many that match still pass before the first is hit.
    pass: u64,
    /// How many are hit after those.
    hit: u64,
}

// === impl Rules ===

impl<F> Default for Rules<F> {
    fn default() -> Self {
        Self { active: Vec::new(), next_id: 0 }
    }
}

impl<F: Clone> Rules<F> {
    /// Adds a rule behind the others: of several that hit the same request, the oldest has its way.
    pub(super) fn add(&mut self, calls: Calls, fault: F) -> RuleId {
        let rule = self.rule(calls, fault);
        let id = rule.id;
        self.active.push(rule);
        id
    }

    /// Adds a rule that has its way before all others.
    pub(super) fn add_first(&mut self, calls: Calls, fault: F) -> RuleId {
        let rule = self.rule(calls, fault);
        let id = rule.id;
        self.active.insert(0, rule);
        id
    }

    fn rule(&mut self, calls: Calls, fault: F) -> Rule<F> {
        let id = RuleId(self.next_id);
        self.next_id += 1;
        let once = if calls.chance.is_some() { u64::MAX } else { 1 };
        let (pass, hit) = (calls.first.saturating_sub(1), calls.times.unwrap_or(once));
        Rule { id, calls, fault, pass, hit }
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        self.active.retain(|rule| rule.id != id);
    }

    pub(super) fn clear(&mut self) {
        self.active.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// What hits a request, oldest rule first. Every rule that matches counts it, also when an older one hits it too:
    /// "the third create" is the third for everybody.
    pub(super) fn hits(&mut self, call: &Call, chance: &Chance) -> Vec<F> {
        let mut hits = Vec::new();
        for rule in &mut self.active {
            if rule.calls.matches(call) && rule.count(chance) {
                hits.push(rule.fault.clone());
            }
        }
        self.active.retain(|rule| rule.hit > 0);
        hits
    }
}

// === impl Rule ===

impl<F> Rule<F> {
    /// Counts a request that matches; whether it is hit.
    fn count(&mut self, chance: &Chance) -> bool {
        if self.pass > 0 {
            self.pass -= 1;
            return false;
        }
        if self.calls.chance.is_some_and(|probability| chance.fraction() >= probability) {
            return false;
        }
        let hits = self.hit > 0;
        self.hit = self.hit.saturating_sub(1);
        hits
    }
}

// === impl Fault ===

impl Fault {
    /// Whether the request is carried out as if there were no fault.
    pub(super) fn is_of_the_reply(&self) -> bool {
        matches!(
            self,
            Self::LoseReply
                | Self::WithholdReply
                | Self::ReplaceReply(_)
                | Self::DelayReply(_)
                | Self::TruncateReply(_)
                | Self::CorruptReply(_)
        )
    }

    /// Whether it makes sense for this request: the faults of a stream are for watches.
    pub(super) fn suits(&self, call: &Call) -> bool {
        match self {
            Self::Stream(_) | Self::Rewind(_) => call.verb == Verb::Watch,
            Self::Shadow(_) => call.verb.is_mutating() && call.name.is_some(),
            _ => true,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropRequest => f.write_str("request dropped"),
            Self::LoseRequest => f.write_str("request lost"),
            Self::Hang => f.write_str("request never answered"),
            Self::DelayRequest(delay) => write!(f, "request delayed by {delay:?}"),
            Self::Refuse(refusal) => write!(f, "refused with {refusal}"),
            Self::Shadow(_) => f.write_str("somebody else wrote first"),
            Self::LoseReply => f.write_str("reply lost"),
            Self::WithholdReply => f.write_str("reply withheld"),
            Self::ReplaceReply(refusal) => write!(f, "reply replaced by {refusal}"),
            Self::DelayReply(delay) => write!(f, "reply delayed by {delay:?}"),
            Self::TruncateReply(at) => write!(f, "reply cut at byte {at}"),
            Self::CorruptReply(at) => write!(f, "reply corrupt at byte {at}"),
            Self::Stream(fault) => write!(f, "to be {fault}"),
            Self::Rewind(by) => write!(f, "begins {by} revisions earlier"),
            Self::Chaos(_) => f.write_str("left to chance"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn hits(rules: &mut Rules<()>, requests: usize) -> Vec<usize> {
        let chance = Chance::new(1);
        let uri = "/api/v1/namespaces/a/pods".parse().unwrap();
        let create = Call::parse("".into(), &Method::POST, &uri);
        (1..=requests).filter(|_| !rules.hits(&create, &chance).is_empty()).collect()
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
            (Calls::create("pods").chance(1.0).nth(5), vec![5, 6]),
            (Calls::create("pods").chance(0.0), vec![]),
            (Calls::delete("pods").always(), vec![]),
        ];
        for (calls, expected) in cases {
            let mut rules = Rules::default();
            rules.add(calls.clone(), ());
            assert_eq!(hits(&mut rules, 6), expected, "{calls:?}");
        }
    }

    #[test]
    fn a_chance_hits_about_as_often_as_it_says() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").chance(0.25), ());
        let hit = hits(&mut rules, 4000).len();
        assert!((900..1100).contains(&hit), "{hit} of 4000");
    }

    #[test]
    fn every_rule_counts_what_an_older_rule_hit() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").times(2), ());
        rules.add(Calls::create("pods").nth(3), ());
        assert_eq!(hits(&mut rules, 5), [1, 2, 3]);
    }

    #[test]
    fn a_spent_rule_is_forgotten() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").nth(2).times(2), ());
        hits(&mut rules, 2);
        assert_eq!(rules.active.len(), 1);
        hits(&mut rules, 1);
        assert!(rules.is_empty());
    }
}
