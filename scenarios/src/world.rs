//! The small cluster of a scenario.

use std::time::Duration;

use anyhow::{Context as _, bail};
use homeostat::RunError;
use homeostat::client::{self, ClientBuilder, NoServer};
use homeostat::kube_client::api::ApiResource;
use homeostat::kube_client::config::AuthInfo;
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::cluster::{GarbageCollector, GarbageCollectorBuilder, Kubelet};
use homeostat_apiserver::{ApiServer, Listener, User};
use homeostat_faults::Faults;
use homeostat_replicaset::{Controllers, Options};
use homeostat_testing::control_plane::ControlPlane;
use homeostat_testing::{RequestedPermissions, Simulation};
use http::Request;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

use crate::{PodOwner, ReplicaSets};

/// The API server of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The embedded server, called in process, in virtual time.
    InProcess,
    /// The embedded server, over a socket on the loopback interface.
    Socket,
    /// A real etcd and kube-apiserver, started for this world.
    ControlPlane,
}

/// An API server with a kubelet and a garbage collector, and faults between it and the controller.
///
/// Dropping it ends everything that it started.
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct World {
    server: Server,
    /// The client of the user and of the cluster's helpers, without faults.
    user: Client,
    /// The client of the controller, with faults.
    controller: Client,
    faults: Faults,
    /// The permissions that the clients of [`service_account`](Self::service_account) requested.
    requested: RequestedPermissions,
    /// The kind of [`workload`](Self::workload)s, and of `run_controller`.
    pod_owner: PodOwner,
    /// Kept for their `Drop`; `None` if the scenario has stopped them.
    kubelet: Option<Kubelet>,
    garbage_collector: Option<GarbageCollector>,
}

/// The API server of a world.
#[derive(Debug)]
pub(crate) enum Server {
    InProcess(ApiServer),
    Socket(ApiServer, Listener),
    ControlPlane(Box<ControlPlane>),
}

/// A running controller. `stop` ends it in order; dropping it kills it.
#[must_use = "a controller that is dropped is killed"]
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), RunError>>,
}

// === impl World ===

impl World {
    /// Starts a server, its kubelet and its garbage collector.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be started or reached.
    pub async fn start(target: Target) -> anyhow::Result<Self> {
        let server = Server::start(target).await?;
        let faults = Faults::new();
        let (user, controller) = (server.client()?.build(), server.client()?);
        // The faults are below the retries and the timeouts of the client.
        let controller = controller.layer(&faults.layer()).build();
        Ok(Self::new(server, user, controller, faults))
    }

    fn new(server: Server, user: Client, controller: Client, faults: Faults) -> Self {
        let kubelet = Kubelet::start(user.clone());
        let garbage_collector = [
            ApiResource::erase::<Pod>(&()),
            ApiResource::erase::<ReplicaSet>(&()),
            ApiResource::erase::<ReplicationController>(&()),
            ApiResource::erase::<ResourceClaim>(&()),
        ]
        .into_iter()
        .fold(GarbageCollector::builder(user.clone()), GarbageCollectorBuilder::kind)
        .start();
        Self {
            server,
            user,
            controller,
            faults,
            requested: RequestedPermissions::default(),
            pod_owner: PodOwner::default(),
            kubelet: Some(kubelet),
            garbage_collector: Some(garbage_collector),
        }
    }

    /// Sets the kind of the world's owners of pods (default `ReplicaSet`).
    #[must_use]
    pub fn with_pod_owner(mut self, kind: PodOwner) -> Self {
        self.pod_owner = kind;
        self
    }

    /// Stops the kubelet and the garbage collector: the scenario sets the states of pods, and
    /// references to owners that do not exist stay.
    pub(crate) fn stop_helpers(&mut self) {
        self.kubelet = None;
        self.garbage_collector = None;
    }

    /// Returns the kind of the world's owners of pods.
    pub fn pod_owner(&self) -> PodOwner {
        self.pod_owner
    }

    /// Returns the owner of pods `name`. Nothing is created yet.
    pub fn workload(&self, name: &str) -> ReplicaSets {
        ReplicaSets::of_kind(self.pod_owner, &self.user, name)
    }

    /// Returns a client without faults.
    pub fn user(&self) -> &Client {
        &self.user
    }

