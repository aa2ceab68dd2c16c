//! Rules for faults that another part carries out, such as the API server itself.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::calls::Calls;
use crate::client_name::ClientName;
use crate::faults::Faults;
use crate::object_match::RequestObject;
use crate::request_info::{ClientRequest, RequestInfo};
use crate::rules::{FaultRule, RuleCounts, Rules};

/// Rules for the faults `F` of a server, which select requests, count their hits, and are cleared
/// and asserted together with those of the client; made by [`Faults::rule_set`].
///
/// # Examples
///
/// ```
/// use homeostat_faults::{Calls, ClientName, Faults, RequestInfo};
/// use http::Method;
///
/// let faults = Faults::new();
/// let crashes = faults.rule_set::<&str>();
/// let rule = crashes.add(Calls::create("pods"), "crash");
/// let pods = RequestInfo::parse(&Method::POST, "/api/v1/namespaces/a/pods", "");
/// for hit in crashes.hits(|| (ClientName::default(), pods, None)) {
///     assert_eq!(*hit.fault(), "crash");
///     hit.count();
/// }
/// rule.assert_hit();
/// ```
pub struct RuleSet<F> {
    faults: Faults,
    state: Mutex<State<F>>,
}

/// A fault of a [`RuleSet`] that hits a request.
#[derive(Debug)]
pub struct Hit<F> {
    faults: Faults,
    request: Arc<ClientRequest>,
    fault: F,
    counts: Arc<RuleCounts>,
}

#[derive(Debug)]
struct State<F> {
    rules: Rules<F>,
    /// The number of calls of [`Faults::heal`] when the rules were last used.
    heals: u64,
}

// === impl Faults ===

/// Rules for faults that the server carries out.
impl Faults {
    /// Returns an empty set of rules for faults that the server carries out.
    pub fn rule_set<F: Clone + fmt::Display>(&self) -> RuleSet<F> {
        RuleSet::new(self.clone())
    }
}

// === impl RuleSet ===

impl<F: Clone + fmt::Display> RuleSet<F> {
    pub(crate) fn new(faults: Faults) -> Self {
        let heals = faults.heals();
        Self { faults, state: Mutex::new(State { rules: Rules::default(), heals }) }
    }

    /// Adds a rule.
    ///
    /// # Panics
    ///
    /// Panics if a resource name in `calls` is invalid or unknown.
    #[track_caller]
    pub fn add(&self, calls: Calls, fault: F) -> FaultRule {
        self.faults.check_resources(&calls);
        self.faults.note_bodies(&calls);
        let mut state = self.state.lock();
        state.clear_if_healed(self.faults.heals());
        let counts = state.rules.add(calls, fault);
        self.faults.remember(counts)
    }

    /// Returns the faults that hit a request, oldest rule first. `request` is called only if there
    /// is a rule; the object is what [`RequestObject::of`] returns.
    pub fn hits(
        &self,
        request: impl FnOnce() -> (ClientName, RequestInfo, Option<RequestObject>),
    ) -> Vec<Hit<F>> {
        let mut state = self.state.lock();
        state.clear_if_healed(self.faults.heals());
        if state.rules.is_empty() {
            return Vec::new();
        }
        let (client, info, object) = request();
        let object = object.map(|object| object.0);
        let request =
            Arc::new(ClientRequest { client: client.0, info, object, watched_from: None });
        let hits = self.faults.draw(|random| state.rules.hits(&request, random));
        let hit = |(counts, fault)| {
            let (faults, request) = (self.faults.clone(), Arc::clone(&request));
            Hit { faults, request, fault, counts }
        };
        hits.into_iter().map(hit).collect()
    }
}

impl<F: fmt::Debug> fmt::Debug for RuleSet<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.state.lock().rules).finish_non_exhaustive()
    }
}

// === impl Hit ===

impl<F> Hit<F> {
    /// Returns the fault.
    pub fn fault(&self) -> &F {
        &self.fault
    }

    /// Returns the request that the fault hits.
    pub fn request(&self) -> &RequestInfo {
        &self.request.info
    }

    /// Counts the hit in the [`FaultRule`]. The server calls it for the faults that it injects.
    pub fn count(&self) {
        self.counts.count_hit();
    }

    /// Records a message about the request in the trace.
    pub fn record(&self, message: &str) {
        self.faults.record(&self.request, message);
    }
}

// === impl State ===

impl<F: Clone + fmt::Display> State<F> {
    fn clear_if_healed(&mut self, heals: u64) {
        if self.heals != heals {
            self.rules.clear();
            self.heals = heals;
        }
    }
}
