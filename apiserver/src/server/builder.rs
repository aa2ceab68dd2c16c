//! The builder of a server.

mod plugins;
mod tokens;
mod transport;
mod webhook_services;

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;

use homeostat_core::WallClock;
use homeostat_faults::Faults;
use http::HeaderValue;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use tokio_util::task::TaskTracker;

use super::{ApiServer, Inner};
use crate::access::{TokenSettings, User};
use crate::api;
use crate::clock::Chance;
use crate::core::Core;
#[cfg(feature = "tls")]
use crate::credentials::Credentials;
use crate::kinds::{Kind, Kinds};
use crate::plugin::AdmissionPlugin;
use crate::state::State;
use crate::webhooks::Server;

/// Configures an [`ApiServer`].
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::{ApiServer, Kind};
///
/// let server = ApiServer::builder()
///     .seed(7)
///     .kind(Kind::custom("example.com", "v1", "Widget", "widgets"))
///     .build();
/// assert!(server.now().to_string().starts_with("2026-01-01T00:00"));
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    seed: Option<u64>,
    epoch: Option<Timestamp>,
    kinds: Vec<Kind>,
    definitions: Vec<CustomResourceDefinition>,
    /// The admission plugins that are on, although they are off by default.
    on: On,
    /// The admission plugins that are off.
    off: BTreeSet<AdmissionPlugin>,
    /// True to take the users of requests from their credentials.
    authentication: bool,
    /// True to check each request against roles and bindings.
    authorization: bool,
    /// True to refuse requests without credentials.
    refuses_anonymous: bool,
    /// The value of the header `Strict-Transport-Security` of each reply.
    transport_security: Option<HeaderValue>,
    /// The tokens of users.
    tokens: Vec<(String, User)>,
    /// The settings of the tokens of service accounts.
    account_tokens: TokenSettings,
    /// Certificates of authorities of clients, in PEM.
    #[cfg(feature = "tls")]
    client_authorities: String,
    /// The certificate that TLS shows, if the server does not make it.
    #[cfg(feature = "tls")]
    serving: Option<Credentials>,
    state: Option<State>,
    /// The servers behind the services that webhooks name.
    services: Vec<(ServiceName, Server)>,
}

/// The namespace, the name and the port of a service.
type ServiceName = (String, String, u16);

/// The start time of a server with a seed: 2026-01-01T00:00:00Z.
const SEEDED_EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Separates the random numbers of a server from those of the earlier one whose objects it has.
const RESUMED_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Separates the random numbers of the faults from those of names and uids.
const FAULTS_SEED: u64 = 0x6661_756c_7473_2121;

/// The plugins that are off by default, and are on here.
#[derive(Debug, Clone, Copy, Default)]
struct On {
    quotas: bool,
    service_accounts: bool,
}

