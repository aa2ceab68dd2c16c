//! The handle of all faults: rules, crashes, partitions and the trace.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeostat_core::Random;
use kube_client::Client;

use crate::api_error::ApiError;
use crate::calls::Calls;
use crate::chaos::Chaos;
use crate::conflicting_writer::ConflictingWriter;
use crate::crash::{Crash, Lost, Partition};
use crate::crash_point::{Counted, CrashPoint};
use crate::fault::Fault;
use crate::request_info::{ClientRequest, Verb};
use crate::resource_names::ResourceNames;
use crate::rules::{FaultRule, RuleCounts};
use crate::shared::Shared;
use crate::trace::Trace;

/// Injects faults into the requests and watches of the clients built over it. Clones share
/// everything.
///
/// Methods that add a rule return a [`FaultRule`], which counts the hits. If several rules hit the
/// same request, the oldest is injected; watch faults of all of them are injected.
///
/// # Resource names
///
/// Rules name resources by their plural. A method that takes [`Calls`] panics if a resource name is
/// not valid (`ConfigMap`, `pods/status`) or is another name of a built-in resource (`configmap`,
/// `cm`). The `Faults` of an `ApiServer` also refuse every resource that the server does not serve.
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
/// let server = ApiServer::builder().seed(1).build();
/// let faults = server.faults();
/// faults.refuse(Calls::get("pods"), ApiError::unavailable());
/// let pods = Api::<Pod>::default_namespaced(server.client_as("controller"));
/// pods.get_opt("a").await.unwrap_err();
/// faults.assert_all_hit();
/// print!("{}", faults.trace());
/// # }
/// ```
#[derive(Clone)]
pub struct Faults {
    pub(crate) shared: Arc<Shared>,
}

// === impl Faults ===

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl Faults {
    /// Creates a handle without rules, with seed 0.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// Creates a handle without rules. Random faults are drawn from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { shared: Arc::new(Shared::new(seed)) }
    }
}

/// Rules for requests. Each method panics if a resource name is invalid or unknown.
impl Faults {
    /// The server processes the request, and the client gets a connection reset.
    ///
    /// The outcome is ambiguous to the client: a create whose reply is lost has created its object.
    #[track_caller]
    pub fn lose_reply(&self, calls: Calls) -> FaultRule {
        self.add(calls, Fault::LoseReply)
    }

    /// The server processes the request, and the client gets no reply and no error.
    #[track_caller]
    pub fn withhold_reply(&self, calls: Calls) -> FaultRule {
        self.add(calls, Fault::WithholdReply)
    }

    /// The server processes the request, and the client gets `error` in place of the reply.
    #[track_caller]
    pub fn replace_reply(&self, calls: Calls, error: ApiError) -> FaultRule {
        self.add(calls, Fault::ReplaceReply(error))
    }

    /// The server processes the request, and the reply is reset after `bytes` bytes.
    #[track_caller]
    pub fn truncate_reply(&self, calls: Calls, bytes: u64) -> FaultRule {
        self.add(calls, Fault::TruncateReply(bytes))
    }

    /// The server processes the request, and one byte of the reply is wrong, so that it is not
    /// JSON.
    #[track_caller]
    pub fn corrupt_reply(&self, calls: Calls, at_byte: u64) -> FaultRule {
        self.add(calls, Fault::CorruptReply(at_byte))
    }

    /// The reply arrives `delay` later.
    #[track_caller]
    pub fn delay_reply(&self, calls: Calls, delay: Duration) -> FaultRule {
        self.add(calls, Fault::DelayReply(delay))
    }

    /// The request is sent `delay` later.
    #[track_caller]
    pub fn delay_request(&self, calls: Calls, delay: Duration) -> FaultRule {
        self.add(calls, Fault::DelayRequest(delay))
    }

    /// The request is not sent, and the client gets a connection refused.
    #[track_caller]
    pub fn drop_request(&self, calls: Calls) -> FaultRule {
        self.add(calls, Fault::DropRequest)
    }

    /// The request is not sent, and the client gets a connection reset, as after
    /// [`lose_reply`](Self::lose_reply): it cannot distinguish the two.
    #[track_caller]
    pub fn lose_request(&self, calls: Calls) -> FaultRule {
        self.add(calls, Fault::LoseRequest)
    }

