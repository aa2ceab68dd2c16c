//! The caches that the controller reads, and the keys of their indices.

use std::sync::Arc;
use std::time::Duration;

use homeostat::informer::MutationCache;
use homeostat::{Event, Index, Lister, ObjectMeta, SharedIndexInformer};

use crate::claim::{Claim, owner_uid};
use crate::plan::Cached;
use crate::pod::Pod;
use crate::template::Template;

/// The age at which an own write is forgotten: upstream's `claimMutationCacheTTL`.
const TTL: Duration = Duration::from_secs(3600);

/// The number of own writes that are remembered: upstream's `claimMutationCacheSize`.
const CAPACITY: usize = 1000;

/// The listers and indices of one controller. A clone reads the same caches.
#[derive(Clone)]
pub(crate) struct Caches {
    pub(crate) pods: Lister<Pod>,
    pub(crate) templates: Lister<Template>,
    /// The informer's claims.
    stored: Lister<Claim>,
    /// Claims with the controller's own writes.
    claims: MutationCache<Claim>,
    /// Pods by `namespace/name` of the claims that they are known to use.
    pub(crate) pods_by_claim: Index<Pod, Box<str>>,
    /// Pods by `namespace/name` of the templates that they name.
    pub(crate) pods_by_template: Index<Pod, Box<str>>,
    /// Claims by `namespace/UID` of the pod that they were created for, including claims that do
    /// not decode.
    owned: Index<Claim, Box<str>>,
    /// Claims by `namespace/UID` of the pods that have reserved them.
    consumed: Index<Claim, Box<str>>,
}

// === impl Caches ===

impl Caches {
    pub(crate) fn new(
        pods: &SharedIndexInformer<Pod>,
        claims: &SharedIndexInformer<Claim>,
        templates: &SharedIndexInformer<Template>,
    ) -> Self {
        let stored = claims.lister();
        Self {
            pods: pods.lister(),
            templates: templates.lister(),
            claims: MutationCache::builder(stored.clone()).ttl(TTL).capacity(CAPACITY).build(),
            stored,
            pods_by_claim: pods.index(claims_of),
            pods_by_template: pods.index(templates_of),
            owned: claims.index_by_metadata(owner_of),
            consumed: claims.index(consumers_of),
        }
    }

    /// Returns the caches over stores that a test fills.
    #[cfg(test)]
    pub(crate) fn of_stores(
        pods: &homeostat::informer::testing::Store<Pod>,
        claims: &homeostat::informer::testing::Store<Claim>,
        templates: &homeostat::informer::testing::Store<Template>,
    ) -> Self {
        let stored = claims.lister();
        Self {
            pods: pods.lister(),
            templates: templates.lister(),
            claims: MutationCache::builder(stored.clone()).ttl(TTL).capacity(CAPACITY).build(),
            stored,
            pods_by_claim: pods.index(claims_of),
            pods_by_template: pods.index(templates_of),
            owned: claims.index_by_metadata(owner_of),
            consumed: claims.index(consumers_of),
        }
    }

    /// Returns a claim, never older than the controller's own last write of it.
    pub(crate) fn claim(&self, namespace: &str, name: &str) -> Cached {
        if let Some(claim) = self.claims.get((namespace, name)) {
            Cached::Found(claim)
        } else if self.stored.opaque((namespace, name)).is_some() {
            Cached::Opaque
        } else {
            Cached::Missing
        }
    }

    /// Returns true if the informer has the claim, not only the controller's own write of it.
    pub(crate) fn is_seen(&self, namespace: &str, name: &str) -> bool {
        self.stored.contains((namespace, name))
    }

    /// Returns the metadata of a claim that does not decode.
    pub(crate) fn opaque_claim(&self, namespace: &str, name: &str) -> Option<ObjectMeta> {
        self.stored.opaque((namespace, name)).map(|metadata| (*metadata).clone())
    }

    /// Returns the metadata of the claims that were created for the pod with this UID, including
    /// claims that do not decode.
    pub(crate) fn owned(&self, namespace: &str, uid: &str) -> Vec<ObjectMeta> {
        let owner = index_key(namespace, uid);
        let claims = self.claims.by_index(&self.owned, &*owner);
        let mut found: Vec<_> = claims.iter().map(|claim| claim.metadata.clone()).collect();
        if self.owned.has_opaque(&*owner) {
            let keys = self.owned.keys(&*owner);
            let opaque = keys.iter().filter_map(|key| self.stored.opaque(key));
            found.extend(opaque.map(|metadata| (*metadata).clone()));
        }
        found
    }

    /// Returns the names of the claims that the pod with this UID owns or has reserved, including
    /// claims that do not decode if it owns them.
    pub(crate) fn claims_of_uid(&self, namespace: &str, uid: &str) -> Vec<String> {
        let key = index_key(namespace, uid);
        let consumed = self.consumed.keys(&*key);
        let keys = self.owned.keys(&*key).into_iter().chain(consumed);
        keys.map(|key| key.name().to_owned()).collect()
    }

    /// Remembers the server's answer to a write of the controller.
    pub(crate) fn written(&self, claim: Claim) -> Arc<Claim> {
        let claim = Arc::new(claim);
        self.claims.written(Arc::clone(&claim));
        claim
    }

    /// Forgets the writes that an event of the informer makes obsolete.
    pub(crate) fn observe(&self, event: &Event<Claim>) {
        self.claims.observe(event);
    }
}

/// Returns `namespace/value`, the form of all index keys. References do not cross namespaces.
pub(crate) fn index_key(namespace: &str, value: &str) -> Box<str> {
    format!("{namespace}/{value}").into_boxed_str()
}

fn claims_of(pod: &Pod) -> Vec<Box<str>> {
    let names = pod.known_claims();
    names.into_iter().map(|name| index_key(pod.namespace(), name)).collect()
}

fn templates_of(pod: &Pod) -> Vec<Box<str>> {
    let names = pod.claims.iter().filter_map(|entry| entry.resource_claim_template_name.as_deref());
    let mut keys: Vec<_> = names.map(|name| index_key(pod.namespace(), name)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn owner_of(claim: &ObjectMeta) -> Option<Box<str>> {
    Some(index_key(claim.namespace.as_deref().unwrap_or_default(), owner_uid(claim)?))
}

fn consumers_of(claim: &Claim) -> Vec<Box<str>> {
    let pods = claim.reserved_for.iter().filter(|consumer| consumer.is_pod());
    pods.map(|consumer| index_key(claim.namespace(), &consumer.uid)).collect()
}