// === impl Builder ===

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            seed: None,
            epoch: None,
            kinds: Vec::new(),
            definitions: Vec::new(),
            on: On::default(),
            off: AdmissionPlugin::ALL.into_iter().filter(|plugin| !plugin.is_default()).collect(),
            authentication: false,
            authorization: false,
            refuses_anonymous: false,
            transport_security: None,
            tokens: Vec::new(),
            account_tokens: TokenSettings::default(),
            #[cfg(feature = "tls")]
            client_authorities: String::new(),
            #[cfg(feature = "tls")]
            serving: None,
            state: None,
            services: Vec::new(),
        }
    }

    /// Sets the seed of uids, generated names, watch timeouts and the random choices of
    /// [faults](ApiServer::faults). Equal seeds give equal runs.
    ///
    /// A server with a seed also starts at a fixed time, the first second of 2026, unless
    /// [`epoch`](Self::epoch) is set. Without a seed, the seed is 0 and the start time is the real
    /// one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the wall time at which the server starts. From then on it advances with tokio's clock.
    ///
    /// The default is the time of [`build`](Self::build), so that clients with a real clock agree
    /// with it; with a [`seed`](Self::seed) it is the first second of 2026.
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Switches authentication on: a request over a socket needs a bearer token or a client
    /// certificate, which names its user. Every user may do everything, as with kube-apiserver's
    /// `--authorization-mode=AlwaysAllow`, unless [`authorization`](Self::authorization) is on.
    pub fn authentication(mut self) -> Self {
        self.authentication = true;
        self
    }

    /// Switches authorization on: the API server checks each request against the roles and bindings
    /// of `rbac.authorization.k8s.io`. It is off by default: the API server permits every request.
    ///
    /// The clients of [`ApiServer::client`] act for an administrator, and those of
    /// [`ApiServer::client_of`] for the user that is given. A request over a socket needs a bearer
    /// token; without a token it is anonymous. The server has all roles and bindings of a new
    /// cluster. Of those, `admin`, `edit` and `view` have no rules until a
    /// [`RoleAggregator`](crate::cluster::RoleAggregator) runs, as on the real server.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{ApiServer, User};
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_client::Api;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ApiServer::builder().authorization().build();
    /// let pods: Api<Pod> = Api::default_namespaced(server.client_of(User::new("jane")));
    /// let error = pods.get("web").await.unwrap_err();
    /// assert!(error.to_string().contains("User \"jane\" cannot get resource \"pods\""));
    /// # }
    /// ```
    pub fn authorization(mut self) -> Self {
        self.authorization = true;
        self
    }

    /// Refuses requests without credentials with 401, as kube-apiserver's `--anonymous-auth=false`
    /// does. It has an effect with [`authorization`](Self::authorization) only.
    pub fn without_anonymous(mut self) -> Self {
        self.refuses_anonymous = true;
        self
    }

    /// Adds a kind to those that the server serves.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Adds a custom kind with its schema. It is established from the start, so a test need not
    /// create the definition and wait for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    /// use serde_json::json;
    ///
    /// // kube's derive makes one: `Widget::crd()`.
    /// let definition = serde_json::from_value(json!({
    ///     "metadata": {"name": "widgets.example.com"},
    ///     "spec": {
    ///         "group": "example.com",
    ///         "scope": "Namespaced",
    ///         "names": {"kind": "Widget", "plural": "widgets"},
    ///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
    ///             "openAPIV3Schema": {"type": "object", "properties": {
    ///                 "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    ///             }},
    ///         }}],
    ///     },
    /// }))?;
    /// let server = ApiServer::builder().definition(definition).build();
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Starts the server with the objects of a state file, and keeps the file up to date: a write
    /// is in it before the client gets its reply, and survives the end of the process. A power
    /// failure may lose the last writes.
    ///
    /// Objects, their versions and definitions survive. The history does not: a watch from an
    /// earlier version gets 410. Tokens do not, either, except those of service accounts with a
    /// [`token_signing_key`](Self::token_signing_key). Uids and generated names differ from those
    /// of the earlier run, also with the same [`seed`](Self::seed). A
    /// [definition](Self::definition) of the builder that the file has, too, is not stored again.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{ApiServer, State};
    ///
    /// # let folder = std::env::temp_dir().join(format!("homeostat-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("state");
    /// let server = ApiServer::builder().state(State::open(&path)?).build();
    /// # drop(server);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Starts the server. It has the namespaces, priority classes and the Service `kubernetes` of a
    /// new cluster. If it [authenticates](Self::authentication), it also has the roles,
    /// registrations of groups, flow schemas and priority levels.
    ///
    /// # Panics
    ///
    /// Panics if a [definition](Self::definition) is invalid; the message is the API server's.
    pub fn build(mut self) -> ApiServer {
        let core = self.start_core();
        let rules = core.faults.rule_set();
        self.configure_admission(&core);
        self.configure_access(&core);
        if let Some(state) = self.state.take() {
            api::resume(&core, state);
        }
        api::populate(&core);
        for definition in &self.definitions {
            install(&core, definition);
        }
        let stop = core.stopped.clone().drop_guard();
        let (documents, tasks) = (Arc::default(), TaskTracker::new());
        let inner = Inner {
            core,
            documents,
            #[cfg(feature = "tls")]
            client_authorities: self.client_authorities,
            #[cfg(feature = "tls")]
            serving: self.serving,
            transport_security: self.transport_security,
            rules,
            tasks,
            _stop: stop,
        };
        ApiServer { inner: Arc::new(inner) }
    }

    /// Returns the state of a server that has no objects yet.
    fn start_core(&mut self) -> Arc<Core> {
        let epoch =
            self.epoch.unwrap_or_else(|| self.seed.map_or_else(Timestamp::now, |_| SEEDED_EPOCH));
        let seed = self.seed.unwrap_or(0);
        // Uses its own RNG, so that faults do not alter generated names.
        let faults = Faults::seeded(seed ^ FAULTS_SEED);
        // With the same numbers, new objects would have the uids of those in the file.
        let resumed = self.state.as_ref().map_or(0, State::revision);
        let chance = Chance::new(seed ^ resumed.wrapping_mul(RESUMED_SEED));
        let clock = WallClock::new(Some(epoch));
        let kinds = Kinds::new(take(&mut self.kinds)).without_plugins(take(&mut self.off));
        restrict_resources(&faults, &kinds);
        Core::new(kinds, clock, chance, faults)
    }

    fn configure_admission(&mut self, core: &Core) {
        for ((namespace, name, port), server) in take(&mut self.services) {
            core.webhook_client.directory.add((&namespace, &name, port), server);
        }
        if self.on.quotas {
            core.enforce_quotas();
        }
        if self.on.service_accounts {
            core.admit_service_accounts();
        }
    }

    fn configure_access(&mut self, core: &Core) {
        core.access.configure(take(&mut self.account_tokens));
        if self.authentication {
            core.access.authenticate();
        }
        if self.authorization {
            core.access.enforce();
        }
        for (token, user) in take(&mut self.tokens) {
            core.access.accept(token, user);
        }
        if self.refuses_anonymous {
            core.access.refuse_anonymous();
        }
    }
}

/// Limits the faults to the resources that the server serves, under all of their names.
fn restrict_resources(faults: &Faults, kinds: &Kinds) {
    let names: Vec<_> = kinds.rows().map(|kind| kind.other_names()).collect();
    let resources = kinds.rows().zip(&names);
    faults.restrict_resources(
        resources
            .map(|(kind, others)| (&*kind.plural, others.iter().map(String::as_str).collect())),
    );
}

/// Stores a definition of the builder.
fn install(core: &Core, definition: &CustomResourceDefinition) {
    let name = definition.metadata.name.as_deref().unwrap_or_default();
    let definition = serde_json::to_value(definition).expect("a definition is JSON");
    let fields = definition.as_object().cloned().unwrap_or_default();
    if core.get(core.kinds().definitions().resource, name).is_some() {
        // The state file has it.
        return;
    }
    if let Err(failure) = api::install_definition(core, fields) {
        panic!("{}", failure.message);
    }
}
