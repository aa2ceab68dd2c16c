//! [`WorkLimit`]: a bound on the reconciles of several controllers together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bound on the number of concurrent reconciles of all controllers that share it.
///
/// Each controller has workers of its own. Their sum may be more than the API server, or a rate
/// limit of an external service, should carry. A worker that takes a key waits here for its turn,
/// in order; the reconcile timeout counts from the start of the reconcile.
///
/// Clones share the bound.
///
/// # Examples
///
/// ```
/// use homeostat::{Controller, SharedIndexInformer, WorkLimit};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// # fn doc(maps: &SharedIndexInformer<ConfigMap>, secrets: &SharedIndexInformer<Secret>) {
/// let limit = WorkLimit::new(10);
/// let maps = Controller::builder("maps", maps).workers(8).work_limit(&limit);
/// let secrets = Controller::builder("secrets", secrets).workers(8).work_limit(&limit);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WorkLimit {
    permits: Arc<Semaphore>,
}

// === impl WorkLimit ===

impl WorkLimit {
    /// Returns a bound of `n` concurrent reconciles, at least 1.
    pub fn new(n: usize) -> Self {
        let n = n.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(n)) }
    }

    /// Waits for the right to reconcile, which lasts until the permit is dropped.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }
}
