//! A small cluster that a scenario plays in.

use std::time::Duration;

use anyhow::Context as _;
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_apiserver::control_plane::ControlPlane;
use homeostat_apiserver::faults::Faults;
use homeostat_apiserver::{ApiServer, Listener};
use homeostat_replicaset::Options;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Which API server a world stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The embedded server, called in process. Runs in virtual time.
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
    /// What the user and the cluster's helpers speak through: no faults.
    user: Client,
    /// What the controller speaks through.
    controller: Client,
    faults: Faults,
    /// Held for their `Drop`.
    _kubelet: Kubelet,
    _garbage_collector: GarbageCollector,
}

#[derive(Debug)]
enum Server {
    InProcess(ApiServer),
    Socket(ApiServer, Listener),
    ControlPlane(Box<ControlPlane>),
}

/// A controller that runs until it is stopped (in good order) or dropped (as if it were killed).
#[must_use = "a controller that is dropped is killed"]
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), homeostat_replicaset::RunError>>,
}

// === impl World ===

impl World {
    /// Starts a server, its kubelet and its garbage collector.
    ///
    /// # Errors
    ///
    /// When the server cannot be started or reached.
    pub async fn start(target: Target) -> anyhow::Result<Self> {
        let server = Server::start(target).await?;
        let user = server.client()?;
        let faults = Faults::new();
        let controller = server.client()?;
        Ok(Self::new(server, user, faults.client(controller), faults))
    }

    fn new(server: Server, user: Client, controller: Client, faults: Faults) -> Self {
        let kubelet = Kubelet::start(user.clone());
        let garbage_collector = GarbageCollector::start(user.clone());
        Self {
            server,
            user,
            controller,
            faults,
            _kubelet: kubelet,
            _garbage_collector: garbage_collector,
        }
    }

    /// A client that no fault touches.
    pub fn user(&self) -> &Client {
        &self.user
    }

    /// The faults between the controller and the server.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Starts a `ReplicaSet` controller, with empty caches.
    pub fn run_controller(&self) -> Running {
        Running::start(self.controller.clone(), Options::default())
    }

    /// Restarts the API server; what it stored stays.
    ///
    /// # Errors
    ///
    /// When it does not come back.
    pub async fn restart_api_server(&mut self) -> anyhow::Result<()> {
        match &mut self.server {
            Server::InProcess(server) | Server::Socket(server, _) => server.restart(),
            Server::ControlPlane(plane) => plane.restart_api_server().await?,
        }
        Ok(())
    }
}

// === impl Server ===

impl Server {
    async fn start(target: Target) -> anyhow::Result<Self> {
        Ok(match target {
            Target::InProcess => Self::InProcess(ApiServer::new()),
            Target::Socket => {
                let server = ApiServer::new();
                let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
                Self::Socket(server, listener)
            }
            Target::ControlPlane => Self::ControlPlane(Box::new(ControlPlane::start().await?)),
        })
    }

    fn client(&self) -> anyhow::Result<Client> {
        let config = match self {
            Self::InProcess(server) => return Ok(server.client()),
            Self::Socket(_, listener) => Config::new(listener.url().parse()?),
            Self::ControlPlane(plane) => plane.config(),
        };
        // Faster than a deployed controller: a scenario waits for the machinery, not for its budget.
        let builder = homeostat::client::builder().qps(1000.0).burst(2000).config(config);
        Ok(builder.context("no client for the scenario's server")?.build())
    }
}

// === impl Running ===

impl Running {
    pub(crate) fn start(client: Client, options: Options) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(homeostat_replicaset::run(client, options, async move {
            stopped.cancelled().await;
        }));
        Self { stop, tasks }
    }

    /// Asks the controller to stop, and waits until all of it has.
    ///
    /// # Errors
    ///
    /// When it had failed, or does not end within ten seconds: draining takes a few at most.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.join_next())
            .await
            .context("the controller did not end within 10 s of being asked to")?;
        ended.context("the controller has no task")???;
        Ok(())
    }
}
