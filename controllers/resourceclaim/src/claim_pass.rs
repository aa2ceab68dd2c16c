//! The pass over a claim: removes the reservations of pods that are gone or done, deallocates an
//! unused claim, and deletes the generated claim of a finished pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat::outcome::{is_not_found, message};
use homeostat::{Object as _, ObjectKey};
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::claim::{Claim, Consumer};
use crate::error::Error;
use crate::plan::{Cached, Change};
use crate::reconciler::ClaimController;
use crate::status_writer::Written;

/// A consumer's state, as far as the caches show it.
enum Consumers {
    /// It may use the claim.
    Keeps,
    /// It is gone or done.
    IsDone,
    /// The cache does not have the pod, or has another one of its name. It may be late: the
    /// scheduler reserves before it binds.
    IsUnseen,
}

impl ClaimController {
    pub(crate) async fn claim_pass(&self, key: &ObjectKey<ResourceClaim>) -> Result<(), Error> {
        let namespace = key.namespace().unwrap_or_default();
        let Cached::Found(mut claim) = self.caches.claim(namespace, key.name()) else {
            tracing::debug!(claim = %key, "Nothing to do for claim, it is gone");
            return Ok(());
        };
        let done = self.done_consumers(&claim).await?;
        let remaining = claim.reserved_for.len() - done.len().min(claim.reserved_for.len());
        tracing::debug!(claim = %key, remaining, done = done.len(), "Claim reserved for counts");
        let is_deleted_unused = claim.is_protected() && claim.is_being_deleted() && remaining == 0;
        if !done.is_empty() || is_deleted_unused {
            let change = if done.is_empty() { Change::Deallocate } else { Change::Release(done) };
            let Some(written) = self.free(&claim, change).await? else { return Ok(()) };
            claim = written;
        }
        if claim.reserved_for.is_empty() && self.is_owner_done(&claim).await? {
            self.delete(&claim).await?;
        }
        Ok(())
    }

    /// Writes `change`, then removes the finalizer of an unallocated claim. Returns the claim after
    /// that, or `None` if it is gone.
    async fn free(&self, claim: &Claim, change: Change) -> Result<Option<Arc<Claim>>, Error> {
        let reason = match change {
            Change::Release(_) => "after removing consumers",
            Change::Reserve(_) | Change::Deallocate => "because not needed",
        };
        let written = self.writer.write(claim, change).await;
        let written = written.map_err(|error| Error::retry(error.to_string()))?;
        let Written::Claim(claim, _) = written else { return Ok(None) };
        if !claim.is_protected() || claim.is_allocated || !claim.reserved_for.is_empty() {
            return Ok(Some(claim));
        }
        match self.requests.remove_finalizer(&claim).await {
            Ok(claim) => {
                tracing::debug!(claim = %claim.key(), "Removed finalizer {reason}");
                Ok(Some(self.caches.written(claim)))
            }
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(Error::retry(message(&error))),
        }
    }

    /// Deletes the generated claim of a pod that does not need it any more.
    async fn delete(&self, claim: &Claim) -> Result<(), Error> {
        let deleted = self.requests.delete_claim(claim).await;
        deleted.map_err(|error| {
            let (key, error) = (claim.key(), message(&error));
            Error::retry(format!("delete unused generated claim {key}: {error}"))
        })?;
        tracing::debug!(claim = %claim.key(), "Deleted unused generated claim");
        Ok(())
    }

    /// Returns the UIDs of the consumers that are gone or done.
    async fn done_consumers(&self, claim: &Claim) -> Result<BTreeSet<Box<str>>, Error> {
        let mut done = BTreeSet::new();
        for consumer in &claim.reserved_for {
            let is_done = match self.judge(claim.namespace(), consumer) {
                Consumers::Keeps => false,
                Consumers::IsDone => true,
                Consumers::IsUnseen => {
                    self.is_gone(claim.namespace(), (&consumer.name, &consumer.uid)).await?
                }
            };
            if is_done {
                done.insert(consumer.uid.clone());
            }
        }
        Ok(done)
    }

    /// Judges a consumer by the caches. A consumer that is no pod stays, and so does a pod that
    /// does not decode.
    fn judge(&self, namespace: &str, consumer: &Consumer) -> Consumers {
        if !consumer.is_pod() {
            return Consumers::Keeps;
        }
        let key = (namespace, &*consumer.name);
        if let Some(pod) = self.caches.pods.get(key).filter(|pod| pod.uid() == &*consumer.uid) {
            return if pod.is_done() { Consumers::IsDone } else { Consumers::Keeps };
        }
        match self.caches.pods.opaque(key) {
            Some(pod) if pod.uid.as_deref() == Some(&*consumer.uid) => Consumers::Keeps,
            _ if self.deleted.contains(&consumer.uid) => Consumers::IsDone,
            _ => Consumers::IsUnseen,
        }
    }

    /// Returns true if the server does not have the pod of this name and UID, or if that pod is
    /// done. The cache does not have a pod that has reserved a claim which it does not name.
    pub(crate) async fn is_gone(
        &self,
        namespace: &str,
        (name, uid): (&str, &str),
    ) -> Result<bool, Error> {
        let pod = self.requests.live_pod(namespace, name).await;
        let pod = pod.map_err(|error| Error::retry(message(&error)))?;
        Ok(pod.is_none_or(|pod| !pod.may_use_claims(uid)))
    }

    /// Returns true if the pod that the claim was created for does not need it any more.
    ///
    /// The claim of a pod that is not in the cache is left to the garbage collector. If another
    /// pod has the name, the server decides: the cache may still show the earlier one.
    async fn is_owner_done(&self, claim: &Claim) -> Result<bool, Error> {
        let Some(owner) = claim.owner() else { return Ok(false) };
        match self.caches.pods.get((claim.namespace(), &*owner.name)) {
            None => Ok(false),
            Some(pod) if pod.uid() == owner.uid => Ok(pod.is_done()),
            Some(_) if self.deleted.contains(&owner.uid) => Ok(true),
            Some(_) => self.is_gone(claim.namespace(), (&owner.name, &owner.uid)).await,
        }
    }
}
