//! The pass over a pod: creates its claims, records them, and reserves them if the pod reached a
//! node without the scheduler.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use homeostat::outcome::message;
use homeostat::{Action, Object as _, ObjectKey, ObjectMeta};
use k8s_openapi::api::core::v1 as core;

use crate::caches::Caches;
use crate::claim::{Consumer, is_controlled_by, oldest_by_entry};
use crate::error::Error;
use crate::plan::{Cached, Change, Outcome, needs_reservation, statuses};
use crate::pod::{Pod, PodClaim, Resolution};
use crate::reconciler::ClaimController;
use crate::status_writer::Written;

/// The time after which a pod is reconciled again whose claim the informer has not seen yet.
///
/// A claim that comes and goes while the informer has no watch never has an event. The time is the
/// longest pause of an informer that has lost its watch.
const UNSEEN: Duration = Duration::from_secs(60);

/// The claims that the pod owned when the pass first looked, by entry.
struct Owned(Option<HashMap<String, ObjectMeta>>);

// === impl Owned ===

impl Owned {
    fn read(&mut self, caches: &Caches, pod: &Pod) -> &HashMap<String, ObjectMeta> {
        let read = || oldest_by_entry(caches.owned(pod.namespace(), pod.uid()), pod.uid());
        self.0.get_or_insert_with(read)
    }
}

// === impl ClaimController ===

impl ClaimController {
    pub(crate) async fn pod_pass(&self, key: &ObjectKey<core::Pod>) -> Result<Action, Error> {
        let Some(pod) = self.caches.pods.get(key) else {
            tracing::debug!(pod = %key, "Nothing to do for pod, it is gone");
            return Ok(Action::AwaitChange);
        };
        if pod.is_being_deleted() || pod.is_terminal {
            tracing::debug!(pod = %key, "Nothing to do for pod, it is marked for deletion or done");
            return Ok(Action::AwaitChange);
        }
        if let Some(group) = &pod.pod_group {
            return Err(Error::pod_group(&pod, group));
        }
        if self.deleted.contains(pod.uid()) {
            if self.is_gone(pod.namespace(), (pod.name(), pod.uid())).await? {
                tracing::debug!(pod = %key, "Nothing to do for pod, only the cache has it");
                return Ok(Action::AwaitChange);
            }
            self.deleted.remove(pod.uid());
        }
        let found = self.ensure_claims(&pod).await?;
        if !found.is_empty() && !self.record(&pod, &found).await? {
            tracing::debug!(pod = %key, "the pod is gone, its claims are not recorded");
            // The garbage collector deletes the claims, and that enqueues the pod: while the cache
            // is late, each further pass would create them again.
            self.deleted.add(pod.uid());
            return Ok(Action::AwaitChange);
        }
        if pod.node_name.is_empty() {
            tracing::debug!(pod = %key, "Nothing to do for pod, scheduler will deal with it");
        } else {
            self.reserve_all(&pod, &found).await?;
        }
        Ok(self.next_look(&pod, &found))
    }

