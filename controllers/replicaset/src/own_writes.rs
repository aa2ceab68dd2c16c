//! The controller's own writes: do the caches show them, and what to do until they do.
//!
//! Versions are checked first. A pass over a cache that is older than the controller's own writes
//! would count too few pods, report that, and adopt pods again. The expectations are checked
//! second. They also know writes whose reply was lost, and the cache may never show those because
//! the server did not carry them out. Upstream waits for five minutes and then trusts the cache,
//! but a cache that is five minutes late must not be trusted. Here the controller lists the
//! server's pods after five seconds.

use std::collections::HashSet;
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::owner::controller_of;
use homeostat::{
    ConsistencyStore, GroupResource, Index, Object, ObjectKey, ObjectMeta, Readiness, Uid,
    group_resource, outcome,
};
use k8s_openapi::api::core::v1::Pod as PodKind;
use tokio::time::Instant;

use crate::caches::OwnerName;
use crate::kind::WorkloadKind;
use crate::pod::Pod;
use crate::requests::{Requests, Stored};
use crate::workload::Workload;

/// The writes for all objects of one kind that the caches do not show yet.
pub(crate) struct OwnWrites<K: WorkloadKind> {
    pub(crate) expectations: UidTrackingExpectations<ObjectKey<K>, Uid>,
    pub(crate) consistency: ConsistencyStore<ObjectKey<K>, Uid>,
    pub(crate) requests: Requests,
    pub(crate) owned: Index<Pod, OwnerName>,
}

/// One pass's permission to create and delete pods.
pub(crate) enum Gate {
    Open,
    /// The cache does not show the last writes yet. Check again after this time.
    Closed(Duration),
}

// === impl OwnWrites ===

impl<K: WorkloadKind> OwnWrites<K> {
    /// Returns the time to wait for caches that show every version that was written, or `None` if
    /// they do.
    pub(crate) async fn time_until_visible(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        owner: &OwnerName,
    ) -> Option<Duration> {
        let readiness = self.consistency.ready(key, &set.uid());
        match &readiness {
            Readiness::Ready => None,
            Readiness::Waiting { .. } => Some(time_left(&readiness)),
            Readiness::Overdue { missing } => {
                let set_is_late =
                    missing.as_ref().is_some_and(|it| it.resource == group_resource::<K>());
                let is_current = !set_is_late || self.set_is_current(key, set).await;
                let is_current = is_current && self.pods_are_current(key, set, owner).await;
                self.compared(key, set, is_current)
            }
        }
    }

    /// Returns the permission to create and delete pods in a pass over `set`.
    pub(crate) async fn gate(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        owner: &OwnerName,
    ) -> Gate {
        let uid = set.uid();
        if !self.are_awaited(key, &uid) {
            self.consistency.clear(key, Some(&uid));
            return Gate::Open;
        }
        let wait = match self.consistency.unseen(key, &uid) {
            Readiness::Overdue { .. } => {
                self.compared(key, set, self.pods_are_current(key, set, owner).await)
            }
            waiting => Some(time_left(&waiting)),
        };
        wait.map_or(Gate::Open, Gate::Closed)
    }

    /// Records a write: the caches must show this version before the next pass.
    pub(crate) fn wrote(
        &self,
        (key, uid): (&ObjectKey<K>, &Uid),
        resource: &GroupResource,
        stored: &Stored,
    ) {
        self.wrote_version((key, uid), resource, &stored.resource_version);
    }

    /// Records a write that the server has stored as this version.
    pub(crate) fn wrote_version(
        &self,
        (key, uid): (&ObjectKey<K>, &Uid),
        resource: &GroupResource,
        version: &str,
    ) {
        self.consistency.wrote_at(key, uid, resource, version);
    }

    /// Returns the time after which the controller asks the server for writes that the cache does
    /// not show, or `None` if there are none.
    pub(crate) fn next_check(&self, key: &ObjectKey<K>, uid: &Uid) -> Option<Duration> {
        let is_awaited = self.are_awaited(key, uid);
        is_awaited.then(|| time_left(&self.consistency.unseen(key, uid)))
    }

    /// Forgets an object that is deleted.
    pub(crate) fn forget(&self, key: &ObjectKey<K>) {
        self.expectations.delete(key);
        self.consistency.clear(key, None);
    }

    /// Handles the comparison with the server. If the caches show what the server has, no write is
    /// awaited any longer. Otherwise returns the time until the next comparison.
    fn compared(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        is_current: bool,
    ) -> Option<Duration> {
        if !is_current {
            return Some(self.consistency.still_late(key, &set.uid()));
        }
        self.expectations.delete(key);
        self.consistency.clear(key, Some(&set.uid()));
        None
    }

    fn are_awaited(&self, key: &ObjectKey<K>, uid: &Uid) -> bool {
        let outstanding = self.expectations.outstanding(key, uid);
        outstanding.is_some_and(|it| it.creations > 0 || it.deletions > 0)
    }

    /// Returns true if the server has the same version of the object as the cache.
    async fn set_is_current(&self, key: &ObjectKey<K>, set: &Workload<K>) -> bool {
        match self.requests.workload::<K>(set.namespace(), set.name()).await {
            Ok(live) => live.metadata.resource_version == set.metadata.resource_version,
            Err(error) => {
                let error = outcome::message(&error);
                tracing::warn!(%key, %error, "failed to read the {}", K::KIND);
                false
            }
        }
    }

    /// Returns true if the server has the same pods as the cache: every awaited write is then
    /// either in the cache or was never carried out.
    async fn pods_are_current(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        owner: &OwnerName,
    ) -> bool {
        let Ok(selector) = &set.spec.selector else { return false };
        let live = match self.requests.list_pods(set.namespace(), &selector.to_string()).await {
            Ok(live) => live,
            Err(error) => {
                let error = outcome::message(&error);
                tracing::warn!(%key, %error, "failed to list the pods of the {}", K::KIND);
                return false;
            }
        };
        let counted_uid = |pod: &Pod| {
            let selected = set.selects(pod.metadata.labels.as_ref());
            (pod.is_active() && selected && pod.is_controlled_by(set.uid_str())).then(|| pod.uid())
        };
        let is_own = |pod: &ObjectMeta| {
            controller_of(pod).is_some_and(|controller| controller.uid == set.uid_str())
        };
        if live.iter().any(|pod| pod.as_ref().is_err_and(is_own)) {
            return false; // It may count. The cache will show it as a pod that does not decode.
        }
        let live: HashSet<Uid> = live.iter().flatten().filter_map(counted_uid).collect();
        let cached = self.owned.get(owner);
        let cached: HashSet<Uid> = cached.iter().filter_map(|pod| counted_uid(pod)).collect();
        let (live_count, cached_count, is_current) = (live.len(), cached.len(), live == cached);
        tracing::info!(
            %key,
            live_count,
            cached_count,
            is_current,
            "compared the cached pods with the server's, because own writes are overdue"
        );
        is_current
    }
}

/// Returns the resource of the pods that the controller writes.
pub(crate) fn pods_resource() -> GroupResource {
    group_resource::<PodKind>()
}

/// Returns the time to wait before the controller asks the server.
fn time_left(readiness: &Readiness) -> Duration {
    match readiness {
        Readiness::Waiting { until, .. } => until.saturating_duration_since(Instant::now()),
        Readiness::Ready | Readiness::Overdue { .. } => Duration::ZERO,
    }
}
