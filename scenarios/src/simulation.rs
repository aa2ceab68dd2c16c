//! A cluster in virtual time whose every run is the same for the same seed.

use std::future::Future;
use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_apiserver::faults::Faults;
use homeostat_replicaset::Options;

use crate::Running;

/// An embedded API server, a kubelet, a garbage collector and a user, each with a name that faults know them by:
/// `kubelet`, `garbage-collector`, `user`; and `controller`, as often as it is started.
///
/// Dropping it ends everything that it started.
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct Simulation {
    seed: u64,
    server: ApiServer,
    user: Client,
    /// Held for their `Drop`.
    _kubelet: Kubelet,
    _garbage_collector: GarbageCollector,
}

/// Runs a future to its end on a runtime of its own, whose clock waits for nobody.
///
/// # Panics
///
/// When the runtime cannot be built.
pub fn in_virtual_time<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a thread is at hand");
    runtime.block_on(future)
}

/// Runs a future to its end on a runtime of its own, with two threads and a clock that nobody stops.
///
/// # Panics
///
/// When the runtime cannot be built.
pub fn in_real_time<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("threads are at hand");
    let output = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(5));
    output
}

// === impl Simulation ===

impl Simulation {
    /// Starts the cluster; no controller runs yet.
    pub fn start(seed: u64) -> Self {
        let server = ApiServer::builder().seed(seed).build();
        let kubelet = Kubelet::start(server.client_as("kubelet"));
        let garbage_collector = GarbageCollector::start(server.client_as("garbage-collector"));
        let user = server.client_as("user");
        Self { seed, server, user, _kubelet: kubelet, _garbage_collector: garbage_collector }
    }

    /// The server, to be compacted, restarted, and so on.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The faults between the server and everybody, and their trace.
    pub fn faults(&self) -> Faults {
        self.server.faults()
    }

    /// The client named `user`.
    pub fn user(&self) -> &Client {
        &self.user
    }

    /// Starts a `ReplicaSet` controller, with empty caches.
    pub fn run_controller(&self) -> Running {
        let options =
            Options { epoch: Some(self.server.now()), seed: Some(self.seed), ..Options::default() };
        Running::start(self.server.client_as("controller"), options)
    }
}
