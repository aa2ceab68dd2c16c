//! What a user does with a `ReplicaSet` and its pods, and how they wait for the outcome.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::Instant;

/// How often a waiting user looks: often enough for a figure in milliseconds, and little work for the server.
const GLANCE: Duration = Duration::from_millis(5);

/// One `ReplicaSet` named `name` in `namespace`, and the pods whose label `app` is its name.
#[derive(Clone, Debug)]
pub struct ReplicaSets {
    sets: Api<ReplicaSet>,
    pods: Api<Pod>,
    name: String,
}

// === impl ReplicaSets ===

impl ReplicaSets {
    /// The set `name` in the namespace `default`; nothing is created yet.
    pub fn named(client: &Client, name: &str) -> Self {
        Self {
            sets: Api::namespaced(client.clone(), "default"),
            pods: Api::namespaced(client.clone(), "default"),
            name: name.to_owned(),
        }
    }

    /// Creates the set.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn create(&self, replicas: usize) -> anyhow::Result<()> {
        let labels = json!({ "app": self.name });
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": { "name": self.name, "labels": labels },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": pod_spec() },
            },
        }))?;
        self.sets.create(&PostParams::default(), &set).await?;
        Ok(())
    }

    /// Asks for another number of replicas.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.sets.patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the set; its pods are left to the garbage collector.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn delete(&self) -> anyhow::Result<()> {
        self.sets.delete(&self.name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Creates a pod that nobody owns and the selector does not match, and waits until it is ready.
    ///
    /// Its deletion cost is high: of a set that has one pod too many, another one goes.
    ///
    /// # Errors
    ///
    /// What the server answers, or that the pod is not ready by `deadline`.
    pub async fn create_stray(&self, name: &str, deadline: Duration) -> anyhow::Result<()> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "labels": { "app": "nobody" },
                "annotations": { "controller.kubernetes.io/pod-deletion-cost": "1000" },
            },
            "spec": pod_spec(),
        }))?;
        self.pods.create(&PostParams::default(), &pod).await?;
        self.pod_becomes(name, "ready", is_ready, deadline).await
    }

    /// Gives a pod the label that the selector matches.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn label(&self, pod: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": self.name } } }));
        self.pods.patch(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a pod has no owner.
    ///
    /// # Errors
    ///
    /// What the server answers, or that it still has one at `deadline`.
    pub async fn released(&self, pod: &str, deadline: Duration) -> anyhow::Result<()> {
        let released = |pod: &Pod| pod.metadata.owner_references.iter().flatten().next().is_none();
        self.pod_becomes(pod, "released", released, deadline).await
    }

    /// Gives a pod another label, so that the selector no longer matches it.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn relabel(&self, pod: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": "somebody-else" } } }));
        self.pods.patch(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes a pod at once, as a node that was lost would.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn kill(&self, pod: &str) -> anyhow::Result<()> {
        self.pods.delete(pod, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    /// The pods that the selector matches and that are not on their way out, by name.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub async fn pods(&self) -> anyhow::Result<Vec<Pod>> {
        let matching = ListParams::default().labels(&format!("app={}", self.name));
        let mut pods = self.pods.list(&matching).await?.items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods)
    }

    /// Waits until exactly `replicas` pods are ready, all owned by the set, and its status says so.
    ///
    /// # Errors
    ///
    /// When it has not happened by `deadline`: with what there is instead.
    pub async fn converged(&self, replicas: usize, deadline: Duration) -> anyhow::Result<()> {
        let late = |found: &Found| format!("asked for {replicas} replicas; there are {found:?}");
        within(deadline, async || self.found().await, |found| found.is(replicas), late).await
    }

    /// Waits until neither the set nor a pod of it is left.
    ///
    /// # Errors
    ///
    /// When it has not happened by `deadline`.
    pub async fn gone(&self, deadline: Duration) -> anyhow::Result<()> {
        let matching = ListParams::default().labels(&format!("app={}", self.name));
        let look = async || {
            let sets = usize::from(self.sets.get_opt(&self.name).await?.is_some());
            Ok((sets, self.pods.list(&matching).await?.items.len()))
        };
        let late = |(sets, pods): &_| format!("there are still {sets} sets and {pods} pods");
        within(deadline, look, |left| *left == (0, 0), late).await
    }

    async fn pod_becomes(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Pod) -> bool,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let look = async || Ok(self.pods.get(name).await?);
        within(deadline, look, is, |_| format!("{name} is not {what}")).await
    }

    async fn found(&self) -> anyhow::Result<Found> {
        let set = self.sets.get(&self.name).await.context("the set itself")?;
        let uid = set.metadata.uid.unwrap_or_default();
        let status = set.status.unwrap_or_default();
        let pods = self.pods().await?;
        let owned = |pod: &&Pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            owners.any(|owner| owner.uid == uid && owner.controller == Some(true))
        };
        Ok(Found {
            pods: pods.len(),
            owned: pods.iter().filter(owned).count(),
            ready: pods.iter().filter(|pod| is_ready(pod)).count(),
            status_replicas: count(Some(status.replicas)),
            status_ready: count(status.ready_replicas),
        })
    }
}

/// Looks again and again until it is as it should be, but not after `deadline`: then `late` says what there is instead.
async fn within<T>(
    deadline: Duration,
    look: impl AsyncFn() -> anyhow::Result<T>,
    is: impl Fn(&T) -> bool,
    late: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let seen = look().await?;
        if is(&seen) {
            return Ok(());
        }
        ensure!(started.elapsed() <= deadline, "after {deadline:?}: {}", late(&seen));
        tokio::time::sleep(GLANCE).await;
    }
}

/// What a glance at the set and its pods shows.
#[derive(Debug)]
struct Found {
    pods: usize,
    owned: usize,
    ready: usize,
    status_replicas: usize,
    status_ready: usize,
}

impl Found {
    fn is(&self, replicas: usize) -> bool {
        [self.pods, self.owned, self.ready, self.status_replicas, self.status_ready]
            .iter()
            .all(|count| *count == replicas)
    }
}

fn count(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(0)).unwrap_or(0)
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn pod_spec() -> serde_json::Value {
    json!({
        // Gone when asked: nothing runs in these pods that would want to say goodbye.
        "terminationGracePeriodSeconds": 1,
        "containers": [{ "name": "main", "image": "registry.k8s.io/pause:3.10" }],
    })
}
