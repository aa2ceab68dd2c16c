//! The pass over the changes of a resource in a namespace.

use std::convert::Infallible;
use std::sync::Arc;

use homeostat::{Action, Index, KeySource, Object, Reconciler, Request};
use homeostat_core::WallClock;

use crate::change::{Change, Changes};
use crate::monitor::Monitor;
use crate::plan::Recount;
use crate::quota::{CachedQuota, QuotaKey};
use crate::requested::Requested;

/// The pass over the changes of a resource in a namespace: it enqueues the quotas that count them.
pub(crate) struct ReplenishmentController {
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) changes: Changes,
    pub(crate) quotas: Index<CachedQuota, String>,
    pub(crate) requested: Requested<QuotaKey>,
    pub(crate) primary: KeySource<CachedQuota>,
    pub(crate) clock: WallClock,
}

// === impl ReplenishmentController ===

impl ReplenishmentController {
    /// Requests a recount. In a burst a quota waits in the queue for the period between two writes,
    /// and is not added again.
    fn enqueue(&self, key: QuotaKey, recount: Recount) {
        if self.requested.request(&key, recount) {
            self.primary.add(key);
        }
    }
}

impl Reconciler<Change> for ReplenishmentController {
    type Error = Infallible;

    async fn reconcile(&self, request: &Request<Change>) -> Result<Action, Infallible> {
        let change = request.key();
        let Some(begun) = self.changes.requested.begin(change, self.clock.now()) else {
            return Ok(Action::AwaitChange);
        };
        tracing::debug!(
            resource = %change.resource, namespace = %change.namespace,
            "QuotaMonitor process object"
        );
        for quota in &self.quotas.get(&*change.namespace) {
            if self.monitor.limits(quota, &change.resource) {
                self.enqueue(quota.key(), begun.recount());
            }
        }
        begun.done();
        Ok(Action::AwaitChange)
    }
}