    /// Returns the faults between the controller and the server.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Starts the controller of the world's owners of pods, with empty caches.
    pub fn run_controller(&self) -> Running {
        self.run_controller_with(|_| ())
    }

    /// As [`run_controller`](Self::run_controller), with options that `change` sets.
    pub(crate) fn run_controller_with(&self, change: impl FnOnce(&mut Options)) -> Running {
        let mut options = self.options();
        change(&mut options);
        Running::start(self.controller.clone(), options)
    }

    /// As [`run_controller`](Self::run_controller), with this client.
    pub(crate) fn run_controller_as(&self, client: Client) -> Running {
        Running::start(client, self.options())
    }

    /// Returns the options of the controller of the world's owners of pods.
    fn options(&self) -> Options {
        Options { controllers: controllers_of(self.pod_owner), ..Options::default() }
    }

    /// Starts a `ResourceClaim` controller, with empty caches.
    pub fn run_claim_controller(&self) -> Running {
        Running::of_claims(self.controller.clone(), homeostat_resourceclaim::Options::default())
    }

    /// Starts a `ResourceQuota` controller, with empty caches.
    pub fn run_quota_controller(&self, options: homeostat_resourcequota::Options) -> Running {
        Running::of_quotas(self.controller.clone(), options)
    }

    /// Creates the objects of `manifests`, and returns a client with the permissions of the service
    /// account `name` in `kube-system`, behind the world's faults.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server.
    pub async fn service_account(&self, manifests: &str, name: &str) -> anyhow::Result<Client> {
        let account = ("kube-system", name);
        let builder = self.server.service_account(&self.user, manifests, account).await?;
        Ok(builder.layer(&self.faults.layer()).layer(&self.requested.layer()).build())
    }

    /// Returns the permissions that the clients of [`service_account`](Self::service_account)
    /// requested.
    pub fn requested(&self) -> &RequestedPermissions {
        &self.requested
    }

    /// Restarts the API server; stored objects stay.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not become ready again.
    pub async fn restart_api_server(&mut self) -> anyhow::Result<()> {
        self.server.restart().await
    }
}

/// Returns the selection of the controller of one kind.
fn controllers_of(kind: PodOwner) -> Controllers {
    Controllers {
        replica_set: kind == PodOwner::ReplicaSet,
        replication_controller: kind == PodOwner::ReplicationController,
    }
}

/// Creates the objects of `manifests`.
///
/// # Errors
///
/// Returns an error of the API server.
pub(crate) async fn create_all(user: &Client, manifests: &str) -> anyhow::Result<()> {
    for manifest in manifests.split("\n---\n") {
        let request = Request::post(manifest_path(manifest)?);
        let request = request.header("content-type", "application/yaml");
        user.request_text(request.body(manifest.as_bytes().to_vec())?).await?;
    }
    Ok(())
}

