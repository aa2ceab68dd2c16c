//! The other half of a cluster: what acts on objects when an API server only stores them.
//!
//! A pod runs because a scheduler binds it and a kubelet starts it; a dependent goes because the
//! garbage collector deletes it. Neither an API server in process nor a bare kube-apiserver has any of
//! these. The actors here are ordinary API clients and know no server's insides, so the same scenario
//! runs on both.
//!
//! | actor | stands in for |
//! |---|---|
//! | [`Kubelet`] | scheduler and kubelets: pods get a node, run, become ready, fail, are restarted, finish, and go |
//! | [`GarbageCollector`] | kube-controller-manager's: owners that are gone, foreground and orphan deletion |
//! | [`NamespaceController`] | kube-controller-manager's: namespaces that are deleted are emptied, and go |
//!
//! Each actor is one task, owned by its handle. It needs no lock and no chance: with the paused clock
//! the same requests come in the same order. What fails is tried again with back-off, for ever; a
//! cluster does not give up either.

mod actor;
mod feed;
mod garbage_collector;
mod kubelet;
mod namespaces;
mod object;
mod served;
mod work;

use std::time::Duration;

use kube_client::{Error, Result};
use tokio::time::timeout;

pub use self::{
    garbage_collector::{GarbageCollector, GarbageCollectorBuilder},
    kubelet::{Kubelet, KubeletBuilder},
    namespaces::NamespaceController,
};

/// How many requests an actor has in flight: enough to keep a server on the same machine busy, few
/// enough not to crowd out the controller under test.
const MAX_IN_FLIGHT: usize = 16;

/// How long one request of an actor may take until it counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The request's answer, or an error when it takes too long.
async fn in_time<T>(request: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(REQUEST_TIMEOUT, request).await.map_err(|late| Error::Service(late.into()))?
}

#[cfg(test)]
mod tests;
