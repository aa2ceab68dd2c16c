//! [`StatusWriter`]: joins the writes that wait for one claim.

use std::collections::HashMap;
use std::sync::Arc;

use homeostat::outcome::{has_code, message};
use homeostat::{Object as _, ObjectKey};
use k8s_openapi::api::resource::v1::ResourceClaim;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::caches::Caches;
use crate::claim::Claim;
use crate::plan::{Cached, Change, Outcome, StatusWrite};
use crate::requests::Requests;

/// The number of writes of one batch: after a conflict it is written to the live claim.
const TRIES: usize = 4;

/// Writes the statuses of claims, at most one write per claim at a time.
///
/// While a write of a claim is in flight, further changes of that claim wait. The next write
/// contains all of them. So 256 pods that share a claim take a few writes and do not conflict with
/// each other.
pub(crate) struct StatusWriter {
    requests: Requests,
    caches: Caches,
    /// The changes that wait, for each claim that is being written.
    waiting: Mutex<HashMap<ClaimKey, Vec<Waiting>>>,
}

/// The result of a change.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// The claim after the write, and the outcome of the change.
    Claim(Arc<Claim>, Outcome),
    /// The claim is gone, or another one has its name.
    Gone,
}

/// The error of a write. Each pass whose change was in the write gets it.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The server's error.
    #[error("{0}")]
    Server(Arc<str>),
    /// The worker that wrote for several passes was stopped.
    #[error("the write was abandoned")]
    Abandoned,
}

type ClaimKey = ObjectKey<ResourceClaim>;
type Answer = Result<Written, WriteError>;

/// A change whose pass waits for the write.
struct Waiting {
    /// The UID of the claim that the pass has seen.
    uid: Box<str>,
    change: Change,
    answer: oneshot::Sender<Answer>,
}

/// The right to write one claim. Its drop abandons the changes that still wait.
struct Turn<'a> {
    writer: &'a StatusWriter,
    key: &'a ClaimKey,
    /// True if no changes waited. The claim may be in the turn of another pass since then.
    has_ended: bool,
}

// === impl StatusWriter ===

impl StatusWriter {
    pub(crate) fn new(requests: Requests, caches: Caches) -> Self {
        Self { requests, caches, waiting: Mutex::default() }
    }

    /// Applies `change` to the newest state of `claim`.
    ///
    /// # Errors
    ///
    /// Returns the server's error, also after a fourth conflict.
    pub(crate) async fn write(&self, claim: &Claim, change: Change) -> Answer {
        let key = claim.key();
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { uid: claim.uid().into(), change, answer };
        if let Some(mut turn) = self.wait(&key, waiting) {
            // Workers that are ready to run add their changes first.
            tokio::task::yield_now().await;
            while let Some(batch) = turn.next_batch() {
                self.write_batch(&key, batch).await;
            }
        }
        answered.await.unwrap_or(Err(WriteError::Abandoned))
    }

    /// Adds a change. Returns a turn if no other pass writes the claim.
    fn wait<'a>(&'a self, key: &'a ClaimKey, change: Waiting) -> Option<Turn<'a>> {
        let mut waiting = self.waiting.lock();
        if let Some(changes) = waiting.get_mut(key) {
            changes.push(change);
            return None;
        }
        waiting.insert(key.clone(), vec![change]);
        Some(Turn { writer: self, key, has_ended: false })
    }

    async fn write_batch(&self, key: &ClaimKey, batch: Vec<Waiting>) {
        let result = self.try_write(key, &batch).await;
        for (n, waiting) in batch.into_iter().enumerate() {
            let answer = match &result {
                Ok(Some((claim, outcomes))) if *waiting.uid == *claim.uid() => {
                    let outcome = outcomes.get(n).cloned().unwrap_or(Outcome::Done);
                    Ok(Written::Claim(Arc::clone(claim), outcome))
                }
                Ok(_) => Ok(Written::Gone),
                Err(error) => Err(error.clone()),
            };
            // A pass that was stopped does not wait any more.
            drop(waiting.answer.send(answer));
        }
    }

