//! Breaks the conversation between a client and a server, on command and in the open.
//!
//! It is a [`tower::Layer`] around any transport. So the same test breaks the server in this process, one behind a socket,
//! and a real kube-apiserver in the same way. What only a server can do is a method of
//! [`ApiServer`](crate::ApiServer): it takes the same [`Calls`], and goes into the same [`Trace`].
//!
//! ```text
//! Client ─▶ Faults ─▶ transport ─▶ server
//!             │ before sending: refuse, drop, lose, delay, hang; let somebody else write first
//!             │ after the commit: lose the reply, replace it, cut it, hold it back
//!             │ open watches: tear, expire, corrupt, delay, hold, inject a line
//!             └ the client itself: cut off, or crashed
//! ```
//!
//! [`Faults`] is a handle, and clones share everything. Clients have names, and [`Calls`] says which requests of whom a fault
//! hits. What is left to chance comes from a seed, so that the same calls meet the same faults; [`Faults::trace`] tells what was
//! done, when, and to whom.
//!
//! # Examples
//!
//! ```
//! # use homeostat_apiserver::faults::{Calls, Faults};
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_client::{Api, Client, api::DeleteParams};
//! # async fn run(client: Client) {
//! let faults = Faults::new();
//! let client = faults.client(client);
//! // The second delete of a pod is committed, and its sender never learns of it.
//! faults.lose_reply(Calls::delete("pods").nth(2));
//!
//! let pods = Api::<Pod>::default_namespaced(client);
//! pods.delete("a", &DeleteParams::default()).await.unwrap();
//! pods.delete("b", &DeleteParams::default()).await.unwrap_err();
//! assert_eq!(faults.trace().words(), ["delete pods default/b: reply lost (200 OK)"]);
//! # }
//! ```

mod call;
mod calls;
mod chaos;
mod commands;
mod crash;
mod refusal;
mod rules;
mod server;
mod service;
mod shadow;
mod state;
mod stream;
mod told;
mod trace;
mod watch;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use tower::{BoxError, Layer, service_fn};

pub(crate) use self::{call::Call, server::Order};
pub use self::{
    call::Verb,
    calls::Calls,
    chaos::{Chaos, Class},
    crash::{Crash, CrashPoint, Lost, Partition},
    refusal::Refusal,
    server::Trouble,
    service::FaultService,
    stream::{Break, Cut},
    trace::{Entry, Trace},
    watch::HeldWatches,
};
use self::{rules::Fault, shadow::Writer, state::State, stream::StreamFault};

/// The body of every response that has passed through [`Faults`].
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Breaks requests and watches of the clients that are built over it; clones share everything.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// Puts [`Faults`] around a transport; made by [`Faults::layer`] and [`Faults::layer_as`].
#[derive(Debug, Clone)]
pub struct FaultLayer {
    faults: Faults,
    client: Option<Arc<str>>,
}

struct Shared {
    /// Never held while a waker or another service is called.
    state: Mutex<State>,
    watches: watch::Watches,
}