/// Returns the path of the collection to which a manifest is posted.
fn manifest_path(manifest: &str) -> anyhow::Result<String> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let kinds = [
        ("Namespace", "/api/v1", "namespaces"),
        ("Deployment", "/apis/apps/v1", "deployments"),
        ("ServiceAccount", "/api/v1", "serviceaccounts"),
        ("ClusterRoleBinding", RBAC, "clusterrolebindings"),
        ("ClusterRole", RBAC, "clusterroles"),
        ("RoleBinding", RBAC, "rolebindings"),
        ("Role", RBAC, "roles"),
    ];
    let has_kind = |kind: &str| manifest.lines().any(|line| line == format!("kind: {kind}"));
    let found = kinds.into_iter().find(|(kind, ..)| has_kind(kind));
    let (_, version, plural) = found.context("the manifest has a known kind")?;
    // Of its metadata: that of a subject is indented further.
    let namespace = manifest.lines().find_map(|line| line.strip_prefix("  namespace: "));
    Ok(match namespace {
        Some(namespace) => format!("{version}/namespaces/{namespace}/{plural}"),
        None => format!("{version}/{plural}"),
    })
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(target: Target) -> anyhow::Result<Self> {
        Ok(match target {
            Target::InProcess => Self::InProcess(embedded()),
            Target::Socket => {
                let server = embedded();
                let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
                Self::Socket(server, listener)
            }
            Target::ControlPlane => Self::ControlPlane(Box::new(ControlPlane::start().await?)),
        })
    }

    /// Creates the objects of `manifests`, and returns the builder of a client that may do what the
    /// service account of this namespace and name may do.
    pub(crate) async fn service_account(
        &self,
        user: &Client,
        manifests: &str,
        (namespace, name): (&str, &str),
    ) -> anyhow::Result<ClientBuilder<client::Server>> {
        create_all(user, manifests).await?;
        if let Self::InProcess(server) = self {
            return Ok(client().service(server.service_of(User::service_account(namespace, name))));
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                             "spec": {"expirationSeconds": 3600}});
        let answer: Value =
            user.request(Request::post(path).body(serde_json::to_vec(&request)?)?).await?;
        let token = answer["status"]["token"].as_str().context("the answer has a token")?;
        let config = with_token(self.config()?, token.to_owned());
        client().config(config).context("no client for the service account")
    }

    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        match self {
            Self::InProcess(server) | Self::Socket(server, _) => server.restart(),
            Self::ControlPlane(plane) => plane.restart_api_server().await?,
        }
        Ok(())
    }

    pub(crate) fn client(&self) -> anyhow::Result<ClientBuilder<client::Server>> {
        if let Self::InProcess(server) = self {
            return Ok(client().service(server.service()));
        }
        client().config(self.config()?).context("no client for the scenario's server")
    }

    /// Returns the configuration of an administrator's client.
    fn config(&self) -> anyhow::Result<Config> {
        Ok(match self {
            Self::InProcess(_) => bail!("a server in process has no address"),
            Self::Socket(server, listener) => {
                let token = server.token_of(User::admin());
                with_token(Config::new(listener.url().parse()?), token)
            }
            Self::ControlPlane(plane) => plane.config(),
        })
    }
}

/// Returns an embedded server that checks permissions and quotas, as the real one does.
fn embedded() -> ApiServer {
    ApiServer::builder().authorization().quota_admission().build()
}

/// Returns the configuration with a token as its only credentials.
fn with_token(mut config: Config, token: String) -> Config {
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    config
}

/// Returns the builder of a deployed controller's client, with a higher rate limit: a scenario
/// measures the machinery, not its budget.
fn client() -> ClientBuilder<NoServer> {
    client::builder().qps(1000.0).burst(2000)
}

// === impl Running ===

impl Running {
    /// Starts a `ReplicaSet` controller named `controller` in a simulation, with empty caches.
    pub fn in_simulation(simulation: &Simulation) -> Self {
        Self::of_kind_in_simulation(PodOwner::ReplicaSet, simulation)
    }

    /// Starts the controller of this kind, named `controller`, in a simulation, with empty caches.
    pub fn of_kind_in_simulation(kind: PodOwner, simulation: &Simulation) -> Self {
        let (epoch, seed) = (Some(simulation.server().now()), Some(simulation.seed()));
        let controllers = controllers_of(kind);
        let options = Options { controllers, epoch, seed, ..Options::default() };
        let server = simulation.server();
        let service = server.faults().layer_as("controller").layer(server.service());
        Self::start(client().service(service).build(), options)
    }

    /// Starts a `ResourceClaim` controller with this client, and with empty caches.
    pub fn of_claims(client: Client, options: homeostat_resourceclaim::Options) -> Self {
        Self::spawn(|stop| {
            homeostat_resourceclaim::run(client, options, async move { stop.cancelled().await })
        })
    }

    /// Starts a `ResourceQuota` controller with this client, and with empty caches.
    pub fn of_quotas(client: Client, options: homeostat_resourcequota::Options) -> Self {
        Self::spawn(|stop| {
            homeostat_resourcequota::run(client, options, async move { stop.cancelled().await })
        })
    }

    fn start(client: Client, options: Options) -> Self {
        Self::spawn(|stop| {
            homeostat_replicaset::run(client, options, async move { stop.cancelled().await })
        })
    }

    /// Starts the controller that `controller` runs until its token is cancelled.
    pub(crate) fn spawn<R>(controller: impl FnOnce(CancellationToken) -> R) -> Self
    where
        R: Future<Output = Result<(), RunError>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(controller(stop.clone()));
        Self { stop, tasks }
    }

    /// Stops the controller and waits until all of its tasks have ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the controller failed, or does not end within ten seconds. Draining
    /// takes a few seconds at most.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.join_next())
            .await
            .context("the controller did not end within 10 s after stop")?;
        ended.context("the controller has no task")???;
        Ok(())
    }
}
