//! The state behind a `Faults`: rules, clients and the trace. Nothing here waits or wakes a task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_core::Random;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::crash_point::{Counted, CrashPoint};
use crate::fault::Fault;
use crate::request_info::{ClientRequest, Verb};
use crate::resource_names::ResourceNames;
use crate::rules::{FaultRule, RuleCounts, Rules};
use crate::stream_fault::StreamPlan;
use crate::trace::{Trace, TraceEntry};

/// The data behind the lock of a `Faults`.
#[derive(Debug)]
pub(crate) struct State {
    started: Instant,
    pub(crate) random: Random,
    pub(crate) resources: ResourceNames,
    pub(crate) rules: Rules<Fault>,
    /// The number of calls of `heal`.
    pub(crate) heals: u64,
    /// The rules of the caller that may not have hit yet, for `assert_all_hit`.
    added: Vec<Arc<RuleCounts>>,
    clients: BTreeMap<Arc<str>, ClientState>,
    /// The planned crashes.
    crashes: Vec<PlannedCrash>,
    pub(crate) requests: BTreeMap<(Verb, String), u64>,
    pub(crate) trace: Trace,
    /// True if the trace records every request, reply and event.
    pub(crate) traces_traffic: bool,
    last_generation: u64,
}

/// A planned crash.
#[derive(Debug)]
struct PlannedCrash {
    client: Arc<str>,
    point: CrashPoint,
    reached: CancellationToken,
    /// True once the client has come to the point. It does not crash if it drops the call then.
    is_due: bool,
    /// The number of events that the client got since the crash was planned.
    events: u64,
}

/// The clients of one name. Each client is a generation of its own.
#[derive(Debug, Default)]
struct ClientState {
    requests: u64,
    mutations: u64,
    reads: u64,
    by_resource: BTreeMap<(Verb, String), u64>,
    /// Clients of this generation and of earlier ones have crashed.
    crashed_generation: u64,
}

/// The decision about one request.
#[derive(Debug)]
pub(crate) struct RequestPlan {
    /// Position among the requests of the client, counted from 1.
    pub(crate) number: u64,
    pub(crate) action: Action,
    pub(crate) stream: StreamPlan,
    /// Number of revisions by which a watch starts earlier than requested.
    pub(crate) rewind: u64,
    /// True if the trace records the request and its reply.
    pub(crate) is_traced: bool,
}

#[derive(Debug)]
pub(crate) enum Action {
    Pass,
    /// The rule counts the hit when the fault is injected.
    Inject(Fault, Arc<RuleCounts>),
    /// The client has crashed: the request gets no answer.
    Freeze,
    CrashBefore(CancellationToken),
    CrashAfter(CancellationToken),
}

/// Number of client names, and of verb and resource pairs, that are counted separately. It bounds
/// the memory for input from the network.
const MAX_COUNTED: usize = 4096;
/// Number of verb and resource pairs that are counted separately for one client.
const MAX_COUNTED_BY_CLIENT: usize = 256;
/// Length above which a resource name is not counted separately.
const MAX_RESOURCE_LENGTH: usize = 256;
/// The name under which all other requests are counted.
const OTHERS: &str = "others";

// === impl Action ===

impl Action {
    /// Returns true if the request is sent before anything else happens.
    pub(crate) fn sends_at_once(&self) -> bool {
        match self {
            Self::Pass | Self::CrashAfter(_) => true,
            Self::Inject(fault, _) => fault.affects_reply_only(),
            Self::Freeze | Self::CrashBefore(_) => false,
        }
    }
}

// === impl State ===

