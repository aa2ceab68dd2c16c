//! Whether the caches show what was written, and what to do until they do.
//!
//! Versions come first: a pass over a cache that is older than what it wrote itself counts too few pods, reports that, and
//! adopts what it has adopted. Then the expectations, which also know of writes whose reply was lost: those may never be
//! shown, because they were never carried out. Upstream waits for five minutes and then trusts the cache; but a cache that is
//! five minutes late must not be trusted at all. So, long before that, the server is asked.

use std::collections::HashSet;
use std::time::Duration;

use homeostat::{GroupResource, Object, ObjectKey, Readiness, Uid, group_resource};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use k8s_openapi::api::core::v1::Pod as PodKind;
use tokio::time::Instant;

use crate::outcome;
use crate::pod::Pod;
use crate::reconcile::{OwnerName, ReplicaSetController};
use crate::replica_set::ReplicaSet;
use crate::requests::Stored;

/// Whether pods may be made and deleted in this pass.
pub(crate) enum Gate {
    Open,
    /// The cache has yet to show our last writes; look again after this time.
    Closed(Duration),
}

// === impl ReplicaSetController ===

impl ReplicaSetController {
    /// How long to wait, at most, for caches that show every version that was written; `None` when they do.
    pub(crate) async fn await_own_writes(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        owner: &OwnerName,
    ) -> Option<Duration> {
        let readiness = self.consistency.ready(key, &set.uid());
        match &readiness {
            Readiness::Ready => None,
            Readiness::Waiting { .. } => Some(time_left(&readiness)),
            Readiness::Overdue { missing } => {
                let set_is_late = missing.as_ref().is_some_and(|it| it.resource == sets_resource());
                let is_current = !set_is_late || self.set_is_current(key, set).await;
                self.compared(key, set, is_current && self.pods_are_current(key, set, owner).await)
            }
        }
    }

    /// The server was asked. If the caches show what it has, nothing is awaited any longer; if not, returns when to ask
    /// again.
    fn compared(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        is_current: bool,
    ) -> Option<Duration> {
        if !is_current {
            return Some(self.consistency.still_late(key, &set.uid()));
        }
        self.expectations.delete(key);
        self.consistency.clear(key, Some(&set.uid()));
        None
    }

    pub(crate) fn wrote(
        &self,
        (key, uid): (&ObjectKey<Kind>, &Uid),
        what: &GroupResource,
        stored: &Stored,
    ) {
        self.consistency.wrote_at(key, uid, what, &stored.resource_version);
    }

    /// How long until the server is asked what became of writes that the cache has yet to show; `None` if there are none.
    pub(crate) fn settling(&self, key: &ObjectKey<Kind>, uid: &Uid) -> Option<Duration> {
        let awaits = self.awaits_writes(key, uid);
        awaits.then(|| time_left(&self.consistency.unseen(key, uid)))
    }

    fn awaits_writes(&self, key: &ObjectKey<Kind>, uid: &Uid) -> bool {
        let outstanding = self.expectations.outstanding(key, uid);
        outstanding.is_some_and(|it| it.creations > 0 || it.deletions > 0)
    }

    pub(crate) async fn gate(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        owner: &OwnerName,
    ) -> Gate {
        let uid = set.uid();
        if !self.awaits_writes(key, &uid) {
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

    /// Whether the server has the very `ReplicaSet` that the cache shows.
    async fn set_is_current(&self, key: &ObjectKey<Kind>, set: &ReplicaSet) -> bool {
        match self.requests.replica_set(set.namespace(), set.name()).await {
            Ok(live) => live.metadata.resource_version == set.metadata.resource_version,
            Err(error) => {
                tracing::warn!(%key, "failed to read the ReplicaSet: {}", outcome::words(&error));
                false
            }
        }
    }

    /// Whether the server has exactly the pods that the cache shows: then every write that is still awaited was either
    /// shown, or never carried out.
    async fn pods_are_current(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        owner: &OwnerName,
    ) -> bool {
        let Ok(selector) = &set.spec.selector else { return false };
        let live = match self.requests.list_pods(set.namespace(), &selector.to_string()).await {
            Ok(live) => live,
            Err(error) => {
                tracing::warn!(%key, "failed to list the pods of the ReplicaSet: {}", outcome::words(&error));
                return false;
            }
        };
        let counts = |pod: &Pod| {
            let selected = selector.matches(pod.metadata.labels.as_ref());
            (pod.is_active() && selected && pod.is_controlled_by(set.uid_str())).then(|| pod.uid())
        };
        let live: HashSet<Uid> = live.iter().filter_map(counts).collect();
        let cached = self.caches.owned.get(owner);
        let cached: HashSet<Uid> = cached.iter().filter_map(|pod| counts(pod)).collect();
        let (live_count, cached_count) = (live.len(), cached.len());
        tracing::info!(%key, live_count, cached_count, same = live == cached, "asked the server what became of writes that the cache does not show");
        live == cached
    }
}

/// What is written, as versions are kept by.
pub(crate) fn pods_resource() -> GroupResource {
    group_resource::<PodKind>()
}

/// The resource whose status is written.
pub(crate) fn sets_resource() -> GroupResource {
    group_resource::<Kind>()
}

/// How long to wait at most before the server is asked.
fn time_left(readiness: &Readiness) -> Duration {
    match readiness {
        Readiness::Waiting { until, .. } => until.saturating_duration_since(Instant::now()),
        Readiness::Ready | Readiness::Overdue { .. } => Duration::ZERO,
    }
}
