//! Carries out a plan: makes pods in growing batches, deletes them all at once, and keeps the expectations true to what is
//! known of each request.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use homeostat::expectations::{CreationToken, DeletionToken, UidTrackingExpectations};
use homeostat::kube_client::Error;
use homeostat::owner::ControllerRefs;
use homeostat::{Object, ObjectKey, Uid, slow_start_batch};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;

use crate::events::Events;
use crate::outcome::{self, Outcome};
use crate::plan::Surplus;
use crate::pod::Pod;
use crate::replica_set::ReplicaSet;
use crate::requests::{Requests, Stored};
use crate::template::{TemplateError, new_pod};

/// Why a plan was not carried out as a whole. Its text is what `ReplicaFailure` shows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScaleError {
    /// The template makes no pods.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A pod could not be made.
    #[error("{why}")]
    Create {
        /// What the server said.
        why: String,
    },
    /// A pod could not be deleted.
    #[error("unable to delete pods: {why}")]
    Delete {
        /// What the server said.
        why: String,
    },
}

/// Changes the number of one `ReplicaSet`'s pods.
pub(crate) struct Scale<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) events: &'a Events,
    pub(crate) expectations: &'a UidTrackingExpectations<ObjectKey<Kind>, Uid>,
    pub(crate) key: &'a ObjectKey<Kind>,
    pub(crate) uid: &'a Uid,
    pub(crate) set: &'a ReplicaSet,
    /// Told of every pod that was made.
    pub(crate) made: &'a (dyn Fn(&Stored) + Sync),
}

type Creation = CreationToken<ObjectKey<Kind>, Uid>;
type Deletion = DeletionToken<ObjectKey<Kind>, Uid>;

/// Why no further pods are asked for in this pass.
enum Stop {
    Failed(Error),
    /// The namespace goes away, and its pods with it: no error, and nothing to try again.
    NamespaceTerminating,
}

// === impl Scale ===

impl Scale<'_> {
    /// Makes `count` pods, 1, 2, 4, … at a time, and stops after the first batch in which one is refused.
    pub(crate) async fn create(
        &self,
        refs: &ControllerRefs,
        count: usize,
    ) -> Result<(), ScaleError> {
        let body = new_pod(self.set, refs.reference())?;
        tracing::info!(need = self.set.spec.replicas, creating = count, "Too few replicas");
        // Before the first request: the watch may be faster than the answer.
        let expected = self.expectations.expect_creations(self.key, self.uid, count);
        let (made, result) =
            slow_start_batch(count, 1, async |_| self.create_one(expected.start(), &body).await)
                .await;
        drop(expected); // What was never started is not expected any longer.
        match result {
            Ok(()) | Err(Stop::NamespaceTerminating) => Ok(()),
            Err(Stop::Failed(error)) => {
                let skipped = count - made;
                tracing::info!(
                    skipped,
                    "Slow-start failure. Skipping creation of pods, decrementing expectations"
                );
                Err(ScaleError::Create { why: outcome::words(&error) })
            }
        }
    }

    async fn create_one(&self, token: Creation, body: &[u8]) -> Result<(), Stop> {
        let error = match self.requests.create_pod(self.set.namespace(), body.to_vec()).await {
            Ok(pod) => {
                token.sent();
                (self.made)(&pod);
                self.events.created(self.set, &pod.name);
                return Ok(());
            }
            Err(error) => error,
        };
        // Unknown: the token goes unanswered, and the pod stays expected.
        if outcome::of(&error) == Outcome::Refused {
            token.refused();
        }
        if outcome::is_namespace_terminating(&error) {
            return Err(Stop::NamespaceTerminating);
        }
        self.events.failed_create(self.set, &outcome::words(&error));
        Err(Stop::Failed(error))
    }

    /// Deletes the pods, all at the same time.
    pub(crate) async fn delete(&self, surplus: &Surplus) -> Result<(), ScaleError> {
        let pods = &surplus.pods;
        tracing::info!(need = self.set.spec.replicas, deleting = pods.len(), "Too many replicas");
        let uids = pods.iter().map(|pod| pod.uid());
        let expected = self.expectations.expect_deletions(self.key, self.uid, uids);
        let mut answers: FuturesUnordered<_> =
            pods.iter().map(|pod| self.delete_one(expected.start(&pod.uid()), pod)).collect();
        let mut first = Ok(());
        while let Some(answer) = answers.next().await {
            first = first.and(answer);
        }
        first
    }

    async fn delete_one(&self, token: Deletion, pod: &Pod) -> Result<(), ScaleError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let error = match self.requests.delete_pod(self.set.namespace(), name, uid).await {
            Ok(()) => {
                token.sent();
                self.events.deleted(self.set, name);
                return Ok(());
            }
            Err(error) => error,
        };
        if outcome::of(&error) == Outcome::Refused {
            token.refused();
        }
        // Gone, or another pod bears the name by now.
        if outcome::is_not_found(&error) || outcome::is_conflict(&error) {
            return Ok(());
        }
        let why = outcome::words(&error);
        self.events.failed_delete(self.set, &why);
        Err(ScaleError::Delete { why })
    }
}

#[cfg(test)]
mod tests;
