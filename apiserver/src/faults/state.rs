//! What one `Faults` knows: its rules, its clients, and what has happened. No waiting, no waking.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{Call, Verb};
use super::crash::CrashPoint;
use super::rules::{Fault, Rules};
use super::server::{Order, ServerRules};
use super::stream::StreamPlan;
use super::trace::{Entry, Trace};
use crate::clock::Chance;

/// The bookkeeping behind the lock.
#[derive(Debug)]
pub(super) struct State {
    started: Instant,
    pub(super) chance: Chance,
    pub(super) rules: Rules<Fault>,
    pub(super) server_rules: ServerRules,
    clients: BTreeMap<Arc<str>, Client>,
    /// Which mutating call of which client is its last; none of them is reached yet.
    crashes: Vec<(Arc<str>, CrashPoint, CancellationToken)>,
    pub(super) requests: BTreeMap<(Verb, String), u64>,
    pub(super) trace: Trace,
    /// Whether the trace tells the whole conversation.
    pub(super) tells_all: bool,
    next_birth: u64,
}

/// The clients of one name.
#[derive(Debug, Default)]
struct Client {
    calls: u64,
    mutations: u64,
    /// Those that were made before have crashed.
    frozen_before: u64,
}

/// What becomes of one request.
#[derive(Debug)]
pub(super) struct Plan {
    /// The how-manieth of its client.
    pub(super) number: u64,
    pub(super) fate: Fate,
    pub(super) stream: StreamPlan,
    /// So many revisions before the one that was asked for does a watch begin.
    pub(super) rewind: u64,
    pub(super) told: bool,
}

#[derive(Debug)]
pub(super) enum Fate {
    Pass,
    Meet(Fault),
    /// Its client has crashed: nobody asks.
    Frozen,
    CrashBefore(CancellationToken),
    CrashAfter(CancellationToken),
}

/// So many clients, and so many kinds of requests, are told apart: nobody can make the bookkeeping grow without end.
const TOLD_APART: usize = 4096;
/// What is longer than this is no resource.
const LONGEST: usize = 256;
/// What all further kinds of requests are counted as.
const OTHERS: &str = "others";

// === impl Fate ===

impl Fate {
    /// Whether nothing comes before the request is sent.
    pub(super) fn sends_at_once(&self) -> bool {
        match self {
            Self::Pass | Self::CrashAfter(_) => true,
            Self::Meet(fault) => fault.is_of_the_reply(),
            Self::Frozen | Self::CrashBefore(_) => false,
        }
    }
}

// === impl State ===

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            started: Instant::now(),
            chance: Chance::new(seed),
            rules: Rules::default(),
            server_rules: ServerRules::default(),
            clients: BTreeMap::new(),
            crashes: Vec::new(),
            requests: BTreeMap::new(),
            trace: Trace::default(),
            tells_all: false,
            next_birth: 0,
        }
    }

    /// A number for a new client, larger than those of the clients before.
    pub(super) fn birth(&mut self) -> u64 {
        self.next_birth += 1;
        self.next_birth
    }

    /// Counts a request, and says what becomes of it.
    pub(super) fn begin(&mut self, call: &Call, born: u64) -> Plan {
        self.count(call);
        let known = self.clients.len() < TOLD_APART || self.clients.contains_key(&call.client);
        let name = if known { Arc::clone(&call.client) } else { Arc::default() };
        let client = self.clients.entry(name).or_default();
        client.calls += 1;
        let number = client.calls;
        let told = self.tells_all;
        let mut stream = StreamPlan::default();
        stream.told = told;
        let mut plan = Plan { number, fate: Fate::Pass, stream, rewind: 0, told };
        if born <= client.frozen_before {
            plan.fate = Fate::Frozen;
            return plan;
        }
        if call.verb.is_mutating() {
            client.mutations += 1;
            let mutation = client.mutations;
            if let Some((point, reached)) = self.crash(&call.client, mutation) {
                plan.fate = match point {
                    CrashPoint::Before(_) => Fate::CrashBefore(reached),
                    CrashPoint::After(_) => Fate::CrashAfter(reached),
                };
                return plan;
            }
        }
        self.meet(call, &mut plan);
        plan
    }

    fn count(&mut self, call: &Call) {
        let mut what = (call.verb, call.target());
        let known = self.requests.len() < TOLD_APART || self.requests.contains_key(&what);
        if !known || what.1.len() > LONGEST {
            what = (Verb::Other, OTHERS.to_owned());
        }
        *self.requests.entry(what).or_insert(0) += 1;
    }

    /// Applies the rules that hit.
    fn meet(&mut self, call: &Call, plan: &mut Plan) {
        if self.rules.is_empty() {
            return;
        }
        for fault in self.rules.hits(call, &self.chance) {
            let fault = match fault {
                Fault::Chaos(chaos) => chaos.draw(call, &self.chance),
                fault => Some(fault),
            };
            match fault.filter(|fault| fault.suits(call)) {
                Some(Fault::Stream(fault)) => plan.stream.add(fault),
                Some(Fault::Rewind(by)) => plan.rewind += by,
                Some(fault) if matches!(plan.fate, Fate::Pass) => plan.fate = Fate::Meet(fault),
                None | Some(_) => {}
            }
        }
    }

    pub(super) fn order_hits(&mut self, call: &Call) -> Vec<Order> {
        self.server_rules.hits(call, &self.chance)
    }

    pub(super) fn plan_crash(&mut self, client: Arc<str>, at: CrashPoint) -> CancellationToken {
        let reached = CancellationToken::new();
        self.crashes.push((client, at, reached.clone()));
        reached
    }

    fn crash(&mut self, client: &str, mutation: u64) -> Option<(CrashPoint, CancellationToken)> {
        let at = self
            .crashes
            .iter()
            .position(|(name, point, _)| **name == *client && point.call() == mutation)?;
        let (_, point, reached) = self.crashes.remove(at);
        Some((point, reached))
    }

    /// The clients of this name that there are now are gone. Returns the birth of the last of them.
    pub(super) fn freeze(&mut self, name: &Arc<str>) -> u64 {
        let born = self.next_birth;
        self.clients.entry(Arc::clone(name)).or_default().frozen_before = born;
        born
    }

    pub(super) fn is_frozen(&self, name: &str, born: u64) -> bool {
        self.clients.get(name).is_some_and(|client| born <= client.frozen_before)
    }

    pub(super) fn mutations(&self, name: &str) -> u64 {
        self.clients.get(name).map_or(0, |client| client.mutations)
    }

    pub(super) fn record(&mut self, call: &Call, number: Option<u64>, words: &str) {
        let entry = Entry::of(self.elapsed(), call, number, words);
        self.trace.push(entry);
    }

    pub(super) fn record_told(&mut self, call: &Call, number: Option<u64>, words: &str) {
        let entry = Entry::of(self.elapsed(), call, number, words).told();
        self.trace.push(entry);
    }

    pub(super) fn record_words(&mut self, client: Arc<str>, words: String) {
        let entry = Entry::at(self.elapsed(), client, words);
        self.trace.push(entry);
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
