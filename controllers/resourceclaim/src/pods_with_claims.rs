//! [`PodsWithClaims`]: a list-watch that leaves out the pods that use no claims.
//!
//! Most pods of a cluster use none, and the controller does nothing about them: they take no place
//! in its cache. A pod's claims are fixed when it is created; only the claim of its extended
//! resources may come later, with its status, and then the pod arrives with that change. A pod that
//! does not decode is kept, because its claims are unknown.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::ready;
use futures::{StreamExt, TryStreamExt};
use homeostat::ObjectKey;
use homeostat::informer::list_watch::{
    Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
    WatchStream,
};
use k8s_openapi::api::core::v1 as core;

use crate::pod::Pod;

/// Lists and watches the pods of `inner` that use claims.
pub(crate) struct PodsWithClaims<L> {
    inner: L,
}

/// The part of the initial events that has been passed on.
struct Initial {
    /// `None` after the initial events.
    passed: Option<HashSet<ObjectKey<core::Pod>>>,
}

// === impl PodsWithClaims ===

impl<L: ListWatch<Pod>> PodsWithClaims<L> {
    pub(crate) fn new(inner: L) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl<L: ListWatch<Pod>> ListWatch<Pod> for PodsWithClaims<L> {
    fn target(&self) -> Arc<str> {
        self.inner.target()
    }

    fn is_ordered(&self) -> bool {
        self.inner.is_ordered()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<Pod>, ListError> {
        let mut page = self.inner.list(request).await?;
        page.items.retain(may_use_claims);
        page.items.shrink_to_fit();
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<Pod>, WatchError> {
        let mut initial = Initial { passed: request.initial_events.then(HashSet::new) };
        let batches = self.inner.watch(request).await?;
        let batches = batches.map_ok(move |batch| {
            let passed = batch.into_iter().filter_map(|event| initial.pass(event));
            passed.collect::<Vec<_>>()
        });
        // A batch is never empty.
        Ok(batches.try_filter(|events| ready(!events.is_empty())).boxed())
    }
}

// === impl Initial ===

impl Initial {
    /// Returns the event, and for a pod that uses no claims, or no more, its deletion: it is in no
    /// cache then. During the initial events only a pod that was passed on needs one.
    fn pass(&mut self, event: WatchEvent<Pod>) -> Option<WatchEvent<Pod>> {
        match event {
            WatchEvent::Applied(pod) if may_use_claims(&pod) => {
                if let Some(passed) = &mut self.passed {
                    passed.insert(ObjectKey::from_metadata(pod.metadata()));
                }
                Some(WatchEvent::Applied(pod))
            }
            WatchEvent::Applied(pod) => {
                let key = ObjectKey::from_metadata(pod.metadata());
                let is_cached = self.passed.as_ref().is_none_or(|passed| passed.contains(&key));
                is_cached.then_some(WatchEvent::Deleted(pod))
            }
            WatchEvent::Bookmark { initial_events_end, .. } if initial_events_end => {
                self.passed = None;
                Some(event)
            }
            event => Some(event),
        }
    }
}

fn may_use_claims(pod: &Decoded<Pod>) -> bool {
    match pod {
        Decoded::Fits(pod) => pod.has_claims(),
        Decoded::Opaque { .. } => true,
    }
}

#[cfg(test)]
mod tests;
