//! One pass over one owner of pods: read the caches, decide, act, write the status.

use std::sync::Arc;
use std::time::Duration;

use homeostat::informer::Snapshot;
use homeostat::owner::{ClaimErrors, ControllerRefs, RefManager};
use homeostat::{
    Action, Object, ObjectKey, Reconciler, Request, group_resource, kube_client, outcome,
};
use homeostat_core::WallClock;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;

use crate::caches::{Caches, OwnerName, owner_name};
use crate::events::Events;
use crate::kind::WorkloadKind;
use crate::left_statuses::LeftStatuses;
use crate::own_writes::{Gate, OwnWrites, pods_resource};
use crate::plan::{Plan, Rules, plan};
use crate::pod::Pod;
use crate::ranking::age_ratios;
use crate::requests::{Requests, Stored};
use crate::scale::{Scale, ScaleError, Scaled};
use crate::status::{Observed, blocked_status, is_current, next_availability, next_status};
use crate::workload::Workload;

/// The controller of one kind: its caches, its connection, and its own writes that the caches do
/// not show yet.
pub(crate) struct ReplicaController<K: WorkloadKind> {
    pub(crate) requests: Requests,
    pub(crate) events: Events,
    pub(crate) caches: Caches<K>,
    pub(crate) own_writes: OwnWrites<K>,
    pub(crate) left_statuses: LeftStatuses<K>,
    pub(crate) rules: Rules,
    pub(crate) report_terminating: bool,
    /// True if a pass waits for caches that are older than the controller's own writes.
    pub(crate) compare_versions: bool,
    pub(crate) clock: WallClock,
    pub(crate) age_ratio: metrics::Histogram,
    /// Counts the passes that a pod that does not decode has stopped.
    pub(crate) blocked: metrics::Counter,
}

