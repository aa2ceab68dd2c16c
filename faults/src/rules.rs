//! Decides which fault rules hit a request. It keeps counts only and never waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_core::Random;

use crate::calls::Calls;
use crate::request_info::ClientRequest;

/// A handle to a fault rule, returned by the methods of [`Faults`](crate::Faults) that add one.
///
/// The rule stays in force when the handle is dropped. A test uses the handle to check that the
/// fault happened, so that a wrong selector does not go unnoticed;
/// [`Faults::assert_all_hit`](crate::Faults::assert_all_hit) checks all rules at once.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_faults::{ApiError, Calls};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::Api;
///
/// let server = ApiServer::new();
/// let rule = server.faults().refuse(Calls::get("pods").nth(2), ApiError::unavailable());
/// let pods = Api::<Pod>::default_namespaced(server.client());
/// assert!(pods.get_opt("a").await.is_ok());
/// assert_eq!((rule.matches(), rule.hits()), (1, 0));
/// assert!(pods.get_opt("a").await.is_err());
/// rule.assert_hit();
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FaultRule {
    counts: Arc<RuleCounts>,
}

/// The description of a rule and how often it matched and hit.
#[derive(Debug)]
pub(crate) struct RuleCounts {
    description: String,
    /// The noun for what the rule matches.
    unit: &'static str,
    matches: AtomicU64,
    hits: AtomicU64,
}

/// Rules in the order in which they were added, each with its remaining number of hits.
#[derive(Debug)]
pub(crate) struct Rules<F> {
    active: Vec<Rule<F>>,
    next_id: u64,
}

/// Identifies a rule for its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleId(u64);

#[derive(Debug)]
struct Rule<F> {
    id: RuleId,
    calls: Calls,
    fault: F,
    counts: Arc<RuleCounts>,
    /// Number of matching requests that still pass before the first hit.
    pass: u64,
    /// Number of hits left.
    hits_left: u64,
    /// True if a guard removes the rule.
    has_guard: bool,
}

// === impl FaultRule ===

impl FaultRule {
    pub(crate) fn new(counts: Arc<RuleCounts>) -> Self {
        Self { counts }
    }

    /// Returns the number of requests that the fault was injected into, or of watch events, if the
    /// rule selects those.
    ///
    /// A hit counts when the fault takes effect: a break of a watch when the watch breaks. A
    /// request that meets the fault of an older rule, and a fault that does not apply to the
    /// request (a watch fault to a create), do not count.
    pub fn hits(&self) -> u64 {
        self.counts.hits.load(Ordering::Relaxed)
    }

    /// Returns the number of requests or events that the selector matched, hit or not.
    ///
    /// Counting ends with the last hit of the rule and with
    /// [`Faults::heal`](crate::Faults::heal).
    pub fn matches(&self) -> u64 {
        self.counts.matches.load(Ordering::Relaxed)
    }

    /// Checks that the rule has hit at least one request.
    ///
    /// # Panics
    ///
    /// Panics with a description of the rule if it has hit no request.
    #[track_caller]
    pub fn assert_hit(&self) {
        assert!(self.hits() > 0, "fault rule hit no {}: {}", self.counts.unit, self.counts);
    }
}

// === impl RuleCounts ===

impl RuleCounts {
    fn new(calls: &Calls, fault: &impl fmt::Display) -> Self {
        Self::of_guard(format!("{fault}, for {calls}"), "request")
    }

    /// Returns the counts of a guard, which adds no rule of its own for `unit`s.
    pub(crate) fn of_guard(description: String, unit: &'static str) -> Self {
        Self { description, unit, matches: AtomicU64::new(0), hits: AtomicU64::new(0) }
    }

    /// Returns the counts of a rule for watch events.
    pub(crate) fn of_events(calls: &Calls, fault: &impl fmt::Display) -> Self {
        Self { unit: "event", ..Self::new(calls, fault) }
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.hits.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn count_hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_match(&self) {
        self.matches.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for RuleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matches = self.matches.load(Ordering::Relaxed);
        let s = match self.unit {
            _ if matches == 1 => "",
            "watch" => "es",
            _ => "s",
        };
        write!(f, "{} ({matches} {}{s} matched)", self.description, self.unit)
    }
}

// === impl Rules ===

impl<F> Default for Rules<F> {
    fn default() -> Self {
        Self { active: Vec::new(), next_id: 0 }
    }
}

impl<F: Clone + fmt::Display> Rules<F> {
    /// Adds a rule after the others: if several hit the same request, the oldest is applied.
    pub(crate) fn add(&mut self, calls: Calls, fault: F) -> Arc<RuleCounts> {
        let rule = self.rule(calls, fault);
        let counts = Arc::clone(&rule.counts);
        self.active.push(rule);
        counts
    }