impl State {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            started: Instant::now(),
            random: Random::new(Some(seed)),
            resources: ResourceNames::built_in(),
            rules: Rules::default(),
            heals: 0,
            added: Vec::new(),
            clients: BTreeMap::new(),
            crashes: Vec::new(),
            requests: BTreeMap::new(),
            trace: Trace::default(),
            traces_traffic: false,
            last_generation: 0,
        }
    }

    pub(crate) fn add_rule(&mut self, calls: Calls, fault: Fault) -> FaultRule {
        let counts = self.rules.add(calls, fault);
        self.remember(counts)
    }

    pub(crate) fn remember(&mut self, counts: Arc<RuleCounts>) -> FaultRule {
        // Rules that have hit are dropped before the vector grows.
        if self.added.len() == self.added.capacity() {
            self.added.retain(|counts| !counts.is_hit());
        }
        self.added.push(Arc::clone(&counts));
        FaultRule::new(counts)
    }

    /// Describes the rules that have hit no request and the crashes that have not happened.
    pub(crate) fn unhit(&self) -> Vec<String> {
        let rules = self.added.iter().filter(|counts| !counts.is_hit());
        let rules = rules.map(ToString::to_string);
        let crashes = self.crashes.iter().filter(|planned| !planned.reached.is_cancelled());
        let crashes = crashes.map(|PlannedCrash { client, point, events, .. }| {
            let counted = point.counted();
            let count = match counted {
                Counted::Mutations => self.mutations(client),
                Counted::Reads => self.clients.get(client).map_or(0, |client| client.reads),
                Counted::Events => *events,
            };
            format!("crash of {client} {point} ({count} {counted} so far)")
        });
        rules.chain(crashes).collect()
    }

    /// Returns the generation of a new client, larger than those of earlier clients.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.last_generation += 1;
        self.last_generation
    }

    /// Counts a request and decides what happens to it.
    pub(crate) fn begin(&mut self, request: &ClientRequest, generation: u64) -> RequestPlan {
        let key = (request.info.verb, request.info.rbac_resource());
        count_in(&mut self.requests, &key, MAX_COUNTED);
        let known = self.clients.len() < MAX_COUNTED || self.clients.contains_key(&request.client);
        let name = if known { Arc::clone(&request.client) } else { Arc::default() };
        let client = self.clients.entry(name).or_default();
        client.requests += 1;
        let number = client.requests;
        let is_traced = self.traces_traffic;
        let mut stream = StreamPlan::default();
        stream.is_traced = is_traced;
        let mut plan = RequestPlan { number, action: Action::Pass, stream, rewind: 0, is_traced };
        if generation <= client.crashed_generation {
            plan.action = Action::Freeze;
            return plan;
        }
        count_in(&mut client.by_resource, &key, MAX_COUNTED_BY_CLIENT);
        if let Some((counted, count)) = client.count(request.info.verb)
            && let Some((point, reached)) = self.mark_due_crash(&request.client, counted, count)
        {
            plan.action = if point.is_before() {
                Action::CrashBefore(reached)
            } else {
                Action::CrashAfter(reached)
            };
            return plan;
        }
        self.apply_rules(request, &mut plan);
        plan
    }

    fn apply_rules(&mut self, request: &ClientRequest, plan: &mut RequestPlan) {
        if self.rules.is_empty() {
            return;
        }
        for (counts, fault) in self.rules.hits(request, &mut self.random) {
            let fault = match fault {
                Fault::Chaos(chaos) => Fault::drawn(&chaos, request, &mut self.random),
                fault => Some(fault),
            };
            match fault.filter(|fault| fault.applies_to(request)) {
                Some(Fault::Stream(fault)) => plan.stream.add(fault, counts),
                // All rewinds of the watch together stay behind its version.
                Some(Fault::Rewind(by)) if request.watched_from > plan.rewind.checked_add(by) => {
                    plan.rewind += by;
                    counts.count_hit();
                }
                Some(Fault::Rewind(_)) | None => {}
                Some(fault) if matches!(plan.action, Action::Pass) => {
                    plan.action = Action::Inject(fault, counts);
                }
                Some(_) => {}
            }
        }
    }

    pub(crate) fn plan_crash(&mut self, client: Arc<str>, at: CrashPoint) -> CancellationToken {
        let reached = CancellationToken::new();
        // Those that have happened are of no use any longer.
        self.crashes.retain(|planned| !planned.reached.is_cancelled());
        let planned =
            PlannedCrash { client, point: at, reached: reached.clone(), is_due: false, events: 0 };
        self.crashes.push(planned);
        reached
    }

    /// Returns the crash that is planned at this point, and marks it as due.
    fn mark_due_crash(
        &mut self,
        client: &str,
        counted: Counted,
        count: u64,
    ) -> Option<(CrashPoint, CancellationToken)> {
        let is_due = |planned: &PlannedCrash| {
            let point = planned.point;
            !planned.is_due
                && *planned.client == *client
                && point.counted() == counted
                && point.call() == count
        };
        let at = self.crashes.iter().position(is_due)?;
        let planned = &mut self.crashes[at];
        planned.is_due = true;
        Some((planned.point, planned.reached.clone()))
    }

    /// Counts an event of a watch. Removes and returns the crash that is planned at it.
    pub(crate) fn take_crash_at_event(&mut self, client: &str) -> Option<CancellationToken> {
        let mut due = None;
        for (at, planned) in self.crashes.iter_mut().enumerate() {
            if *planned.client == *client && planned.point.counted() == Counted::Events {
                planned.events += 1;
                due = due.or_else(|| (planned.events == planned.point.call()).then_some(at));
            }
        }
        Some(self.crashes.remove(due?).reached)
    }

    /// Returns true if a crash is planned at an event.
    pub(crate) fn crashes_at_events(&self) -> bool {
        self.crashes.iter().any(|planned| planned.point.counted() == Counted::Events)
    }

    /// Marks all present clients of this name as crashed. Returns the newest generation.
    pub(crate) fn crash(&mut self, name: &Arc<str>) -> u64 {
        let generation = self.last_generation;
        self.clients.entry(Arc::clone(name)).or_default().crashed_generation = generation;
        generation
    }

    pub(crate) fn has_crashed(&self, name: &str, generation: u64) -> bool {
        self.clients.get(name).is_some_and(|client| generation <= client.crashed_generation)
    }

    pub(crate) fn mutations(&self, name: &str) -> u64 {
        self.clients.get(name).map_or(0, |client| client.mutations)
    }

    /// Returns the requests of the clients of this name, per verb and resource.
    pub(crate) fn requests_by(&self, name: &str) -> BTreeMap<(Verb, String), u64> {
        self.clients.get(name).map(|client| client.by_resource.clone()).unwrap_or_default()
    }

    /// Records a fault on a request.
    pub(crate) fn record(&mut self, request: &ClientRequest, number: Option<u64>, message: &str) {
        let entry = TraceEntry::of_request(self.elapsed(), request, number, message);
        self.trace.push(entry);
    }

    /// Records an event of a watch.
    pub(crate) fn record_event(&mut self, request: &ClientRequest, message: &str) {
        let entry = TraceEntry::of_request(self.elapsed(), request, None, message);
        self.trace.push(entry.into_event(request.info.group_resource()));
    }

    /// Records traffic: a request or a reply.
    pub(crate) fn record_traffic(
        &mut self,
        request: &ClientRequest,
        number: Option<u64>,
        message: &str,
    ) {
        let entry = TraceEntry::of_request(self.elapsed(), request, number, message).into_traffic();
        self.trace.push(entry);
    }

    /// Records a fault on a client, or on the server if `client` is empty.
    pub(crate) fn record_client(&mut self, client: Arc<str>, message: String) {
        let entry = TraceEntry::of_client(self.elapsed(), client, message);
        self.trace.push(entry);
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

// === impl ClientState ===

impl ClientState {
    /// Counts a request for crash points. Returns its position among those of its sort.
    fn count(&mut self, verb: Verb) -> Option<(Counted, u64)> {
        let (counted, count) = match verb {
            Verb::Other => return None,
            Verb::Get | Verb::List | Verb::Watch => (Counted::Reads, &mut self.reads),
            _ => (Counted::Mutations, &mut self.mutations),
        };
        *count += 1;
        Some((counted, *count))
    }
}

fn count_in(counts: &mut BTreeMap<(Verb, String), u64>, key: &(Verb, String), most: usize) {
    if let Some(count) = counts.get_mut(key) {
        *count += 1;
        return;
    }
    let is_kept = counts.len() < most && key.1.len() <= MAX_RESOURCE_LENGTH;
    let key = if is_kept { key.clone() } else { (Verb::Other, OTHERS.to_owned()) };
    *counts.entry(key).or_insert(0) += 1;
}