    /// Creates the claims that are missing. Returns the names of the claims that the pod's status
    /// does not have yet, by entry.
    async fn ensure_claims<'a>(&self, pod: &'a Pod) -> Result<BTreeMap<&'a str, String>, Error> {
        let mut found = BTreeMap::new();
        let mut owned = Owned(None);
        for (entry, resolution) in pod.resolutions() {
            match self.ensure_claim(pod, entry, resolution, &mut owned).await {
                Ok(Some(name)) => drop(found.insert(&*entry.name, name)),
                Ok(None) => {}
                Err(error) => return Err(self.failed(pod, entry, &error)),
            }
        }
        Ok(found)
    }

    /// Writes the names to the pod's status. Returns false if the pod is gone.
    async fn record(&self, pod: &Pod, found: &BTreeMap<&str, String>) -> Result<bool, Error> {
        let recorded = self.requests.record(pod, statuses(pod, found)).await;
        recorded.map_err(|error| {
            let (pod, error) = (pod.key(), message(&error));
            Error::retry(format!("update pod {pod} ResourceClaimStatuses: {error}"))
        })
    }

    /// Reserves the claims of a pod on a node.
    async fn reserve_all(&self, pod: &Pod, found: &BTreeMap<&str, String>) -> Result<(), Error> {
        for (entry, resolution) in pod.resolutions() {
            if let Some(name) = claim_of(entry, resolution, found) {
                let is_chosen = matches!(resolution, Resolution::Chosen(_));
                self.reserve(pod, name, is_chosen).await?;
            }
        }
        Ok(())
    }

    /// Returns the time of the next pass over a pod with these claims, beside those of the pod.
    fn next_look(&self, pod: &Pod, found: &BTreeMap<&str, String>) -> Action {
        let generated = pod.resolutions().filter_map(|(entry, resolution)| match resolution {
            Resolution::Chosen(_) => None,
            other => claim_of(entry, other, found),
        });
        let mut names = generated.filter(|name| !name.is_empty());
        if names.all(|name| self.caches.is_seen(pod.namespace(), name)) {
            Action::AwaitChange
        } else {
            Action::RequeueAfter(UNSEEN)
        }
    }

    /// Records the event of an entry whose claim cannot be created, and returns the pass's error.
    fn failed(&self, pod: &Pod, entry: &PodClaim, error: &Error) -> Error {
        let name = &entry.name;
        self.events.failed_creation(pod, &format!("PodResourceClaim {name}: {error}"));
        let text = format!("pod {}, PodResourceClaim {name}: {error}", pod.key());
        match error {
            Error::Retry(_) => Error::retry(text),
            Error::Terminal(_) => Error::terminal(text),
        }
    }

    /// Returns the name of the entry's claim if it was created or found in this pass; `None` if
    /// nothing is to be recorded.
    async fn ensure_claim(
        &self,
        pod: &Pod,
        entry: &PodClaim,
        resolution: Resolution<'_>,
        owned: &mut Owned,
    ) -> Result<Option<String>, Error> {
        match resolution {
            Resolution::Chosen(_) | Resolution::NotNeeded => return Ok(None),
            Resolution::Unsupported => {
                let error = resolution.error(pod, entry).unwrap_or_default();
                let text = format!("checking for claim before creating it: {error}");
                return Err(Error::retry(text));
            }
            Resolution::Generated(name) if !name.is_empty() && self.exists(pod, name).await? => {
                return Ok(None);
            }
            Resolution::Generated(_) | Resolution::NotCreated => {}
        }
        if let Some(claim) = owned.read(&self.caches, pod).get(&*entry.name) {
            return Ok(claim.name.clone());
        }
        self.create_claim(pod, entry).await.map(Some)
    }

    /// Returns true if the recorded claim exists and was created for the pod. A claim that is not
    /// in the cache is read from the server: the cache may be late.
    async fn exists(&self, pod: &Pod, name: &str) -> Result<bool, Error> {
        let namespace = pod.namespace();
        let claim = match self.caches.claim(namespace, name) {
            Cached::Found(claim) => claim,
            Cached::Opaque => {
                let metadata = self.caches.opaque_claim(namespace, name);
                return Ok(metadata.is_some_and(|it| is_controlled_by(&it, pod.uid())));
            }
            Cached::Missing => {
                let live = self.requests.live_claim(namespace, name).await;
                let live = live.map_err(|error| {
                    Error::retry(format!("checking claim existence: {}", message(&error)))
                })?;
                let Some(live) = live else { return Ok(false) };
                self.caches.written(live)
            }
        };
        let owner = claim.check_owner(pod);
        if let Err(error) = &owner {
            let (claim, pod) = (claim.key(), pod.key());
            tracing::error!(
                %claim, %pod, %error,
                "Claim that was created for the pod is no longer owned by the pod, \
                 creating a new one"
            );
        }
        Ok(owner.is_ok())
    }

    /// Reserves an allocated claim for a pod on a node.
    async fn reserve(&self, pod: &Pod, name: &str, is_chosen: bool) -> Result<(), Error> {
        let Cached::Found(claim) = self.caches.claim(pod.namespace(), name) else {
            return Ok(()); // The event of the claim enqueues the pod.
        };
        if !is_chosen {
            claim.check_owner(pod).map_err(|error| Error::retry(error.to_string()))?;
        }
        if !needs_reservation(pod, &claim) {
            return Ok(());
        }
        let written = self.writer.write(&claim, Change::Reserve(Consumer::of(pod))).await;
        let failed =
            |error: &dyn std::fmt::Display| format!("reserve claim {}: {error}", claim.key());
        match written.map_err(|error| Error::retry(failed(&error)))? {
            Written::Claim(_, Outcome::Done) => {
                tracing::debug!(claim = %claim.key(), pod = %pod.key(), "Reserve claim");
                Ok(())
            }
            // The event of the claim's next change enqueues the pod.
            Written::Claim(_, Outcome::NotAllocated | Outcome::BeingDeleted) | Written::Gone => {
                Ok(())
            }
            Written::Claim(_, Outcome::Full) => {
                Err(Error::terminal(failed(&"it is reserved for 256 consumers, the maximum")))
            }
        }
    }
}

/// Returns the claim of an entry: the one that a pass found, or the one that the pod names.
fn claim_of<'a>(
    entry: &PodClaim,
    resolution: Resolution<'a>,
    found: &'a BTreeMap<&str, String>,
) -> Option<&'a str> {
    found.get(&*entry.name).map(String::as_str).or_else(|| resolution.name())
}