    /// Returns the claim after the write with the outcome of each change, or `None` if it is gone.
    async fn try_write(
        &self,
        key: &ClaimKey,
        batch: &[Waiting],
    ) -> Result<Option<(Arc<Claim>, Vec<Outcome>)>, WriteError> {
        let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
        let Cached::Found(mut claim) = self.caches.claim(namespace, name) else { return Ok(None) };
        for _ in 1..TRIES {
            match self.write_once(&claim, batch).await {
                Err(error) if has_code(&error, 409) => {}
                result => return result.map(Some).map_err(|error| server_error(&claim, &error)),
            }
            let live = self.requests.live_claim(namespace, name).await;
            let Some(live) = live.map_err(|error| server_error(&claim, &error))? else {
                return Ok(None);
            };
            claim = self.caches.written(live);
        }
        let last = self.write_once(&claim, batch).await;
        last.map(Some).map_err(|error| server_error(&claim, &error))
    }

    async fn write_once(
        &self,
        claim: &Arc<Claim>,
        batch: &[Waiting],
    ) -> Result<(Arc<Claim>, Vec<Outcome>), homeostat::kube_client::Error> {
        // A change for another claim of the name is not part of the write. It is kept in the list,
        // as a change without effect, so that each outcome has its place.
        let none = Change::Release(std::collections::BTreeSet::new());
        let changes = batch
            .iter()
            .map(|waiting| if *waiting.uid == *claim.uid() { &waiting.change } else { &none });
        let (write, outcomes) = StatusWrite::new(claim, changes);
        if write.is_empty() {
            return Ok((Arc::clone(claim), outcomes));
        }
        let written = self.requests.patch_claim_status(claim, write.patch(claim)).await?;
        let written = self.caches.written(written);
        log_changes(claim, &written);
        Ok((written, outcomes))
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// Returns the changes that wait. Ends the turn if there are none.
    fn next_batch(&mut self) -> Option<Vec<Waiting>> {
        let mut waiting = self.writer.waiting.lock();
        let changes = std::mem::take(waiting.get_mut(self.key)?);
        if changes.is_empty() {
            waiting.remove(self.key);
            self.has_ended = true;
            return None;
        }
        Some(changes)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let abandoned = self.writer.waiting.lock().remove(self.key);
        drop(abandoned);
    }
}

/// Logs what a write changed, in upstream's words.
fn log_changes(before: &Claim, after: &Claim) {
    let (key, allocated) = (after.key(), after.is_allocated);
    let (consumers_before, consumers) = (before.reserved_for.len(), after.reserved_for.len());
    if before.reserved_for.iter().any(|consumer| !after.is_reserved_for(&consumer.uid)) {
        tracing::debug!(claim = %key, consumers_before, consumers, allocated, "Removed consumers");
    } else if before.is_allocated && !allocated {
        tracing::debug!(claim = %key, "Removed allocation because not needed");
    }
}

/// Returns the error for the passes. Logs the missing permission, which the server names in a 422.
fn server_error(claim: &Claim, error: &homeostat::kube_client::Error) -> WriteError {
    let message = message(error);
    if message.contains("resourceclaims/binding") {
        tracing::error!(
            claim = %claim.key(),
            "the server refuses to change reservations and allocations: grant update and patch \
             on resourceclaims/binding in the group resource.k8s.io"
        );
    }
    WriteError::Server(message.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use homeostat::informer::testing::Store;
    use homeostat_apiserver::ApiServer;

    use super::*;

    #[tokio::test]
    async fn turn_that_has_ended_leaves_the_next_turn_alone() {
        let caches = Caches::of_stores(&Store::new(), &Store::new(), &Store::new());
        let client = ApiServer::builder().build().client();
        let writer = StatusWriter::new(Requests::new(client), caches);
        let key = ObjectKey::namespaced("shop", "c");
        let change = || {
            let change = Change::Release(BTreeSet::new());
            Waiting { uid: "u".into(), change, answer: oneshot::channel().0 }
        };
        let mut ended = writer.wait(&key, change()).unwrap();
        assert_eq!(ended.next_batch().map(|batch| batch.len()), Some(1));
        assert!(ended.next_batch().is_none());
        // Another worker starts to write the claim before this one has dropped its turn.
        let mut next = writer.wait(&key, change()).unwrap();
        drop(ended);
        assert_eq!(next.next_batch().map(|batch| batch.len()), Some(1));
    }
}