    /// The request is not sent, and the client gets no reply and no error.
    #[track_caller]
    pub fn hang(&self, calls: Calls) -> FaultRule {
        self.add(calls, Fault::Hang)
    }

    /// The request is not sent, and the client gets `error`.
    #[track_caller]
    pub fn refuse(&self, calls: Calls, error: ApiError) -> FaultRule {
        self.add(calls, Fault::Refuse(error))
    }

    /// Changes an annotation of the object with `writer` just before the request is sent.
    ///
    /// The conflict is real: a client that reads the object again gets a newer version. The rule
    /// hits only writes that name their object, so no creates.
    #[track_caller]
    pub fn write_first(&self, calls: Calls, writer: Client) -> FaultRule {
        self.add(calls, Fault::WriteFirst(ConflictingWriter::new(writer)))
    }

    /// Injects random faults into the requests: into all of them, unless [`Calls::times`] limits
    /// the number.
    ///
    /// The rule counts the faults that were drawn and took effect.
    #[track_caller]
    pub fn chaos(&self, calls: Calls, chaos: Chaos) -> FaultRule {
        let calls = if calls.selection.times.is_none() { calls.always() } else { calls };
        self.add(calls, Fault::Chaos(chaos))
    }

    #[track_caller]
    pub(crate) fn add(&self, calls: Calls, fault: Fault) -> FaultRule {
        self.check_resources(&calls);
        self.note_bodies(&calls);
        self.shared.state.lock().add_rule(calls, fault)
    }

    /// Makes the fault layers read the bodies of later requests if a selector looks at them.
    pub(crate) fn note_bodies(&self, calls: &Calls) {
        if calls.reads_bodies() {
            self.shared.reads_bodies.store(true, Ordering::Relaxed);
        }
    }

    #[track_caller]
    pub(crate) fn check_resources(&self, calls: &Calls) {
        let resources = self.shared.state.lock().resources.clone();
        for resource in calls.resources() {
            if let Err(message) = resources.check(resource) {
                panic!("{message}");
            }
        }
    }
}

/// Rules of the server behind the clients.
impl Faults {
    /// Refuses every later rule for a resource that is not in `resources`: the plural of each, and
    /// its other names, which messages correct.
    pub fn restrict_resources<'a>(
        &self,
        resources: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
    ) {
        self.shared.state.lock().resources = ResourceNames::of_server(resources);
    }

    /// Adds a resource that the server has from now on, with its other names. Rules may name it.
    pub fn add_resource<'a>(&self, plural: &str, aliases: impl IntoIterator<Item = &'a str>) {
        let aliases: Vec<&str> = aliases.into_iter().collect();
        self.shared.state.lock().resources.add(plural, &aliases);
    }

    pub(crate) fn heals(&self) -> u64 {
        self.shared.state.lock().heals
    }

    pub(crate) fn remember(&self, counts: Arc<RuleCounts>) -> FaultRule {
        self.shared.state.lock().remember(counts)
    }

    pub(crate) fn draw<R>(&self, draw: impl FnOnce(&mut Random) -> R) -> R {
        draw(&mut self.shared.state.lock().random)
    }

    pub(crate) fn record(&self, request: &ClientRequest, message: &str) {
        self.shared.record_on(request, message);
    }
}

/// Faults of the client itself, and the control of all faults.
impl Faults {
    /// Partitions the client of this name from the server until the returned guard is dropped.
    ///
    /// Its requests get no reply, also after the guard is dropped. Its open watches deliver nothing
    /// and continue afterwards without loss.
    pub fn partition(&self, client: &str, lost: Lost) -> Partition {
        let (fault, message) = match lost {
            Lost::Requests => (Fault::Hang, "partitioned: requests are lost"),
            Lost::Replies => (Fault::WithholdReply, "partitioned: replies are lost"),
        };
        let name: Arc<str> = client.into();
        let counts = Arc::new(RuleCounts::of_guard(format!("{message}, for {client}"), "request"));
        let rule = {
            let mut state = self.shared.state.lock();
            state.record_client(Arc::clone(&name), message.to_owned());
            state.remember(Arc::clone(&counts));
            let calls = Calls::any().by(client).always();
            state.rules.add_first(calls, fault, Arc::clone(&counts))
        };
        Partition::new(Arc::clone(&self.shared), name, rule, counts)
    }

