//! Counts the pods of a cluster through a watch, so that even a short excess is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams, WatchEvent, WatchParams};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Receives every state of every pod of a namespace in the server's order, and keeps the maximum
/// number that were alive at once.
///
/// It watches with kube's own client, not with the informer under test.
#[derive(Debug)]
pub struct Census {
    counts: Arc<Mutex<Counts>>,
    /// Kept for its `Drop`, which ends the watch.
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Pod name → `true` if the pod is alive: neither finished nor being deleted.
    alive: BTreeMap<String, bool>,
    most_alive: usize,
    /// The uids of all pods seen.
    ever: BTreeSet<String>,
}

/// The end of a watch.
enum Ended {
    AsUsual,
    /// The server sent an error: it no longer has the history after this version.
    Refused,
}

// === impl Census ===

impl Census {
    /// Starts to count in `namespace`, including the pods that exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the first list fails.
    pub async fn start(client: Client, namespace: &str) -> anyhow::Result<Self> {
        let pods = Api::<Pod>::namespaced(client, namespace);
        let counts = Arc::new(Mutex::new(Counts::default()));
        let list = pods.list(&ListParams::default()).await?;
        for pod in &list.items {
            counts.lock().see(pod);
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(pods, version, Arc::clone(&counts)));
        Ok(Self { counts, _tasks: tasks })
    }

    /// Returns the number of pods that are alive.
    pub fn alive(&self) -> usize {
        self.counts.lock().alive()
    }

    /// Returns the maximum number of pods that were alive at once.
    pub fn most_alive(&self) -> usize {
        self.counts.lock().most_alive
    }

    /// Returns the number of pods seen so far.
    pub fn ever(&self) -> usize {
        self.counts.lock().ever.len()
    }
}

/// Watches from `version` on, and resumes from the last version when the stream ends.
async fn follow(pods: Api<Pod>, mut version: String, counts: Arc<Mutex<Counts>>) {
    loop {
        // A watch that cannot be opened or breaks counts as ended. Its version may have expired.
        let ended = match follow_one(&pods, &mut version, &counts).await {
            Ok(Ended::AsUsual) => Ok(()),
            Ok(Ended::Refused) => relist(&pods, &mut version, &counts).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "the census watches again");
        }
        // Avoids a busy loop while the server is unavailable.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn follow_one(
    pods: &Api<Pod>,
    version: &mut String,
    counts: &Mutex<Counts>,
) -> homeostat::kube_client::Result<Ended> {
    let stream = pods.watch(&WatchParams::default(), version).await?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.try_next().await? {
        match counts.lock().take(&event) {
            Some(reached) => *version = reached,
            None => return Ok(Ended::Refused),
        }
    }
    Ok(Ended::AsUsual)
}

/// Lists the current pods. Pods that came and went since the last event are not counted.
async fn relist(
    pods: &Api<Pod>,
    version: &mut String,
    counts: &Mutex<Counts>,
) -> homeostat::kube_client::Result<()> {
    let list = pods.list(&ListParams::default()).await?;
    let mut counts = counts.lock();
    counts.alive.clear();
    list.items.iter().for_each(|pod| counts.see(pod));
    *version = list.metadata.resource_version.unwrap_or_default();
    Ok(())
}

// === impl Counts ===

impl Counts {
    /// Returns the version of the event; `None` ends the watch.
    fn take(&mut self, event: &WatchEvent<Pod>) -> Option<String> {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.see(pod);
                pod.metadata.resource_version.clone()
            }
            WatchEvent::Deleted(pod) => {
                self.forget(pod);
                pod.metadata.resource_version.clone()
            }
            WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version.clone()),
            WatchEvent::Error(_) => None,
        }
    }

    fn see(&mut self, pod: &Pod) {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let finished = matches!(phase, Some("Succeeded" | "Failed"));
        let alive = !finished && pod.metadata.deletion_timestamp.is_none();
        self.ever.extend(pod.metadata.uid.clone());
        self.alive.insert(pod.metadata.name.clone().unwrap_or_default(), alive);
        self.most_alive = self.most_alive.max(self.alive());
    }

    fn forget(&mut self, pod: &Pod) {
        self.alive.remove(pod.metadata.name.as_deref().unwrap_or_default());
    }

    fn alive(&self) -> usize {
        self.alive.values().filter(|alive| **alive).count()
    }
}
