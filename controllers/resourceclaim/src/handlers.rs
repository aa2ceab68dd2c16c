//! Handlers: events of the caches to keys of the queue.

use std::sync::Arc;

use homeostat::{Enqueue, Event, Object as _, ObjectKey};

use crate::caches::{Caches, index_key};
use crate::claim::Claim;
use crate::deleted_uids::DeletedUids;
use crate::key::Key;
use crate::metrics::ClaimCounts;
use crate::plan::needs_work;
use crate::pod::Pod;
use crate::template::Template;

/// The state that the handlers share. A clone has the same state.
#[derive(Clone)]
pub(crate) struct Handlers {
    pub(crate) caches: Caches,
    pub(crate) deleted: Arc<DeletedUids>,
}

// === impl Handlers ===

impl Handlers {
    /// Handles an event of a pod.
    ///
    /// Nothing is enqueued for a pod that does not decode: it exists, and its claims stay as they
    /// are.
    pub(crate) fn pod(&self, event: &Event<Pod>, enqueue: &Enqueue<Key>) {
        match event {
            Event::Added { object: pod, .. } | Event::Updated { new: pod, .. } => {
                // A server that was restored from a backup has a deleted pod again.
                self.deleted.remove(pod.uid());
                self.enqueue_pod(pod, enqueue);
            }
            Event::Deleted { last_known: pod, certain } => {
                // A list also lacks a running pod whose status has lost its claim: the pass over
                // the claim asks the server.
                if *certain && pod.has_claims() {
                    self.deleted.add(pod.uid());
                }
                if pod.has_claims() {
                    enqueue_claims(pod, enqueue);
                }
                self.enqueue_claims_of_uid(pod.namespace(), pod.uid(), enqueue);
            }
            Event::OpaqueDeleted { metadata } => {
                let namespace = metadata.namespace.as_deref().unwrap_or_default();
                let uid = metadata.uid.as_deref().unwrap_or_default();
                // It may also run, decode again and have lost its claim: the pass asks the server.
                self.enqueue_claims_of_uid(namespace, uid, enqueue);
            }
            Event::Opaque { metadata, .. } => {
                let (namespace, name) = (&metadata.namespace, &metadata.name);
                tracing::warn!(?namespace, ?name, "pod does not decode, its claims stay");
            }
        }
    }

    /// Handles an event of a claim.
    pub(crate) fn claim(
        &self,
        event: &Event<Claim>,
        counts: &mut ClaimCounts,
        enqueue: &Enqueue<Key>,
    ) {
        self.caches.observe(event);
        counts.observe(event);
        if matches!(event, Event::Added { .. } | Event::Updated { .. }) {
            tracing::trace!(claim = %event.key(), "Enqueueing new or updated claim");
            enqueue.add(Key::Claim(event.key()));
        }
        let (namespace, name) = namespace_and_name(event);
        for pod in &self.caches.pods_by_claim.get(&*index_key(namespace, name)) {
            self.enqueue_pod(pod, enqueue);
        }
    }

    /// Handles an event of a template: pods may wait for it.
    pub(crate) fn template(&self, event: &Event<Template>, enqueue: &Enqueue<Key>) {
        if let Event::Added { object, .. } | Event::Updated { new: object, .. } = event {
            let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
            let name = object.metadata.name.as_deref().unwrap_or_default();
            for pod in &self.caches.pods_by_template.get(&*index_key(namespace, name)) {
                self.enqueue_pod(pod, enqueue);
            }
        }
    }

    /// Enqueues a pod that needs work, and the claims of a pod that does not need them any more.
    fn enqueue_pod(&self, pod: &Pod, enqueue: &Enqueue<Key>) {
        if !pod.has_claims() {
            return;
        }
        if pod.is_done() {
            enqueue_claims(pod, enqueue);
            // A claim whose recording was interrupted is not in the pod's status.
            self.enqueue_claims_of_uid(pod.namespace(), pod.uid(), enqueue);
        }
        if needs_work(pod, |name| self.caches.claim(pod.namespace(), name)) {
            tracing::trace!(pod = %pod.key(), "Enqueueing pod");
            enqueue.add(Key::Pod(pod.key()));
        } else {
            tracing::trace!(pod = %pod.key(), "Not enqueueing pod");
        }
    }

    /// Enqueues the claims that a pod owned or had reserved, also if its last state did not name
    /// them.
    fn enqueue_claims_of_uid(&self, namespace: &str, uid: &str, enqueue: &Enqueue<Key>) {
        for name in self.caches.claims_of_uid(namespace, uid) {
            enqueue.add(Key::Claim(ObjectKey::namespaced(namespace, &name)));
        }
    }
}

fn namespace_and_name(event: &Event<Claim>) -> (&str, &str) {
    let metadata = event.metadata();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    (namespace, metadata.name.as_deref().unwrap_or_default())
}

/// Enqueues the claims that a pod is known to use.
fn enqueue_claims(pod: &Pod, enqueue: &Enqueue<Key>) {
    for name in pod.known_claims() {
        enqueue.add(Key::Claim(ObjectKey::namespaced(pod.namespace(), name)));
    }
}

#[cfg(test)]
mod tests;