    /// Plans a crash of the client of this name at one of its calls, or at an event of its watches.
    ///
    /// From the crash on, none of its requests is answered and none of its watches delivers an
    /// event. A client of this name that is made *after* the crash is a new process; the count of
    /// mutating calls continues with it.
    pub fn crash_at(&self, client: &str, point: CrashPoint) -> Crash {
        let mut state = self.shared.state.lock();
        let reached = state.plan_crash(client.into(), point);
        if point.counted() == Counted::Events {
            self.shared.crashes_at_events.store(true, Ordering::Relaxed);
        }
        Crash::new(reached)
    }

    /// Returns the number of mutating calls of the clients of this name.
    ///
    /// Every request with a mutating [`Verb`] counts: creates, updates, patches and deletes of any
    /// resource, posts of events included.
    pub fn mutations(&self, client: &str) -> u64 {
        self.shared.state.lock().mutations(client)
    }

    /// Removes every rule. Faults of open watches, partitions, counts and the trace stay.
    pub fn heal(&self) {
        self.shared.object_rules.clear();
        let mut state = self.shared.state.lock();
        state.rules.clear();
        state.heals += 1;
    }

    /// Checks that every rule has hit a request, that every planned crash has happened, and that
    /// every hold and every partition has affected a watch or a request.
    ///
    /// Rules removed by [`heal`](Self::heal) count, too. A test calls this at its end, so that a
    /// fault with a wrong selector does not go unnoticed.
    ///
    /// # Panics
    ///
    /// Panics with a list of the rules that hit no request and of the crashes that did not happen.
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// use homeostat_faults::{Calls, Faults};
    ///
    /// let faults = Faults::new();
    /// faults.lose_reply(Calls::create("pods").by("controler"));
    /// // 1 fault was never injected:
    /// //   reply lost, for create pods by controler (0 requests matched)
    /// faults.assert_all_hit();
    /// ```
    #[track_caller]
    pub fn assert_all_hit(&self) {
        let unhit = self.shared.state.lock().unhit();
        let faults = if unhit.len() == 1 { "fault was" } else { "faults were" };
        assert!(
            unhit.is_empty(),
            "{} {faults} never injected:\n  {}",
            unhit.len(),
            unhit.join("\n  ")
        );
    }

    /// Returns the record of all faults so far.
    pub fn trace(&self) -> Trace {
        self.shared.state.lock().trace.clone()
    }

    /// Also records every request, reply and event in the trace from now on, each with a hash of
    /// its bytes. Two runs are equal if their traces are.
    pub fn trace_traffic(&self) {
        self.shared.state.lock().traces_traffic = true;
    }

    /// Adds a message to the trace: of the test, or of a server about a fault of its own.
    /// [`Trace::faults`] counts it.
    pub fn note(&self, message: impl Into<String>) {
        self.shared.state.lock().record_client("".into(), message.into());
    }

    /// Returns the number of requests per verb and resource, with and without faults.
    ///
    /// Subresources are written as in RBAC: `pods/status`. A request for no resource is counted
    /// under its path. After 4,096 different pairs, all others are counted as `others`.
    pub fn requests(&self) -> BTreeMap<(Verb, String), u64> {
        self.shared.state.lock().requests.clone()
    }

    /// Returns the number of requests of the clients of this name per verb and resource. After 256
    /// different pairs, all others are counted as `others`.
    ///
    /// A client that has [crashed](Self::crash_at) is not counted any longer, only its successor:
    /// tasks that a test left running send requests that reach no server.
    pub fn requests_by(&self, client: &str) -> BTreeMap<(Verb, String), u64> {
        self.shared.state.lock().requests_by(client)
    }

    /// Returns the number of requests with `verb` on `resource`, for example `pods` or
    /// `pods/status`.
    pub fn count(&self, verb: Verb, resource: &str) -> u64 {
        let state = self.shared.state.lock();
        state.requests.get(&(verb, resource.to_owned())).copied().unwrap_or(0)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("trace", &self.trace().messages()).finish_non_exhaustive()
    }
}