    /// Adds a rule before all others, with the counts of its guard. It stays until the guard
    /// [removes](Self::remove) it.
    pub(crate) fn add_first(&mut self, calls: Calls, fault: F, counts: Arc<RuleCounts>) -> RuleId {
        let mut rule = self.rule(calls, fault);
        rule.has_guard = true;
        rule.counts = counts;
        let id = rule.id;
        self.active.insert(0, rule);
        id
    }

    fn rule(&mut self, calls: Calls, fault: F) -> Rule<F> {
        let id = RuleId(self.next_id);
        self.next_id += 1;
        let default = if calls.chance.is_some() { u64::MAX } else { 1 };
        let (pass, hits_left) = calls.selection.hits(default);
        let counts = Arc::new(RuleCounts::new(&calls, &fault));
        Rule { id, calls, fault, counts, pass, hits_left, has_guard: false }
    }

    pub(crate) fn remove(&mut self, id: RuleId) {
        self.active.retain(|rule| rule.id != id);
    }

    /// Removes every rule that has no guard.
    pub(crate) fn clear(&mut self) {
        self.active.retain(|rule| rule.has_guard);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Returns the faults that hit a request, oldest rule first.
    ///
    /// Every matching rule counts the request, even if an older rule hits it: "the third create"
    /// is the same request for all rules. The caller calls [`RuleCounts::count_hit`] for the faults
    /// that it injects.
    pub(crate) fn hits(
        &mut self,
        request: &ClientRequest,
        random: &mut Random,
    ) -> Vec<(Arc<RuleCounts>, F)> {
        let mut hits = Vec::new();
        for rule in &mut self.active {
            if rule.calls.matches(request) && rule.count(random) {
                hits.push((Arc::clone(&rule.counts), rule.fault.clone()));
            }
        }
        self.active.retain(|rule| rule.hits_left > 0);
        hits
    }
}

// === impl Rule ===

impl<F> Rule<F> {
    /// Counts a matching request. Returns true if the rule hits it.
    fn count(&mut self, random: &mut Random) -> bool {
        self.counts.count_match();
        if self.pass > 0 {
            self.pass -= 1;
            return false;
        }
        if self.calls.chance.is_some_and(|probability| random.fraction() >= probability) {
            return false;
        }
        let hits = self.hits_left > 0;
        self.hits_left = self.hits_left.saturating_sub(1);
        hits
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn hits(rules: &mut Rules<&'static str>, requests: usize) -> Vec<usize> {
        let mut random = Random::new(Some(1));
        let uri = "/api/v1/namespaces/a/pods".parse().unwrap();
        let create = ClientRequest::parse("".into(), &Method::POST, &uri);
        (1..=requests).filter(|_| !rules.hits(&create, &mut random).is_empty()).collect()
    }

    #[test]
    fn rule_hits_the_nth_request_and_the_configured_number_after_it() {
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
            rules.add(calls.clone(), "fault");
            assert_eq!(hits(&mut rules, 6), expected, "{calls:?}");
        }
    }

    #[test]
    fn rule_with_a_probability_hits_that_share_of_requests() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").chance(0.25), "fault");
        let hit = hits(&mut rules, 4000).len();
        assert!((900..1100).contains(&hit), "{hit} of 4000");
    }

    #[test]
    fn every_rule_counts_requests_that_an_older_rule_hit() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").times(2), "fault");
        rules.add(Calls::create("pods").nth(3), "fault");
        assert_eq!(hits(&mut rules, 5), [1, 2, 3]);
    }

    #[test]
    fn rule_without_hits_left_is_removed() {
        let mut rules = Rules::default();
        rules.add(Calls::create("pods").nth(2).times(2), "fault");
        hits(&mut rules, 2);
        assert_eq!(rules.active.len(), 1);
        hits(&mut rules, 1);
        assert!(rules.is_empty());
    }

    #[test]
    fn rule_counts_matching_requests() {
        let mut rules = Rules::default();
        let counts = rules.add(Calls::create("pods").nth(3), "reply lost");
        hits(&mut rules, 2);
        assert_eq!(
            counts.to_string(),
            "reply lost, for create pods, from number 3 (2 requests matched)"
        );
    }
}
