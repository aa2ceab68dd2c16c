//! A cluster in virtual time. The same seed gives the same run.

use std::future::Future;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_faults::Faults;
use kube_client::Client;
use parking_lot::Mutex;
use tower::Layer as _;

use crate::pace;
use crate::retries::ProductionRetries;

/// An embedded API server, a kubelet, a garbage collector and a user.
///
/// The garbage collector follows pods and `ReplicaSets`; a controller whose children are of other
/// kinds needs [`collect_every_kind`](Self::collect_every_kind).
///
/// Faults select clients by name: `kubelet`, `garbage-collector`, `user`, and the names that the
/// test gives to [`client_as`](Self::client_as). Dropping the simulation ends everything that it
/// started.
///
/// # Examples
///
/// ```
/// use homeostat_testing::{Simulation, in_virtual_time};
///
/// let version = in_virtual_time(async {
///     let simulation = Simulation::start(7);
///     simulation.user().apiserver_version().await
/// });
/// assert_eq!(version?.minor, "37");
/// # Ok::<_, kube_client::Error>(())
/// ```
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct Simulation {
    seed: u64,
    server: ApiServer,
    user: Client,
    /// Kept for their `Drop`.
    _kubelet: Kubelet,
    garbage_collector: Mutex<GarbageCollector>,
}

/// Runs a future on its own runtime with a paused clock. Tasks that the future spawned end with it.
///
/// # Panics
///
/// Panics within another runtime, such as that of `#[tokio::test]`, or if the runtime cannot be
/// built.
pub fn in_virtual_time<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("the runtime starts");
    runtime.block_on(future)
}

/// Runs a future on its own runtime with two threads and the real clock.
///
/// # Panics
///
/// Panics within another runtime, or if the runtime cannot be built.
pub fn in_real_time<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("the runtime starts");
    let output = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(5));
    output
}

// === impl Simulation ===

impl Simulation {
    /// Starts the cluster without a controller.
    pub fn start(seed: u64) -> Self {
        Self::around(seed, ApiServer::builder().seed(seed).build())
    }

    /// Starts the cluster around a server, for example one with custom kinds.
    pub fn around(seed: u64, server: ApiServer) -> Self {
        let kubelet = Kubelet::start(server.client_as("kubelet"));
        let garbage_collector = GarbageCollector::start(server.client_as("garbage-collector"));
        let user = server.client_as("user");
        let garbage_collector = Mutex::new(garbage_collector);
        Self { seed, server, user, _kubelet: kubelet, garbage_collector }
    }

    /// Makes the garbage collector follow every kind that the server serves now, custom ones
    /// included. Until then it collects the pods and `ReplicaSets` of deleted owners alone.
    ///
    /// # Errors
    ///
    /// Fails if the kinds cannot be read.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the garbage collector goes on as before.
    pub async fn collect_every_kind(&self) -> Result<(), kube_client::Error> {
        let client = self.server.client_as("garbage-collector");
        let builder = GarbageCollector::builder(client).every_kind().await?;
        // The earlier one ends when it is dropped.
        *self.garbage_collector.lock() = builder.start();
        Ok(())
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the server, for example to compact or restart it.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the faults between the server and all clients, with their trace.
    pub fn faults(&self) -> Faults {
        self.server.faults()
    }

    /// Returns the client named `user`.
    pub fn user(&self) -> &Client {
        &self.user
    }

    /// Returns a client with a name that retries as the client of a deployed controller does.
    ///
    /// `kube_client::Client::try_from(config)` repeats every request that fails with 429, 503 or
    /// 504, creates included, up to 15 times. These retries duplicate a create whose reply the
    /// server replaced by a 504. [`ApiServer::client_as`] returns a client without them.
    ///
    /// Requests take no virtual time, up to 5,000 at one instant. Each one after that takes 10 ms,
    /// until the client pauses for a second, so that the clock also moves in a hot loop.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str) -> Client {
        let service = self.faults().layer_as(name).layer(self.server.service());
        let service = ProductionRetries::layer().layer(service);
        Client::new(pace::layer().layer(service), "default")
    }
}
