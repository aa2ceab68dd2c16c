//! Which pods count: those that the `ReplicaSet` owns and selects. Orphans that it selects are adopted, and what it owns and
//! no longer selects is released.

use std::sync::Arc;

use homeostat::owner::{Claim, ControllerRefs};

use crate::outcome;
use crate::pod::Pod;
use crate::replica_set::ReplicaSet;
use crate::requests::{Requests, Stored};

/// Why a pod could not be adopted or released.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// The owner may be gone: nothing is adopted for it.
    #[error("can't adopt Pod {pod} ({uid}): {why}")]
    Adopt {
        /// Namespace and name.
        pod: String,
        /// The pod's uid.
        uid: String,
        /// What the live `ReplicaSet` says.
        why: String,
    },
    /// The server did not take the patch.
    #[error("failed to patch the owner of Pod {pod} ({uid}): {why}")]
    Patch {
        /// Namespace and name.
        pod: String,
        /// The pod's uid.
        uid: String,
        /// What the server said.
        why: String,
    },
}

/// One pass of one `ReplicaSet` over the pods that may be its own.
pub(crate) struct Claims<'a> {
    requests: &'a Requests,
    set: &'a ReplicaSet,
    refs: &'a ControllerRefs,
    /// Whether the live `ReplicaSet` may adopt; asked at most once, and only when there is something to adopt.
    may_adopt: Option<Result<(), String>>,
    /// Told of every pod that was patched.
    patched: &'a (dyn Fn(&Stored) + Sync),
}

// === impl Claims ===

impl<'a> Claims<'a> {
    pub(crate) fn new(
        requests: &'a Requests,
        set: &'a ReplicaSet,
        refs: &'a ControllerRefs,
        patched: &'a (dyn Fn(&Stored) + Sync),
    ) -> Self {
        Self { requests, set, refs, may_adopt: None, patched }
    }

    /// The pods that count, all others seen to.
    ///
    /// # Errors
    /// Whatever went wrong: then nobody knows what counts, and nothing should be decided on it.
    pub(crate) async fn claim(
        mut self,
        candidates: Vec<Arc<Pod>>,
    ) -> Result<Vec<Arc<Pod>>, Vec<ClaimError>> {
        let mut claimed = Vec::with_capacity(candidates.len());
        let mut errors = Vec::new();
        for pod in candidates {
            match self.claim_one(&pod).await {
                Ok(true) => claimed.push(pod),
                Ok(false) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(claimed) } else { Err(errors) }
    }

    async fn claim_one(&mut self, pod: &Pod) -> Result<bool, ClaimError> {
        let selected = |pod: &homeostat::ObjectMeta| self.set.selects(pod.labels.as_ref());
        match self.refs.claim(&pod.metadata, selected) {
            Claim::Owned => Ok(true),
            Claim::Ignore => Ok(false),
            Claim::Adopt => self.adopt(pod).await,
            Claim::Release => self.release(pod).await,
        }
    }

    async fn adopt(&mut self, pod: &Pod) -> Result<bool, ClaimError> {
        if self.may_adopt.is_none() {
            self.may_adopt = Some(self.ask_live().await);
        }
        let (full_name, uid) = name_and_uid(pod);
        if let Some(Err(why)) = &self.may_adopt {
            return Err(ClaimError::Adopt { pod: full_name, uid, why: why.clone() });
        }
        let patch = self.refs.adopt(&pod.metadata);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match self.requests.patch_pod(self.set.namespace(), name, &patch).await {
            Ok(stored) => {
                (self.patched)(&stored);
                tracing::info!(pod = full_name, replica_set = self.set.name(), "adopted a pod");
                Ok(true)
            }
            Err(error) if outcome::is_not_found(&error) => Ok(false),
            Err(error) => {
                Err(ClaimError::Patch { pod: full_name, uid, why: outcome::words(&error) })
            }
        }
    }

    async fn release(&self, pod: &Pod) -> Result<bool, ClaimError> {
        let (full_name, uid) = name_and_uid(pod);
        tracing::info!(
            pod = full_name,
            replica_set = self.set.name(),
            "Patching pod to remove its controllerRef"
        );
        let patch = self.refs.release(&pod.metadata);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match self.requests.patch_pod(self.set.namespace(), name, &patch).await {
            Ok(stored) => {
                (self.patched)(&stored);
                Ok(false)
            }
            // Gone, another pod by now, or released already.
            Err(error) if outcome::is_not_found(&error) || outcome::is_invalid(&error) => Ok(false),
            Err(error) => {
                Err(ClaimError::Patch { pod: full_name, uid, why: outcome::words(&error) })
            }
        }
    }

    /// The cache may not know yet that the owner was deleted, or made anew under its name: what it adopted then would
    /// be collected as garbage.
    async fn ask_live(&self) -> Result<(), String> {
        let (namespace, name) = (self.set.namespace(), self.set.name());
        let live = match self.requests.liveness(namespace, name).await {
            Ok(live) => live,
            Err(error) => {
                return Err(format!("can't recheck DeletionTimestamp: {}", outcome::words(&error)));
            }
        };
        if live.uid != self.set.uid_str() {
            let wanted = self.set.uid_str();
            let got = live.uid;
            return Err(format!(
                "can't recheck DeletionTimestamp: original ReplicaSet {namespace}/{name} is gone: got uid {got}, wanted {wanted}"
            ));
        }
        match live.deletion_timestamp {
            Some(at) => Err(format!("{namespace}/{name} has just been deleted at {}", at.0)),
            None => Ok(()),
        }
    }
}

fn name_and_uid(pod: &Pod) -> (String, String) {
    let [namespace, name, uid] = [&pod.metadata.namespace, &pod.metadata.name, &pod.metadata.uid]
        .map(|part| part.as_deref().unwrap_or_default());
    (format!("{namespace}/{name}"), uid.to_owned())
}

#[cfg(test)]
mod tests;
