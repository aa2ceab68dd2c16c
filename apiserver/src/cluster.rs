//! Simulated cluster components: kubelet, garbage collector and namespace controller.
//!
//! An API server only stores objects. In a cluster the scheduler binds a pod, a kubelet starts it,
//! and the garbage collector deletes dependents. Neither the embedded server nor a bare
//! kube-apiserver runs these components. The actors in this module are ordinary API clients and use
//! no server internals, so the same test runs on both servers.
//!
//! | actor | stands in for |
//! |---|---|
//! | [`Kubelet`] | scheduler and kubelets: binds, starts, restarts, finishes and deletes pods |
//! | [`ClaimScheduler`] | scheduler, for pods with resource claims: allocates, reserves, binds |
//! | [`GarbageCollector`] | garbage collector: dependents, foreground and orphan deletion |
//! | [`DeploymentController`] | Deployment controller: `ReplicaSet`s, status |
//! | [`RoleAggregator`] | role aggregation: the rules of `admin`, `edit`, `view` and their like |
//! | [`VolumeProtection`] | PVC protection: removes the finalizer of unused deleted claims |
//! | [`NamespaceController`] | namespace controller: empties and finalizes deleted namespaces |
//!
//! Each actor is one task, owned by its handle. It uses no randomness: with a paused clock it sends
//! the same requests in the same order. Failed requests are retried without a limit, with a backoff
//! of 50 ms that doubles up to 5 s.
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use homeostat_apiserver::ApiServer;
//! use homeostat_apiserver::cluster::{GarbageCollector, Kubelet, NamespaceController};
//!
//! let server = ApiServer::builder().seed(1).build();
//! // The handles keep the actors running.
//! let _kubelet = Kubelet::start(server.client_as("kubelet"));
//! let _collector = GarbageCollector::start(server.client_as("garbage-collector"));
//! let _namespaces = NamespaceController::start(server.client_as("namespace-controller"));
//! # }
//! ```

mod actor;
mod claim_scheduler;
mod deployments;
mod feed;
mod garbage_collector;
mod kubelet;
mod metadata;
mod namespaces;
mod partial_object;
mod passes;
mod roles;
mod served_kinds;
mod server_clock;
mod volume_protection;
mod watch;
mod work_queue;

use std::time::Duration;

use kube_client::{Error, Result};
use tokio::time::timeout;

pub use self::claim_scheduler::ClaimScheduler;
pub use self::deployments::DeploymentController;
pub use self::garbage_collector::{GarbageCollector, GarbageCollectorBuilder};
pub use self::kubelet::{Kubelet, KubeletBuilder};
pub use self::namespaces::NamespaceController;
pub use self::roles::RoleAggregator;
pub use self::volume_protection::VolumeProtection;

/// Maximum number of requests that an actor has in flight: enough to keep a server on the same
/// machine busy, and few enough to leave capacity for the controller under test.
const MAX_IN_FLIGHT: usize = 16;

/// Time after which a request of an actor counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the response to a request, at most [`REQUEST_TIMEOUT`].
async fn with_timeout<T>(request: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(REQUEST_TIMEOUT, request).await.map_err(|late| Error::Service(late.into()))?
}

#[cfg(test)]
mod tests;
