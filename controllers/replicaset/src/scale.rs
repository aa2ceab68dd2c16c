//! Carries out a plan: creates pods in batches that grow, deletes pods concurrently, and keeps the
//! expectations in step with the outcome of each request.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use homeostat::expectations::{CreationToken, DeletionToken, UidTrackingExpectations};
use homeostat::kube_client::Error;
use homeostat::outcome::{self, Outcome};
use homeostat::owner::ControllerRefs;
use homeostat::{Object, ObjectKey, Uid, slow_start_batch};

use crate::events::Events;
use crate::kind::WorkloadKind;
use crate::plan::Surplus;
use crate::pod::Pod;
use crate::requests::{Requests, Stored};
use crate::template::{TemplateError, new_pod};
use crate::workload::Workload;

/// The error of a plan that was not carried out completely. Its text is the message of the
/// condition `ReplicaFailure`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScaleError {
    /// The template is invalid.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A pod could not be created.
    #[error("{why}")]
    Create {
        /// The server's message.
        why: String,
    },
    /// A pod could not be deleted.
    #[error("unable to delete pods: {why}")]
    Delete {
        /// The server's message.
        why: String,
    },
}

/// Creates and deletes the pods of one owner.
pub(crate) struct Scale<'a, K: WorkloadKind> {
    pub(crate) requests: &'a Requests,
    pub(crate) events: &'a Events,
    pub(crate) expectations: &'a UidTrackingExpectations<ObjectKey<K>, Uid>,
    pub(crate) key: &'a ObjectKey<K>,
    pub(crate) uid: &'a Uid,
    pub(crate) set: &'a Workload<K>,
    /// Called for each pod that was created.
    pub(crate) created: &'a (dyn Fn(&Stored) + Sync),
}

/// The outcome of a plan.
#[derive(Debug)]
pub(crate) struct Scaled {
    /// The number of pods that the server has created for certain.
    pub(crate) created: usize,
    pub(crate) result: Result<(), ScaleError>,
}

type Creation<K> = CreationToken<ObjectKey<K>, Uid>;
type Deletion<K> = DeletionToken<ObjectKey<K>, Uid>;

/// The reason for which this pass creates no further pods.
enum Stop {
    Failed(Error),
    /// The namespace is being deleted with its pods: no error, and nothing to retry.
    NamespaceTerminating,
}

// === impl Scaled ===

impl From<Result<(), ScaleError>> for Scaled {
    /// Creates the outcome of a plan that creates nothing.
    fn from(result: Result<(), ScaleError>) -> Self {
        Self { created: 0, result }
    }
}

// === impl Scale ===

impl<K: WorkloadKind> Scale<'_, K> {
    /// Creates `count` pods in batches of 1, 2, 4, …, and stops after the first batch with a
    /// failure.
    pub(crate) async fn create(&self, refs: &ControllerRefs, count: usize) -> Scaled {
        let body = match new_pod(self.set, refs.reference()) {
            Ok(body) => body,
            Err(error) => return Scaled::from(Err(error.into())),
        };
        tracing::debug!(need = self.set.spec.replicas, creating = count, "Too few replicas");
        // Before the first request: the watch event may arrive before the answer.
        let expected = self.expectations.expect_creations(self.key, self.uid, count);
        let (created, result) =
            slow_start_batch(count, 1, async |_| self.create_one(expected.start(), &body).await)
                .await;
        drop(expected); // Creations that were never started are no longer expected.
        let result = match result {
            Ok(()) | Err(Stop::NamespaceTerminating) => Ok(()),
            Err(Stop::Failed(error)) => {
                let skipped = count - created;
                tracing::debug!(
                    skipped,
                    "Slow-start failure. Skipping creation of pods, decrementing expectations"
                );
                Err(ScaleError::Create { why: outcome::message(&error) })
            }
        };
        Scaled { created, result }
    }

    async fn create_one(&self, token: Creation<K>, body: &[u8]) -> Result<(), Stop> {
        let error = match self.requests.create_pod(self.set.namespace(), body.to_vec()).await {
            Ok(pod) => {
                token.sent();
                (self.created)(&pod);
                self.events.created(self.set, &pod.name);
                return Ok(());
            }
            Err(error) => error,
        };
        // If the outcome is unknown, the token is dropped and the pod stays expected.
        if outcome::of(&error) == Outcome::Refused {
            token.refused();
        }
        if outcome::is_namespace_terminating(&error) {
            return Err(Stop::NamespaceTerminating);
        }
        self.events.failed_create(self.set, &outcome::message(&error));
        Err(Stop::Failed(error))
    }

    /// Deletes the pods concurrently.
    pub(crate) async fn delete(&self, surplus: &Surplus) -> Scaled {
        let pods = &surplus.pods;
        tracing::debug!(need = self.set.spec.replicas, deleting = pods.len(), "Too many replicas");
        let uids = pods.iter().map(|pod| pod.uid());
        let expected = self.expectations.expect_deletions(self.key, self.uid, uids);
        let mut answers: FuturesUnordered<_> =
            pods.iter().map(|pod| self.delete_one(expected.start(&pod.uid()), pod)).collect();
        let mut first = Ok(());
        while let Some(answer) = answers.next().await {
            first = first.and(answer);
        }
        Scaled::from(first)
    }

    async fn delete_one(&self, token: Deletion<K>, pod: &Pod) -> Result<(), ScaleError> {
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
        // The pod is gone, or another pod has its name.
        if outcome::is_not_found(&error) || outcome::is_uid_conflict(&error) {
            return Ok(());
        }
        let why = outcome::message(&error);
        self.events.failed_delete(self.set, &why);
        Err(ScaleError::Delete { why })
    }
}

#[cfg(test)]
mod tests;
