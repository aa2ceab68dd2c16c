//! The cluster of a scenario with Foos.

use std::time::Duration;

use homeostat::crd;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::ApiResource;
use homeostat_apiserver::cluster::{DeploymentController, GarbageCollector, Kubelet};
use homeostat_faults::Faults;
use homeostat_sample::{Foo, Options};
use homeostat_testing::RequestedPermissions;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use crate::world::{Running, Server, Target};

/// The time that the server has to serve the definition.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// An API server with everything below a Foo, and faults between it and the controller.
///
/// Dropping it ends everything that it started.
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct World {
    server: Server,
    user: Client,
    controller: Client,
    faults: Faults,
    /// The permissions that the clients of [`service_account`](Self::service_account) requested.
    requested: RequestedPermissions,
    _below: Below,
    /// Started with the definition: it waits until each kind that it follows is listed.
    garbage_collector: Option<GarbageCollector>,
}

/// The controllers and the kubelet that bring a Deployment to its available replicas.
#[derive(Debug)]
#[must_use = "dropping it stops everything"]
pub struct Below {
    _deployments: DeploymentController,
    _sets: Running,
    _kubelet: Kubelet,
}

// === impl World ===

impl World {
    /// Starts a server and everything below a Foo. Foos are not defined yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be started or reached.
    pub async fn start(target: Target) -> anyhow::Result<Self> {
        let server = Server::start(target).await?;
        let (user, faults) = (server.client()?.build(), Faults::new());
        let controller = server.client()?.layer(&faults.layer_as("controller")).build();
        let below = Below::start(&user);
        Ok(Self {
            server,
            user,
            controller,
            faults,
            requested: RequestedPermissions::default(),
            _below: below,
            garbage_collector: None,
        })
    }

    /// Installs the definition of Foo, and lets the garbage collector follow Foos.
    ///
    /// # Errors
    ///
    /// Returns an error if the definition is not served in time.
    pub async fn install(&mut self) -> anyhow::Result<()> {
        self.install_definition(&Foo::crd()).await
    }

    /// Installs another definition of Foo, and lets the garbage collector follow Foos.
    ///
    /// # Errors
    ///
    /// Returns an error if the definition is not served in time.
    pub async fn install_definition(
        &mut self,
        definition: &CustomResourceDefinition,
    ) -> anyhow::Result<()> {
        crd::install(&self.user, definition, INSTALL_TIMEOUT).await?;
        self.garbage_collector = Some(garbage_collector(&self.user));
        Ok(())
    }

    /// Returns a client without faults.
    pub fn user(&self) -> &Client {
        &self.user
    }

    /// Returns the faults between the controller and the server.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Starts a sample controller, with empty caches.
    pub fn run_controller(&self) -> Running {
        Self::run_controller_as(self.controller.clone())
    }

    /// Starts a sample controller with this client, and with empty caches.
    pub fn run_controller_as(client: Client) -> Running {
        Running::spawn(|stop| async move {
            homeostat_sample::run(client, &Options::default(), stop.cancelled()).await
        })
    }

    /// Creates the objects of `manifests`, and returns a client with the permissions of the service
    /// account of this namespace and name, behind the world's faults.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server.
    pub async fn service_account(
        &self,
        manifests: &str,
        account: (&str, &str),
    ) -> anyhow::Result<Client> {
        let builder = self.server.service_account(&self.user, manifests, account).await?;
        let builder = builder.layer(&self.faults.layer_as("controller"));
        Ok(builder.layer(&self.requested.layer()).build())
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

// === impl Below ===

impl Below {
    /// Starts the controllers and the kubelet below a Deployment.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(client: &Client) -> Self {
        let sets = client.clone();
        Self {
            _deployments: DeploymentController::start(client.clone()),
            _sets: Running::spawn(|stop| {
                homeostat_replicaset::run(
                    sets,
                    homeostat_replicaset::Options::default(),
                    async move { stop.cancelled().await },
                )
            }),
            _kubelet: Kubelet::start(client.clone()),
        }
    }
}

/// Starts a garbage collector for Foos and everything below them. The definition of Foo is
/// installed.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn garbage_collector(client: &Client) -> GarbageCollector {
    GarbageCollector::builder(client.clone())
        .kind(ApiResource::erase::<Foo>(&()))
        .kind(ApiResource::erase::<Deployment>(&()))
        .kind(ApiResource::erase::<ReplicaSet>(&()))
        .kind(ApiResource::erase::<Pod>(&()))
        .start()
}
