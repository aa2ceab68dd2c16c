//! One pass over one `ReplicaSet`: see what there is, decide, act, report.

use std::sync::Arc;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::kube_client::{self};
use homeostat::owner::ControllerRefs;
use homeostat::{
    Action, ConsistencyStore, Index, Lister, Object, ObjectKey, Reconciler, Request, Uid,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet as Kind, ReplicaSetStatus};

use crate::claim::{ClaimError, Claims};
use crate::clock::Clock;
use crate::events::Events;
use crate::outcome;
use crate::plan::{Plan, Rules, plan};
use crate::pod::Pod;
use crate::ranking::age_ratios;
use crate::replica_set::ReplicaSet;
use crate::requests::{Requests, Stored};
use crate::scale::{Scale, ScaleError};
use crate::settled::{Gate, pods_resource, sets_resource};
use crate::status::{Observed, is_current, next_availability, next_status};

/// The controller's caches, its connection, and what it remembers between passes.
pub(crate) struct ReplicaSetController {
    pub(crate) requests: Requests,
    pub(crate) events: Events,
    pub(crate) caches: Caches,
    pub(crate) expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
    pub(crate) consistency: ConsistencyStore<ObjectKey<Kind>, Uid>,
    pub(crate) rules: Rules,
    pub(crate) report_terminating: bool,
    pub(crate) clock: Clock,
    pub(crate) age_ratio: metrics::Histogram,
}

/// What is known without asking the server.
pub(crate) struct Caches {
    pub(crate) sets: Lister<ReplicaSet>,
    pub(crate) pods: Lister<Pod>,
    /// Pods by the `ReplicaSet` that their controller reference names; those that do not fit their type included.
    pub(crate) owned: Index<Pod, OwnerName>,
    /// Pods without a controller, by namespace.
    pub(crate) orphans: Index<Pod, Box<str>>,
    /// `ReplicaSet`s by the uid of their own controller.
    pub(crate) siblings: Index<ReplicaSet, Box<str>>,
}

/// A `ReplicaSet` as a pod's reference names it: namespace, name and uid.
pub(crate) type OwnerName = Box<str>;

/// Why a pass failed. It is tried again after a back-off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// Some pods could not be adopted or released, so that nobody knows how many count.
    #[error("{}", one_line(.0))]
    Claim(Vec<ClaimError>),
    /// Pods could not be made or deleted.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The status could not be written.
    #[error("failed to write the status: {}", outcome::words(.0))]
    Status(#[source] kube_client::Error),
}

// === impl ReplicaSetController ===

impl Reconciler<ReplicaSet> for ReplicaSetController {
    type Error = ReconcileError;

    async fn reconcile(&self, request: &Request<ReplicaSet>) -> Result<Action, ReconcileError> {
        let key = request.key();
        let Some(set) = self.caches.sets.get(key) else {
            self.absent(key);
            return Ok(Action::AwaitChange);
        };
        let owner = owner_name(set.metadata.namespace.as_deref(), set.name(), set.uid_str());
        if let Some(wait) = self.await_own_writes(key, &set, &owner).await {
            return Ok(Action::RequeueAfter(wait));
        }
        let Some(refs) = usable(key, &set) else { return Ok(Action::AwaitChange) };
        if self.caches.owned.has_opaque(&owner) {
            // Not decodable is not absent: to count without it would make pods for ever.
            tracing::warn!(%key, "a pod of this ReplicaSet cannot be decoded: its pods are left as they are");
            return Ok(Action::AwaitChange);
        }
        // Before the pods are read: what the cache shows after this is at least as new.
        let gate = self.gate(key, &set, &owner).await;
        self.pass(key, &set, &refs, (gate, owner)).await
    }
}

impl ReplicaSetController {
    async fn pass(
        &self,
        key: &ObjectKey<Kind>,
        set: &Arc<ReplicaSet>,
        refs: &ControllerRefs,
        (gate, owner): (Gate, OwnerName),
    ) -> Result<Action, ReconcileError> {
        let pods = self.caches.owned.get(&owner);
        let terminating = self.report_terminating.then(|| terminating(set, &pods));
        let orphans = self.caches.orphans.get(set.namespace());
        let candidates = pods.into_iter().chain(orphans).filter(|pod| pod.is_active()).collect();
        let uid = set.uid();
        let patched = |pod: &Stored| self.wrote((key, &uid), &pods_resource(), pod);
        let claims = Claims::new(&self.requests, set, refs, &patched);
        let active = claims.claim(candidates).await.map_err(ReconcileError::Claim)?;

        let scaled = match gate {
            Gate::Open if !set.is_leaving() => self.scale(key, set, refs, &active).await,
            Gate::Open | Gate::Closed(_) => Ok(()),
        };
        // Also if the rest of this pass fails: what was sent just now is awaited from now on.
        let settled = match gate {
            Gate::Closed(wait) => Some(wait),
            Gate::Open => self.settling(key, &uid),
        };
        let now = self.clock.now();
        let failure = scaled.as_ref().err().map(ToString::to_string);
        let observed = Observed { active: &active, terminating, failure: failure.as_deref(), now };
        let mut status = next_status(set, observed);
        if let Gate::Closed(_) = gate {
            // Nothing was tried: what failed last has neither gone away nor come back.
            status.conditions.clone_from(&set.status.conditions);
        }
        self.write_status(key, set, &status).await.map_err(ReconcileError::Status)?;
        scaled?;

        let available = next_availability(set, &status, &active, now, || self.clock.now());
        let next = available.into_iter().chain(settled).min();
        Ok(next.map_or(Action::AwaitChange, Action::RequeueAfter))
    }

