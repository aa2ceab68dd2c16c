//! The handling of pod events beyond `owns`: orphans, availability, and upstream's special cases.
//! No lock, no clock.

use std::time::Duration;

use homeostat::owner::OwnerKind;
use homeostat::{Enqueue, Event, Lister, Object, ObjectKey, ObjectMeta, OwnedEvents};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::kind::WorkloadKind;
use crate::pod::Pod;
use crate::workload::Workload;

/// Enqueues owners for events of pods, as upstream's `addPod`, `updatePod` and `deletePod`.
pub(crate) struct PodEvents<K: WorkloadKind> {
    sets: Lister<Workload<K>>,
}

// === impl PodEvents ===

impl<K: WorkloadKind> PodEvents<K> {
    pub(crate) fn new(sets: Lister<Workload<K>>) -> Self {
        Self { sets }
    }

    fn updated(
        &self,
        old: &Pod,
        new: &Pod,
        owner: Option<&ObjectKey<K>>,
        enqueue: &Enqueue<Workload<K>>,
    ) {
        if new.controller().is_none() {
            let is_relabelled = old.metadata.labels != new.metadata.labels;
            if is_relabelled || old.controller().is_some() {
                self.enqueue_matching(&new.metadata, enqueue);
            }
        } else if !old.is_ready()
            && new.is_ready()
            && let Some(set) = owner.and_then(|owner| self.sets.get(owner))
        {
            enqueue_when_available(new, &set, enqueue);
        }
    }

    /// Enqueues every owner that would adopt the orphan.
    fn enqueue_matching(&self, orphan: &ObjectMeta, enqueue: &Enqueue<Workload<K>>) {
        let labels = orphan.labels.as_ref().filter(|labels| !labels.is_empty());
        let (Some(labels), Some(namespace)) = (labels, &orphan.namespace) else { return };
        let mut matching = 0;
        for set in &self.sets.list_in(namespace) {
            if set.selects(Some(labels)) {
                matching += 1;
                enqueue.add(set.key());
            }
        }
        if matching > 1 {
            tracing::warn!(
                namespace,
                "user error! more than one {} is selecting pods with labels: {labels:?}",
                K::KIND
            );
        }
    }
}

impl<K: WorkloadKind> OwnedEvents<Workload<K>, Pod> for PodEvents<K> {
    /// Ignores updates without a change. A pod that is being deleted when it is first seen is a
    /// deletion and no creation, as upstream.
    fn translate(&mut self, event: Event<Pod>) -> Option<Event<Pod>> {
        match event {
            Event::Updated { old, new } => {
                let is_changed = old.metadata.resource_version != new.metadata.resource_version;
                is_changed.then_some(Event::Updated { old, new })
            }
            Event::Added { object, .. } if is_leaving(&object.metadata) => {
                Some(Event::Deleted { last_known: object, certain: true })
            }
            Event::Opaque { metadata, .. } if is_leaving(&metadata) => {
                Some(Event::OpaqueDeleted { metadata })
            }
            event => Some(event),
        }
    }

    /// Compares the kind only, as upstream: old pods name `extensions/v1beta1`. The UID is unique.
    fn names_owner_kind(&self, reference: &OwnerReference, _: &OwnerKind) -> bool {
        reference.kind == K::KIND
    }

    fn enqueue_more(
        &mut self,
        event: &Event<Pod>,
        owner: Option<&ObjectKey<K>>,
        enqueue: &Enqueue<Workload<K>>,
    ) {
        match event {
            Event::Added { object, .. } if object.controller().is_none() => {
                self.enqueue_matching(&object.metadata, enqueue);
            }
            Event::Updated { old, new } if !is_leaving(&new.metadata) => {
                self.updated(old, new, owner, enqueue);
            }
            _ => {}
        }
    }
}

/// Enqueues the owner of a pod that became ready for the time at which the pod becomes available.
fn enqueue_when_available<K: WorkloadKind>(
    pod: &Pod,
    set: &Workload<K>,
    enqueue: &Enqueue<Workload<K>>,
) {
    let min_ready_seconds = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
    if min_ready_seconds > 0 {
        let pod = pod.key();
        tracing::debug!(%pod, "pod will be enqueued after a while for availability check");
        enqueue.add_after(set.key(), Duration::from_secs(min_ready_seconds));
    }
}

fn is_leaving(pod: &ObjectMeta) -> bool {
    pod.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
