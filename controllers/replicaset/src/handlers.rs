//! What an event about a pod means: whom it was made by or for, what it fulfils, and whom to ask for again. No lock, no clock.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::owner::controller_of;
use homeostat::{Event, Lister, Object, ObjectKey, ObjectMeta, Uid};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::pod::Pod;
use crate::replica_set::ReplicaSet;

/// Turns events about pods into keys of `ReplicaSet`s, and lowers what those expected before it names them.
pub(crate) struct PodEvents {
    sets: Lister<ReplicaSet>,
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
    /// Pods whose creation was counted while they did not fit their type; when one is told as added later, it has been counted.
    counted_while_opaque: HashSet<Uid>,
}

/// Where the keys go: at once, or after a time.
pub(crate) type Ask<'a> = &'a mut dyn FnMut(ObjectKey<Kind>, Option<Duration>);

// === impl PodEvents ===

impl PodEvents {
    pub(crate) fn new(
        sets: Lister<ReplicaSet>,
        expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
    ) -> Self {
        Self { sets, expectations, counted_while_opaque: HashSet::new() }
    }

    pub(crate) fn handle(&mut self, event: &Event<Pod>, ask: Ask<'_>) {
        match event {
            Event::Added { object, .. } => {
                let is_new = !self.counted_while_opaque.remove(&object.uid());
                self.appeared(&object.metadata, is_new, ask);
            }
            Event::Updated { old, new } => self.updated(old, new, ask),
            Event::Deleted { last_known, .. } => {
                self.counted_while_opaque.remove(&last_known.uid());
                self.gone(&last_known.metadata, ask);
            }
            Event::Opaque { last_known, metadata } => {
                self.opaque(last_known.is_none(), metadata, ask);
            }
            Event::OpaqueDeleted { metadata } => {
                self.counted_while_opaque.remove(&uid_of(metadata));
                self.gone(metadata, ask);
            }
        }
    }

    fn appeared(&self, pod: &ObjectMeta, is_new: bool, ask: Ask<'_>) {
        if pod.deletion_timestamp.is_some() {
            // It was on its way out when we first saw it.
            return self.gone(pod, ask);
        }
        let Some(reference) = controller_of(pod) else { return self.orphan(pod, ask) };
        let Some(owner) = self.resolve(pod, reference) else { return };
        if is_new {
            self.expectations.creation_observed(&owner.key(), &owner.uid());
        }
        ask(owner.key(), None);
    }

    fn updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, ask: Ask<'_>) {
        if old.metadata.resource_version == new.metadata.resource_version {
            return;
        }
        let relabelled = old.metadata.labels != new.metadata.labels;
        if new.metadata.deletion_timestamp.is_some() {
            // As if it were gone: it is replaced while it leaves.
            self.gone(&new.metadata, ask);
            if relabelled {
                self.gone(&old.metadata, ask);
            }
            return;
        }
        let (was, is) = (old.controller(), new.controller());
        if was != is
            && let Some(was) = was
            && let Some(owner) = self.resolve(&old.metadata, was)
        {
            ask(owner.key(), None);
        }
        match is {
            Some(is) => {
                let Some(owner) = self.resolve(&new.metadata, is) else { return };
                ask(owner.key(), None);
                let min_ready_seconds = u64::try_from(owner.spec.min_ready_seconds).unwrap_or(0);
                if !old.is_ready() && new.is_ready() && min_ready_seconds > 0 {
                    tracing::debug!(pod = %new.key(), "pod will be enqueued after a while for availability check");
                    ask(owner.key(), Some(Duration::from_secs(min_ready_seconds)));
                }
            }
            None if relabelled || was != is => self.orphan(&new.metadata, ask),
            None => {}
        }
    }

    /// A pod that is there and does not fit: its owner must know, and a creation has been seen.
    fn opaque(&mut self, never_fitted: bool, pod: &ObjectMeta, ask: Ask<'_>) {
        let is_new = never_fitted && self.counted_while_opaque.insert(uid_of(pod));
        if controller_of(pod).is_some() {
            self.appeared(pod, is_new, ask);
        }
    }

    fn gone(&self, pod: &ObjectMeta, ask: Ask<'_>) {
        let owner = controller_of(pod).and_then(|reference| self.resolve(pod, reference));
        let Some(owner) = owner else { return };
        self.expectations.deletion_observed(&owner.key(), &owner.uid(), &uid_of(pod));
        ask(owner.key(), None);
    }

    /// Every `ReplicaSet` that would adopt it.
    fn orphan(&self, pod: &ObjectMeta, ask: Ask<'_>) {
        let labels = pod.labels.as_ref().filter(|labels| !labels.is_empty());
        let (Some(labels), Some(namespace)) = (labels, &pod.namespace) else { return };
        let mut matching = 0;
        for set in &self.sets.list_in(namespace) {
            if set.selects(Some(labels)) {
                matching += 1;
                ask(set.key(), None);
            }
        }
        if matching > 1 {
            tracing::warn!(
                namespace,
                "user error! more than one ReplicaSet is selecting pods with labels: {labels:?}"
            );
        }
    }

    /// The owner that a reference means: of this kind, by name, and the very one by uid.
    fn resolve(&self, pod: &ObjectMeta, reference: &OwnerReference) -> Option<Arc<ReplicaSet>> {
        if reference.kind != "ReplicaSet" {
            return None;
        }
        let namespace = pod.namespace.as_deref().unwrap_or_default();
        let owner = self.sets.get((namespace, reference.name.as_str()))?;
        (owner.metadata.uid.as_deref() == Some(reference.uid.as_str())).then_some(owner)
    }
}

fn uid_of(object: &ObjectMeta) -> Uid {
    Uid::from(object.uid.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
