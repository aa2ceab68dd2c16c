//! The small cluster of a scenario.

mod manifests;
mod running;
mod server;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::ApiResource;
use homeostat_apiserver::cluster::{GarbageCollector, GarbageCollectorBuilder, Kubelet};
use homeostat_faults::Faults;
use homeostat_replicaset::Options;
use homeostat_testing::RequestedPermissions;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::resource::v1::ResourceClaim;

pub(crate) use self::manifests::create_all;
pub use self::running::Running;
use self::running::controllers_of;
pub(crate) use self::server::Server;
pub use self::server::Target;
use crate::{PodOwner, ReplicaSets};

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
