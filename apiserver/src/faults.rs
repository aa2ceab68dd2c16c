//! Breaks the conversation between a client and a server, on command and in the open.
//!
//! The faults live in the client: a [`tower::Layer`] around any transport. So the same test breaks
//! the server in this process, one behind a socket, and a real kube-apiserver in the same way.
//!
//! ```text
//! Client ─▶ Faults ─▶ transport ─▶ server
//!             │ before sending: refuse, drop, hang
//!             │ after the commit: lose the reply, hold it back
//!             └ open watches: tear, expire, inject a line, hold
//! ```
//!
//! [`Faults`] is a handle: give each client one of its own to tell them apart, or share one. Which
//! requests a fault hits is said by [`Calls`]. Nothing is random, so that the same calls meet the same
//! faults; [`Faults::trace`] tells in words what was done.
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
//! assert_eq!(faults.trace(), ["delete pods default/b: reply lost (200 OK)"]);
//! # }
//! ```

mod call;
mod refusal;
mod rules;
mod service;
mod watch;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use tower::{BoxError, Layer, service_fn};

pub use self::{
    call::{Calls, Verb},
    refusal::Refusal,
    service::FaultService,
    watch::HeldWatches,
};
use self::{
    rules::{Fault, Rules},
    watch::{Command, Watches},
};

/// The body of every response that has passed through [`Faults`].
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Breaks requests and watches of the clients that are built over it; clones share everything.
#[derive(Clone, Default)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// Puts [`Faults`] around a transport; made by [`Faults::layer`].
#[derive(Debug, Clone)]
pub struct FaultLayer {
    faults: Faults,
}

#[derive(Default)]
struct Shared {
    /// Never held while a waker or another service is called.
    rules: Mutex<Rules>,
    watches: Watches,
}

// === impl Faults ===

impl Faults {
    /// A handle that breaks nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The layer to put around a transport.
    ///
    /// # Examples
    ///
    /// Around the whole stack that kube builds for a real server:
    ///
    /// ```no_run
    /// # use homeostat_apiserver::faults::Faults;
    /// # use kube_client::{Config, client::ClientBuilder};
    /// # fn run(config: Config) -> Result<(), Box<dyn std::error::Error>> {
    /// let faults = Faults::new();
    /// let client = ClientBuilder::try_from(config)?.with_layer(&faults.layer()).build();
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer(&self) -> FaultLayer {
        FaultLayer { faults: self.clone() }
    }

    /// A client whose requests go through these faults and then through `client`.
    ///
    /// Needs to be called inside a tokio runtime, as [`Client::new`] does.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let transport = service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer().layer(transport), namespace)
    }

    /// The request is carried out and answered, and the sender gets a connection reset instead.
    ///
    /// The ambiguous write: a create that lost its reply has made its object.
    pub fn lose_reply(&self, calls: Calls) {
        self.add(calls, Fault::LoseReply);
    }

    /// The answer takes `delay` longer to arrive.
    pub fn delay_reply(&self, calls: Calls, delay: Duration) {
        self.add(calls, Fault::DelayReply(delay));
    }

    /// The request is never sent, and the sender gets a connection refused.
    pub fn drop_request(&self, calls: Calls) {
        self.add(calls, Fault::DropRequest);
    }

    /// The request is never sent, and the sender never hears of it.
    pub fn hang(&self, calls: Calls) {
        self.add(calls, Fault::Hang);
    }

    /// The request is never sent; the sender gets this answer.
    pub fn refuse(&self, calls: Calls, refusal: Refusal) {
        self.add(calls, Fault::Refuse(refusal));
    }

    /// Removes every rule. Open watches that were hit stay hit, and counts and trace stay.
    pub fn heal(&self) {
        self.shared.rules.lock().clear();
    }

    /// Every open watch of `resource` breaks in the middle of a line, as if the connection were
    /// reset. `"*"` means all resources. Returns how many were open.
    pub fn tear_watches(&self, resource: &str) -> usize {
        self.command(resource, &Command::Reset, "reset in the middle of a line")
    }

    /// Every open watch of `resource` ends cleanly, as the server ends it after its time limit.
    pub fn end_watches(&self, resource: &str) -> usize {
        self.command(resource, &Command::End, "ended")
    }

    /// Every open watch of `resource` gets an event `ERROR` with a 410 Status, and then ends: its
    /// resource version is too old.
    pub fn expire_watches(&self, resource: &str) -> usize {
        self.refuse_watches(resource, &Refusal::expired())
    }

    /// Every open watch of `resource` gets an event `ERROR` with this Status, and then ends.
    pub fn refuse_watches(&self, resource: &str, refusal: &Refusal) -> usize {
        let line = Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", refusal.status()));
        self.command(resource, &Command::Last(line), &format!("told {refusal}"))
    }

    /// Every open watch of `resource` gets this line between two events, and goes on. The line need
    /// not be an event, nor JSON.
    pub fn inject_line(&self, resource: &str, line: &str) -> usize {
        let bytes = Bytes::from(format!("{line}\n"));
        self.command(resource, &Command::Line(bytes), &format!("told {line}"))
    }

    /// Holds back what watches of `resource` would deliver, those that open later included, until the
    /// returned guard is dropped. Nothing is lost: an informer that is behind.
    pub fn hold_watches(&self, resource: &str) -> HeldWatches {
        self.shared.rules.lock().record(format!("watch {resource}: held"));
        watch::hold(&self.shared, resource)
    }

    /// How many watches of `resource` (`"*"`: of any) are open.
    pub fn open_watches(&self, resource: &str) -> usize {
        self.shared.watches.count(resource)
    }

    /// What was done so far, one line per fault, in order.
    pub fn trace(&self) -> Vec<String> {
        self.shared.rules.lock().trace().to_vec()
    }

    /// How often each verb was asked for on each resource, faults or not. Subresources are written
    /// as in RBAC: `pods/status`; what is no resource by its path.
    pub fn requests(&self) -> BTreeMap<(Verb, String), u64> {
        self.shared.rules.lock().requests().clone()
    }

    /// How often `verb` was asked for on `resource`, for instance `pods` or `pods/status`.
    pub fn count(&self, verb: Verb, resource: &str) -> u64 {
        self.shared.rules.lock().requests().get(&(verb, resource.to_owned())).copied().unwrap_or(0)
    }

    fn add(&self, calls: Calls, fault: Fault) {
        self.shared.rules.lock().add(calls, fault);
    }

    fn command(&self, resource: &str, command: &Command, words: &str) -> usize {
        let hit = self.shared.watches.command(resource, command);
        let mut rules = self.shared.rules.lock();
        for watched in &hit {
            rules.record(format!("watch {watched}: {words}"));
        }
        hit.len()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("trace", &self.trace()).finish_non_exhaustive()
    }
}

// === impl FaultLayer ===

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultService::new(inner, Arc::clone(&self.faults.shared))
    }
}

#[cfg(test)]
mod tests;
