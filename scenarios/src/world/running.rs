//! A running controller.

use std::time::Duration;

use anyhow::Context as _;
use homeostat::RunError;
use homeostat::kube_client::Client;
use homeostat_replicaset::{Controllers, Options};
use homeostat_testing::Simulation;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

use super::server::client;
use crate::PodOwner;

/// A running controller. `stop` ends it in order; dropping it kills it.
#[must_use = "a controller that is dropped is killed"]
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), RunError>>,
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

    pub(super) fn start(client: Client, options: Options) -> Self {
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

/// Returns the selection of the controller of one kind.
pub(super) fn controllers_of(kind: PodOwner) -> Controllers {
    Controllers {
        replica_set: kind == PodOwner::ReplicaSet,
        replication_controller: kind == PodOwner::ReplicationController,
    }
}
