//! The builder of a server.

mod tokens;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use homeostat_core::WallClock;
use homeostat_faults::Faults;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
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

/// The port of a service that names none.
const HTTPS: u16 = 443;

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

    /// Switches quota admission on: the plugin `ResourceQuota` of kube-apiserver, which is off here
    /// by default.
    ///
    /// A write is charged to the quotas of its namespace before the object is stored, and refused
    /// with 403 if it does not fit. Nothing lowers a usage or counts a new quota: that is the work
    /// of a quota controller.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::builder().quota_admission().build();
    /// ```
    pub fn quota_admission(mut self) -> Self {
        self.on.quotas = true;
        self
    }

    /// Switches the admission of service accounts on: the plugin `ServiceAccount` of
    /// kube-apiserver, which is off here by default.
    ///
    /// A new pod runs as its service account, which is `default` if it names none, and mounts a
    /// token unless it or the account says otherwise. It is refused with 403 if the account is
    /// missing: creating `default` in each namespace is the work of a controller, or of the test.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::builder().service_account_admission().build();
    /// ```
    pub fn service_account_admission(mut self) -> Self {
        self.on.service_accounts = true;
        self
    }

    /// Switches an admission plugin off, as kube-apiserver's `--disable-admission-plugins` does.
    /// Can be called several times.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{AdmissionPlugin, ApiServer};
    ///
    /// // Objects can be created in namespaces that do not exist.
    /// let plugin = AdmissionPlugin::NamespaceLifecycle;
    /// let server = ApiServer::builder().without_plugin(plugin).build();
    /// ```
    pub fn without_plugin(mut self, plugin: AdmissionPlugin) -> Self {
        self.off.insert(plugin);
        self
    }

    /// Switches an admission plugin on that is off by default, as kube-apiserver's
    /// `--enable-admission-plugins` does. Can be called several times.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{AdmissionPlugin, ApiServer};
    ///
    /// // A new object gets its namespace, too.
    /// let plugin = AdmissionPlugin::NamespaceAutoProvision;
    /// let server = ApiServer::builder().with_plugin(plugin).build();
    /// ```
    pub fn with_plugin(mut self, plugin: AdmissionPlugin) -> Self {
        self.off.remove(&plugin);
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

    /// Sends the webhooks of a service to this address. The port is that of the service.
    ///
    /// There is no network of services here: without this, a webhook whose configuration names a
    /// service fails as one that cannot be reached. The server at the address needs a certificate
    /// for `NAME.NAMESPACE.svc`, as in a cluster, and is called over a socket, in real time. A
    /// webhook with a `url` needs none of this.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let address = ([127, 0, 0, 1], 9443).into();
    /// let server = ApiServer::builder().webhook_service("shop", "checks", 443, address).build();
    /// ```
    pub fn webhook_service(
        self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        port: u16,
        address: SocketAddr,
    ) -> Self {
        self.with_service((namespace.into(), name.into(), port), Server::Address(address))
    }

    /// Answers the webhooks of a service, at port 443, by a function in this process. It gets the
    /// path of the webhook and the `AdmissionReview`, and returns the review with its response.
    ///
    /// Nothing waits for a socket, so a test can keep tokio's clock paused.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    /// use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_client::Api;
    /// use kube_client::api::PostParams;
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let refuse = |_path: &str, mut review: Value| {
    ///     let uid = review["request"]["uid"].take();
    ///     review["response"] = json!({"uid": uid, "allowed": false, "status": {"message": "no"}});
    ///     review
    /// };
    /// let server = ApiServer::builder().webhook_function("shop", "checks", refuse).build();
    /// let configuration = serde_json::from_value(json!({
    ///     "metadata": {"name": "checks"},
    ///     "webhooks": [{
    ///         "name": "maps.example.com",
    ///         "sideEffects": "None",
    ///         "admissionReviewVersions": ["v1"],
    ///         "clientConfig": {"service": {"namespace": "shop", "name": "checks"}},
    ///         "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
    ///             "resources": ["configmaps"]}],
    ///     }],
    /// }))?;
    /// let configurations = Api::<ValidatingWebhookConfiguration>::all(server.client());
    /// configurations.create(&PostParams::default(), &configuration).await?;
    ///
    /// let maps = Api::<ConfigMap>::default_namespaced(server.client());
    /// let map = serde_json::from_value(json!({"metadata": {"name": "m"}}))?;
    /// let error = maps.create(&PostParams::default(), &map).await.unwrap_err();
    /// let denied = "admission webhook \"maps.example.com\" denied the request: no";
    /// assert!(error.to_string().contains(denied));
    /// # Ok(())
    /// # }
    /// ```
    pub fn webhook_function(
        self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        function: impl Fn(&str, Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let service = (namespace.into(), name.into(), HTTPS);
        self.with_service(service, Server::Function(Arc::new(function)))
    }

    fn with_service(mut self, service: ServiceName, server: Server) -> Self {
        self.services.push((service, server));
        self
    }

    /// Trusts certificates of clients that other authorities signed, in PEM: the common name is the
    /// user, the organizations are the groups. By default [`ApiServer::listen_tls`] trusts only its
    /// own authority. Invalid text fails `listen_tls`. Can be called several times.
    #[cfg(feature = "tls")]
    pub fn client_authority(mut self, pem: impl AsRef<str>) -> Self {
        self.client_authorities.push_str(pem.as_ref());
        self.client_authorities.push('\n');
        self
    }

    /// Shows this certificate to the clients of [`ApiServer::listen_tls`], in place of one that the
    /// server makes at the start: a certificate, with those of its issuers, and its key, in PEM.
    /// Invalid text fails `listen_tls`.
    #[cfg(feature = "tls")]
    pub fn serving_certificate(
        mut self,
        certificate: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        self.serving = Some(Credentials { certificate: certificate.into(), key: key.into() });
        self
    }

    /// Starts the server. It has the namespaces, priority classes and the Service `kubernetes` of a
    /// new cluster.
    ///
    /// # Panics
    ///
    /// Panics if a [definition](Self::definition) is invalid; the message is the API server's.
    pub fn build(self) -> ApiServer {
        let epoch =
            self.epoch.unwrap_or_else(|| self.seed.map_or_else(Timestamp::now, |_| SEEDED_EPOCH));
        let seed = self.seed.unwrap_or(0);
        // Uses its own RNG, so that faults do not alter generated names.
        let faults = Faults::seeded(seed ^ FAULTS_SEED);
        // With the same numbers, new objects would have the uids of those in the file.
        let resumed = self.state.as_ref().map_or(0, State::revision);
        let chance = Chance::new(seed ^ resumed.wrapping_mul(RESUMED_SEED));
        let clock = WallClock::new(Some(epoch));
        let kinds = Kinds::new(self.kinds).without_plugins(self.off);
        let names: Vec<_> = kinds.rows().map(|kind| kind.other_names()).collect();
        let resources = kinds.rows().zip(&names);
        faults
            .restrict_resources(resources.map(|(kind, others)| {
                (&*kind.plural, others.iter().map(String::as_str).collect())
            }));
        let rules = faults.rule_set();
        let core = Core::new(kinds, clock, chance, faults);
        for ((namespace, name, port), server) in self.services {
            core.webhook_client.directory.add((&namespace, &name, port), server);
        }
        if self.on.quotas {
            core.enforce_quotas();
        }
        if self.on.service_accounts {
            core.admit_service_accounts();
        }
        core.access.configure(self.account_tokens);
        if self.authentication {
            core.access.authenticate();
        }
        if self.authorization {
            core.access.enforce();
        }
        for (token, user) in self.tokens {
            core.access.accept(token, user);
        }
        if self.refuses_anonymous {
            core.access.refuse_anonymous();
        }
        if let Some(state) = self.state {
            api::resume(&core, state);
        }
        api::populate(&core);
        for definition in self.definitions {
            install(&core, &definition);
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
            rules,
            tasks,
            _stop: stop,
        };
        ApiServer { inner: Arc::new(inner) }
    }
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
