//! The reconciler: one pass over a pod or over a claim.

use std::sync::Arc;

use homeostat::{Action, Reconciler, Request};

use crate::caches::Caches;
use crate::deleted_uids::DeletedUids;
use crate::error::Error;
use crate::events::Events;
use crate::gates::FeatureGates;
use crate::key::Key;
use crate::metrics::Creates;
use crate::requests::Requests;
use crate::status_writer::StatusWriter;

/// Reconciles pods and claims.
pub(crate) struct ClaimController {
    pub(crate) caches: Caches,
    pub(crate) requests: Requests,
    pub(crate) writer: StatusWriter,
    pub(crate) deleted: Arc<DeletedUids>,
    pub(crate) events: Events,
    pub(crate) gates: FeatureGates,
    pub(crate) creates: Creates,
}

impl Reconciler<Key> for ClaimController {
    type Error = Error;

    async fn reconcile(&self, request: &Request<Key>) -> Result<Action, Error> {
        match request.key() {
            Key::Pod(key) => self.pod_pass(key).await,
            Key::Claim(key) => self.claim_pass(key).await.map(|()| Action::AwaitChange),
        }
    }
}

#[cfg(test)]
mod tests;