    /// The object is not there, or nobody can tell what it asks for.
    fn absent(&self, key: &ObjectKey<Kind>) {
        if self.caches.sets.opaque(key).is_some() {
            tracing::warn!(%key, "this ReplicaSet cannot be decoded: its pods are left as they are");
            return;
        }
        tracing::debug!(%key, "ReplicaSet has been deleted");
        self.expectations.delete(key);
        self.consistency.clear(key, None);
    }

    async fn scale(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        refs: &ControllerRefs,
        active: &[Arc<Pod>],
    ) -> Result<(), ScaleError> {
        let (now, uid) = (self.clock.now(), set.uid());
        let Self { requests, events, expectations, .. } = self;
        let made = |pod: &Stored| self.wrote((key, &uid), &pods_resource(), pod);
        let scale = Scale { requests, events, expectations, key, uid: &uid, set, made: &made };
        match plan(set, active, || self.related(set), self.rules, now) {
            Plan::Settled => Ok(()),
            Plan::Create(count) => scale.create(refs, count).await,
            Plan::Delete(surplus) => {
                if surplus.ranked {
                    self.record_ages(&surplus.pods, now);
                }
                scale.delete(&surplus).await
            }
        }
    }

    /// The pods that any `ReplicaSet` under the same controller selects, whoever owns them.
    fn related(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let Some(controller) = set.controller() else { return Vec::new() };
        let mut siblings = self.caches.siblings.get(controller.uid.as_str());
        siblings.retain(|sibling| sibling.metadata.namespace == set.metadata.namespace);
        let is_related = |pod: &Pod| {
            siblings.iter().any(|sibling| sibling.selects(pod.metadata.labels.as_ref()))
        };
        let pods = self.caches.pods.list_in(set.namespace());
        pods.iter().filter(|pod| is_related(pod)).cloned().collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio above 2^52 is as good as that")]
    fn record_ages(&self, pods: &[Arc<Pod>], now: Timestamp) {
        for ratio in age_ratios(pods.iter().map(AsRef::as_ref), now) {
            self.age_ratio.record(ratio as f64);
        }
    }

    /// At most two writes and a read: on any error the live object gets the same status, once.
    async fn write_status(
        &self,
        key: &ObjectKey<Kind>,
        set: &ReplicaSet,
        status: &ReplicaSetStatus,
    ) -> Result<(), kube_client::Error> {
        if is_current(set, status) {
            return Ok(());
        }
        tracing::debug!(%key, from = set.status.replicas, to = status.replicas, need = set.spec.replicas, "Updating status");
        let first = self.requests.put_status(set, status).await;
        let written = if let Ok(written) = first {
            written
        } else {
            let live = self.requests.replica_set(set.namespace(), set.name()).await?;
            if live.uid() != set.uid() {
                return Ok(()); // Another one by now; its own events ask for it.
            }
            self.requests.put_status(&live, status).await?
        };
        self.wrote((key, &set.uid()), &sets_resource(), &written);
        Ok(())
    }
}

/// `None` for a `ReplicaSet` that nothing can be done for until it is changed.
fn usable(key: &ObjectKey<Kind>, set: &ReplicaSet) -> Option<ControllerRefs> {
    if let Err(error) = &set.spec.selector {
        tracing::error!(%key, "error converting pod selector to selector: {error}");
        return None;
    }
    ControllerRefs::new(&Kind { metadata: set.metadata.clone(), ..Kind::default() })
}

/// How many of the pods are on their way out; only those that are selected and were adopted before.
fn terminating(set: &ReplicaSet, owned: &[Arc<Pod>]) -> usize {
    let selected = |pod: &Pod| set.selects(pod.metadata.labels.as_ref());
    owned.iter().filter(|pod| pod.is_terminating() && selected(pod)).count()
}

/// The namespace is part of it: a reference reaches no further, whatever uid it names.
pub(crate) fn owner_name(namespace: Option<&str>, name: &str, uid: &str) -> OwnerName {
    format!("{}/{name}/{uid}", namespace.unwrap_or_default()).into_boxed_str()
}

fn one_line(errors: &[ClaimError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests;