/// The error of a pass. The pass is retried after a back-off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// Some pods could not be adopted or released, so that the number of pods is unknown.
    #[error(transparent)]
    Claim(#[from] ClaimErrors),
    /// Pods could not be created or deleted.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The status could not be written.
    #[error("failed to write the status: {}", outcome::message(.0))]
    Status(#[source] kube_client::Error),
}

// === impl ReplicaController ===

impl<K: WorkloadKind> Reconciler<Workload<K>> for ReplicaController<K> {
    type Error = ReconcileError;

    async fn reconcile(&self, request: &Request<Workload<K>>) -> Result<Action, ReconcileError> {
        let key = request.key();
        let Some(set) = self.caches.sets.get(key) else {
            self.absent(key);
            return Ok(Action::AwaitChange);
        };
        let owner = owner_name(set.metadata.namespace.as_deref(), set.name(), set.uid_str());
        if self.compare_versions
            && let Some(wait) = self.own_writes.time_until_visible(key, &set, &owner).await
        {
            return Ok(Action::Postpone(wait));
        }
        let Some(refs) = usable(key, &set) else { return Ok(Action::AwaitChange) };
        if self.caches.owned.has_opaque(&owner) {
            // The pod exists. A count without it would never stop creating pods.
            self.report_blocked(key, &set, &owner).await.map_err(ReconcileError::Status)?;
            return Ok(Action::AwaitChange);
        }
        // Before the pods are read: the cache is at least as new as the expectations then.
        let gate = self.own_writes.gate(key, &set, &owner).await;
        self.pass(request, &set, &refs, (gate, owner)).await
    }
}

impl<K: WorkloadKind> ReplicaController<K> {
    async fn pass(
        &self,
        request: &Request<Workload<K>>,
        set: &Arc<Workload<K>>,
        refs: &ControllerRefs,
        (gate, owner): (Gate, OwnerName),
    ) -> Result<Action, ReconcileError> {
        let key = request.key();
        let (candidates, terminating) = self.candidates(set, &owner);
        let active = self.claim(key, set, candidates).await?;

        let scaled = match gate {
            Gate::Open if !set.is_leaving() => self.scale(key, set, refs, &active).await,
            Gate::Open | Gate::Closed(_) => Scaled::from(Ok(())),
        };
        // Also if the rest of this pass fails: the requests of this pass are awaited from now on.
        let next_check = match gate {
            Gate::Closed(wait) => Some(wait),
            Gate::Open => self.own_writes.next_check(key, &set.uid()),
        };
        let now = self.clock.now();
        let mut status = self.status(set, &active, &scaled, (terminating, now));
        if let Gate::Closed(_) = &gate {
            // This pass tried nothing, so the condition of the last failure stays.
            status.conditions.clone_from(&set.status.conditions);
        }
        // The next pass follows at once, or as soon as the caches show the created pods.
        let is_followed = scaled.created > 0 || request.is_requested_again();
        let is_complete = matches!(gate, Gate::Open) && scaled.result.is_ok();
        let may_leave = self.compare_versions && is_complete && is_followed;
        self.report(key, set, &status, may_leave).await.map_err(ReconcileError::Status)?;
        scaled.result?;

        let available = next_availability(set, &status, &active, now, || self.clock.now());
        let next = available.into_iter().chain(next_check).min();
        Ok(action(&gate, next))
    }

    /// Returns the active pods that may belong to `set`, and the number of its pods that are being
    /// deleted, if that is reported.
    ///
    /// It returns no snapshot of a cache: one that lives makes the writer copy what it changes.
    fn candidates(&self, set: &Workload<K>, owner: &OwnerName) -> (Vec<Arc<Pod>>, Option<usize>) {
        let pods = self.caches.owned.get(owner);
        let orphans = self.caches.orphans.get(set.namespace());
        let active = pods.iter().chain(&orphans).filter(|pod| pod.is_active());
        (active.cloned().collect(), self.report_terminating.then(|| terminating(set, &pods)))
    }

    /// Adopts and releases pods of `candidates`. Returns those that belong to `set`.
    async fn claim(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        candidates: Vec<Arc<Pod>>,
    ) -> Result<Vec<Arc<Pod>>, ClaimErrors> {
        let uid = set.uid();
        let Some(refs) = RefManager::new(self.requests.client(), set) else {
            return Ok(Vec::new());
        };
        let mut refs = refs.on_patched(|pod| {
            let version = pod.resource_version.as_deref().unwrap_or_default();
            self.own_writes.wrote_version((key, &uid), &pods_resource(), version);
        });
        refs.claim(candidates, |pod| set.selects(pod.metadata.labels.as_ref())).await
    }

    /// Reports pods that do not decode: in a metric, and when they change in the log, an event and
    /// the status.
    async fn report_blocked(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        owner: &OwnerName,
    ) -> Result<(), kube_client::Error> {
        self.blocked.increment(1);
        let pods = self.caches.owned.keys(owner);
        let pods = pods.iter().filter(|pod| self.caches.pods.opaque(*pod).is_some());
        let pods: Vec<&str> = pods.map(ObjectKey::name).collect();
        let status = blocked_status(set, &pods, self.clock.now());
        if status.conditions == set.status.conditions {
            return Ok(());
        }
        tracing::warn!(%key, ?pods, "pods do not decode, not creating or deleting pods");
        self.events.undecodable_pods(set, &pods);
        self.write_status(key, set, &status).await
    }

    /// Handles a key whose object is deleted or does not decode.
    fn absent(&self, key: &ObjectKey<K>) {
        if self.caches.sets.opaque(key).is_some() {
            tracing::warn!(%key, "{} does not decode, not changing its pods", K::KIND);
            return;
        }
        tracing::debug!(%key, "{} has been deleted", K::KIND);
        self.own_writes.forget(key);
        self.left_statuses.settle(key);
    }

    async fn scale(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        refs: &ControllerRefs,
        active: &[Arc<Pod>],
    ) -> Scaled {
        let (now, uid) = (self.clock.now(), set.uid());
        let Self { requests, events, own_writes, .. } = self;
        let expectations = &own_writes.expectations;
        let created = |pod: &Stored| own_writes.wrote((key, &uid), &pods_resource(), pod);
        let scale =
            Scale { requests, events, expectations, key, uid: &uid, set, created: &created };
        match plan(set, active, || self.related(set), self.rules, now) {
            Plan::Settled => Scaled::from(Ok(())),
            Plan::Create(count) => scale.create(refs, count).await,
            Plan::Delete(surplus) => {
                if surplus.ranked {
                    self.record_ages(&surplus.pods, active, now);
                }
                scale.delete(&surplus).await
            }
        }
    }

    /// Returns the status after a pass over `active` pods.
    fn status(
        &self,
        set: &Workload<K>,
        active: &[Arc<Pod>],
        scaled: &Scaled,
        (terminating, now): (Option<usize>, Timestamp),
    ) -> ReplicaSetStatus {
        let failure = scaled.result.as_ref().err().map(ToString::to_string);
        let failure = failure.as_deref();
        // The next pass sees the created pods, unless it may start before the caches show them.
        let created = if self.compare_versions { scaled.created } else { 0 };
        next_status(set, Observed { active, created, terminating, failure, now })
    }

    /// Returns the pods that any object of the same controller selects, with any owner.
    fn related(&self, set: &Workload<K>) -> Vec<Arc<Pod>> {
        let Some(controller) = set.controller() else { return Vec::new() };
        let siblings = self.caches.siblings.get(controller.uid.as_str());
        let is_in_namespace =
            |sibling: &&Arc<Workload<K>>| sibling.metadata.namespace == set.metadata.namespace;
        let siblings: Vec<_> = siblings.iter().filter(is_in_namespace).collect();
        let is_related = |pod: &Pod| {
            siblings.iter().any(|sibling| sibling.selects(pod.metadata.labels.as_ref()))
        };
        let pods = self.caches.pods.list_in(set.namespace());
        pods.iter().filter(|pod| is_related(pod)).cloned().collect()
    }

    fn record_ages(&self, chosen: &[Arc<Pod>], active: &[Arc<Pod>], now: Timestamp) {
        for ratio in age_ratios(chosen, active, now) {
            self.age_ratio.record(ratio);
        }
    }

    /// Writes the status, or leaves it to the next pass if this one may and the last one did not.
    async fn report(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        status: &ReplicaSetStatus,
        may_leave: bool,
    ) -> Result<(), kube_client::Error> {
        if !is_current(set, status) {
            if may_leave && self.left_statuses.leave(key) {
                tracing::debug!(%key, "Leaving the status to the next pass");
                return Ok(());
            }
            self.write_status(key, set, status).await?;
        }
        self.left_statuses.settle(key);
        Ok(())
    }

    /// Writes the status with at most two writes and one read: after an error the live object gets
    /// the same status, once (upstream's `statusUpdateRetries`).
    async fn write_status(
        &self,
        key: &ObjectKey<K>,
        set: &Workload<K>,
        status: &ReplicaSetStatus,
    ) -> Result<(), kube_client::Error> {
        let (from, to, need) = (set.status.replicas, status.replicas, set.spec.replicas);
        tracing::debug!(%key, from, to, need, "Updating status");
        let first = self.requests.put_status(set, status).await;
        let written = if let Ok(written) = first {
            written
        } else {
            let live = self.requests.workload::<K>(set.namespace(), set.name()).await?;
            if live.uid() != set.uid() {
                return Ok(()); // Another object has the name now. Its own events enqueue it.
            }
            self.requests.put_status(&live, status).await?
        };
        self.own_writes.wrote((key, &set.uid()), &group_resource::<K>(), &written);
        Ok(())
    }
}

/// Returns `None` if the selector is invalid: a retry would not help until it changes.
fn usable<K: WorkloadKind>(key: &ObjectKey<K>, set: &Workload<K>) -> Option<ControllerRefs> {
    if let Err(error) = &set.spec.selector {
        tracing::error!(%key, "error converting pod selector to selector: {error}");
        return None;
    }
    ControllerRefs::new(set)
}

/// Returns the action of a pass that is to be repeated after `next`, if ever.
fn action(gate: &Gate, next: Option<Duration>) -> Action {
    match (gate, next) {
        // This pass tried nothing: a failure before it still counts.
        (Gate::Closed(_), Some(next)) => Action::Postpone(next),
        (_, Some(next)) => Action::RequeueAfter(next),
        (_, None) => Action::AwaitChange,
    }
}

/// Returns the number of owned pods that are being deleted and that the selector matches.
fn terminating<K: WorkloadKind>(set: &Workload<K>, owned: &Snapshot<Pod>) -> usize {
    let selected = |pod: &Pod| set.selects(pod.metadata.labels.as_ref());
    owned.iter().filter(|pod| pod.is_terminating() && selected(pod)).count()
}

#[cfg(test)]
mod tests;