// === impl Faults ===

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl Faults {
    /// A handle that breaks nothing yet.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// The same, with a seed for what is left to chance.
    pub fn seeded(seed: u64) -> Self {
        let state = Mutex::new(State::new(seed));
        Self { shared: Arc::new(Shared { state, watches: watch::Watches::default() }) }
    }

    /// The layer to put around a transport. Its requests come from whom they say they do: their `User-Agent`, up to
    /// the first slash.
    pub fn layer(&self) -> FaultLayer {
        FaultLayer { faults: self.clone(), client: None }
    }

    /// The layer to put around the transport of the client of this name. The requests carry it as their
    /// `User-Agent`, if they have no other.
    pub fn layer_as(&self, client: &str) -> FaultLayer {
        FaultLayer { client: Some(client.into()), ..self.layer() }
    }

    /// A client whose requests go through these faults and then through `client`.
    ///
    /// Needs to be called inside a tokio runtime, as [`Client::new`] does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use homeostat_apiserver::faults::Faults;
    /// # use kube_client::Client;
    /// # async fn run() -> Result<(), kube_client::Error> {
    /// let faults = Faults::new();
    /// let client = faults.client(Client::try_default().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self, client: Client) -> Client {
        Self::over(client, &self.layer())
    }

    /// The same, for a client with a name: [`Calls::by`] tells it from others.
    pub fn client_as(&self, name: &str, client: Client) -> Client {
        Self::over(client, &self.layer_as(name))
    }

    fn over(client: Client, layer: &FaultLayer) -> Client {
        let namespace = client.default_namespace().to_owned();
        let transport = service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(layer.layer(transport), namespace)
    }

    /// The request is carried out and answered, and the sender gets a connection reset instead.
    ///
    /// The ambiguous write: a create that lost its reply has made its object.
    pub fn lose_reply(&self, calls: Calls) {
        self.add(calls, Fault::LoseReply);
    }

    /// The request is carried out and answered, and the sender never hears of it.
    pub fn withhold_reply(&self, calls: Calls) {
        self.add(calls, Fault::WithholdReply);
    }

    /// The request is carried out, and the sender gets this answer instead of the true one.
    pub fn replace_reply(&self, calls: Calls, refusal: Refusal) {
        self.add(calls, Fault::ReplaceReply(refusal));
    }

    /// The request is carried out, and its answer breaks off after so many bytes.
    pub fn truncate_reply(&self, calls: Calls, bytes: u64) {
        self.add(calls, Fault::TruncateReply(bytes));
    }

    /// The request is carried out, and one byte of its answer is wrong, so that it is not JSON any more.
    pub fn corrupt_reply(&self, calls: Calls, at_byte: u64) {
        self.add(calls, Fault::CorruptReply(at_byte));
    }

    /// The answer takes `delay` longer to arrive.
    pub fn delay_reply(&self, calls: Calls, delay: Duration) {
        self.add(calls, Fault::DelayReply(delay));
    }

    /// The request takes `delay` longer to be sent.
    pub fn delay_request(&self, calls: Calls, delay: Duration) {
        self.add(calls, Fault::DelayRequest(delay));
    }

    /// The request is never sent, and the sender gets a connection refused.
    pub fn drop_request(&self, calls: Calls) {
        self.add(calls, Fault::DropRequest);
    }

    /// The request is never sent, and the sender gets a connection reset: the same error as that of
    /// [`lose_reply`](Self::lose_reply), so it cannot know.
    pub fn lose_request(&self, calls: Calls) {
        self.add(calls, Fault::LoseRequest);
    }

    /// The request is never sent, and the sender never hears of it.
    pub fn hang(&self, calls: Calls) {
        self.add(calls, Fault::Hang);
    }

    /// The request is never sent; the sender gets this answer.
    pub fn refuse(&self, calls: Calls, refusal: Refusal) {
        self.add(calls, Fault::Refuse(refusal));
    }

    /// Just before the request is sent, `writer` changes an annotation of the object that it is about: a conflict that
    /// is real, so that whoever reads again gets a newer version. Only for requests that name their object.
    pub fn write_first(&self, calls: Calls, writer: Client) {
        self.add(calls, Fault::Shadow(Writer::new(writer)));
    }

    /// Watches break, each at this point of its stream.
    ///
    /// With [`Calls::always`] each of them does: a watch that ends after every third event.
    pub fn break_watches(&self, calls: impl Into<Calls>, at: Cut, how: Break) {
        self.add(calls.into(), Fault::Stream(StreamFault::Break(at, how)));
    }

    /// One byte of each of these watches is wrong, so that its event is not JSON.
    pub fn corrupt_watches(&self, calls: impl Into<Calls>, at_byte: u64) {
        self.add(calls.into(), Fault::Stream(StreamFault::Corrupt(at_byte)));
    }

    /// These watches get no bookmarks.
    pub fn drop_bookmarks(&self, calls: impl Into<Calls>) {
        self.add(calls.into(), Fault::Stream(StreamFault::NoBookmarks));
    }

    /// The events of these watches come late, in their order: views of two resources that do not fit together.
    pub fn delay_events(&self, calls: impl Into<Calls>, delay: Duration) {
        self.add(calls.into(), Fault::Stream(StreamFault::Delay(delay)));
    }

    /// These watches begin so many revisions before the one that was asked for: events come twice.
    pub fn rewind_watches(&self, calls: impl Into<Calls>, revisions: u64) {
        self.add(calls.into(), Fault::Rewind(revisions));
    }

    /// Leaves what happens to these requests to chance; all of them, unless `calls` says how many.
    pub fn chaos(&self, calls: Calls, chaos: Chaos) {
        let calls = if calls.times.is_none() { calls.always() } else { calls };
        self.add(calls, Fault::Chaos(chaos));
    }

    /// Cuts the client of this name off until the returned guard is dropped. What it asked for meanwhile stays
    /// unanswered; its watches go on where they were.
    pub fn partition(&self, client: &str, lost: Lost) -> Partition {
        let (fault, words) = match lost {
            Lost::Requests => (Fault::Hang, "cut off: its requests vanish"),
            Lost::Replies => (Fault::WithholdReply, "cut off: what it is answered vanishes"),
        };
        let name: Arc<str> = client.into();
        let rule = {
            let mut state = self.shared.state.lock();
            state.record_words(Arc::clone(&name), words.to_owned());
            state.rules.add_first(Calls::any().by(client).always(), fault)
        };
        Partition::new(Arc::clone(&self.shared), name, rule)
    }

    /// Plans that the client of this name crashes at one of its mutating calls. From then on none of its calls is
    /// answered and none of its watches says anything; a client of that name that is made *afterwards* is another one,
    /// and its mutating calls are counted on.
    pub fn crash_at(&self, client: &str, point: CrashPoint) -> Crash {
        Crash::new(self.shared.state.lock().plan_crash(client.into(), point))
    }

    /// How many mutating calls the clients of this name have made.
    pub fn mutations(&self, client: &str) -> u64 {
        self.shared.state.lock().mutations(client)
    }

    /// Removes every rule. Open watches that were hit stay hit, partitions stay, and so do counts and trace.
    pub fn heal(&self) {
        let mut state = self.shared.state.lock();
        state.rules.clear();
        state.server_rules.clear();
    }

    /// What was done so far, one line per fault, in order.
    pub fn trace(&self) -> Trace {
        self.shared.state.lock().trace.clone()
    }

    /// From now on the trace tells the whole conversation: every request, every answer and every event that is
    /// delivered, each with a hash of its bytes. Two runs are the same if their traces are.
    pub fn tell_everything(&self) {
        self.shared.state.lock().tells_all = true;
    }

    /// Writes a line of your own into the trace.
    pub fn note(&self, words: impl Into<String>) {
        self.shared.state.lock().record_words("".into(), words.into());
    }

    /// How often each verb was asked for on each resource, faults or not. Subresources are written
    /// as in RBAC: `pods/status`; what is no resource by its path. After 4,096 different ones all others are counted
    /// together, as `others`.
    pub fn requests(&self) -> BTreeMap<(Verb, String), u64> {
        self.shared.state.lock().requests.clone()
    }

    /// How often `verb` was asked for on `resource`, for instance `pods` or `pods/status`.
    pub fn count(&self, verb: Verb, resource: &str) -> u64 {
        let state = self.shared.state.lock();
        state.requests.get(&(verb, resource.to_owned())).copied().unwrap_or(0)
    }

    fn add(&self, calls: Calls, fault: Fault) {
        self.shared.state.lock().rules.add(calls, fault);
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("trace", &self.trace().words()).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    /// Records a fault on something that is under way.
    fn record_on(&self, call: &Call, words: &str) {
        self.state.lock().record(call, None, words);
    }

    /// Records what was said.
    fn tell(&self, call: &Call, words: impl AsRef<str>) {
        self.state.lock().record_told(call, None, words.as_ref());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

// === impl FaultLayer ===

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultService::new(inner, Arc::clone(&self.faults.shared), self.client.clone())
    }
}

#[cfg(test)]
mod tests;
