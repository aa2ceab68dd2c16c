//! Operations of a user on a `ReplicaSet` or a `ReplicationController` and its pods, with waits for
//! their results.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, ObjectList, Patch, PatchParams,
    PostParams,
};
use homeostat::kube_client::core::Request;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{self as core, ReplicationController};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::pod::Pod;

/// The polling interval of a wait: precise to milliseconds, and little work for the server.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// One `ReplicaSet` named `name` in `namespace`, and the pods whose label `app` is its name. It may
/// be a `ReplicationController` instead.
#[derive(Clone, Debug)]
pub struct ReplicaSets {
    kind: PodOwner,
    sets: Api<DynamicObject>,
    pods: Api<Pod>,
    name: String,
}

/// The kinds that keep a number of equal pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodOwner {
    /// `apps/v1`, with a label selector.
    #[default]
    ReplicaSet,
    /// `v1`, with a map of labels.
    ReplicationController,
}

// === impl PodOwner ===

impl PodOwner {
    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::ReplicaSet => ApiResource::erase::<ReplicaSet>(&()),
            Self::ReplicationController => ApiResource::erase::<ReplicationController>(&()),
        }
    }

    /// Returns the plural name of the resource.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replicasets",
            Self::ReplicationController => "replicationcontrollers",
        }
    }
}

// === impl ReplicaSets ===

impl ReplicaSets {
    /// The `ReplicaSet` `name` in the namespace `default`. Nothing is created yet.
    pub fn named(client: &Client, name: &str) -> Self {
        Self::of_kind(PodOwner::ReplicaSet, client, name)
    }

    /// The object `name` of this kind in the namespace `default`. Nothing is created yet.
    pub fn of_kind(kind: PodOwner, client: &Client, name: &str) -> Self {
        Self {
            kind,
            sets: Api::namespaced_with(client.clone(), "default", &kind.resource()),
            pods: Api::namespaced(client.clone(), "default"),
            name: name.to_owned(),
        }
    }

    /// The same object in another namespace.
    #[must_use]
    pub(crate) fn in_namespace(self, namespace: &str) -> Self {
        let client = self.sets.clone().into_client();
        Self {
            sets: Api::namespaced_with(client.clone(), namespace, &self.kind.resource()),
            pods: Api::namespaced(client, namespace),
            ..self
        }
    }

    /// Creates the set.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create(&self, replicas: usize) -> anyhow::Result<()> {
        let labels = json!({ "app": self.name });
        let selector = match self.kind {
            PodOwner::ReplicaSet => json!({ "matchLabels": labels }),
            PodOwner::ReplicationController => labels.clone(),
        };
        let resource = self.kind.resource();
        let set: DynamicObject = serde_json::from_value(json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": { "name": self.name, "labels": labels },
            "spec": {
                "replicas": replicas,
                "selector": selector,
                "template": { "metadata": { "labels": labels }, "spec": pod_spec() },
            },
        }))?;
        self.sets.create(&PostParams::default(), &set).await?;
        Ok(())
    }

    /// Changes the number of replicas.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.sets.patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the set; its pods are left to the garbage collector.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn delete(&self) -> anyhow::Result<()> {
        self.delete_with(&DeleteParams::background()).await
    }

    /// Deletes the set with these parameters.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub(crate) async fn delete_with(&self, params: &DeleteParams) -> anyhow::Result<()> {
        self.sets.delete(&self.name, params).await?;
        Ok(())
    }

    /// Returns the message of the condition `ReplicaFailure` if that is true.
    pub(crate) async fn failure(&self) -> anyhow::Result<Option<String>> {
        let set = self.sets.get(&self.name).await?;
        let conditions = set.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_failure = |it: &&Value| it["type"] == "ReplicaFailure" && it["status"] == "True";
        let failure = conditions.iter().find(is_failure);
        Ok(failure.map(|it| it["message"].as_str().unwrap_or_default().to_owned()))
    }

    /// Creates a pod without an owner that the selector does not match, and waits until it is
    /// ready.
    ///
    /// It has a high deletion cost, so that a set with one pod too many deletes another one.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server, or an error if the pod is not ready within `timeout`.
    pub async fn create_stray(&self, name: &str, timeout: Duration) -> anyhow::Result<()> {
        let pod: core::Pod = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "labels": { "app": "stray" },
                "annotations": { "controller.kubernetes.io/pod-deletion-cost": "1000" },
            },
            "spec": pod_spec(),
        }))?;
        let pods = Api::<core::Pod>::namespaced(self.pods.clone().into_client(), "default");
        pods.create(&PostParams::default(), &pod).await?;
        self.wait_for_pod(name, "ready", Pod::is_ready, timeout).await
    }

    /// Gives a pod the label that the selector matches.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn label(&self, pod: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": self.name } } }));
        self.pods.patch(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a pod has no owner.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server, or an error if the pod has an owner after `timeout`.
    pub async fn wait_for_release(&self, pod: &str, timeout: Duration) -> anyhow::Result<()> {
        let released = |pod: &Pod| pod.metadata.owner_references.iter().flatten().next().is_none();
        self.wait_for_pod(pod, "released", released, timeout).await
    }

    /// Gives a pod another label, so that the selector no longer matches it.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn relabel(&self, pod: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": "another-set" } } }));
        self.pods.patch(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes a pod without a grace period, as after the loss of its node.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn kill(&self, pod: &str) -> anyhow::Result<()> {
        // `Api::delete` would decode the last state of the pod twice.
        let params = DeleteParams::default().grace_period(0);
        let request = Request::new(self.pods.resource_url()).delete(pod, &params)?;
        self.pods.clone().into_client().request_text(request).await?;
        Ok(())
    }

    /// Returns the pods that the selector matches and that are not being deleted, by name.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn pods(&self) -> anyhow::Result<Vec<Pod>> {
        let matching = ListParams::default().labels(&format!("app={}", self.name));
        // `Api::list` would read all of each pod.
        let request = Request::new(self.pods.resource_url()).list(&matching)?;
        let list = self.pods.clone().into_client().request_text(request).await?;
        let mut pods = homeostat_json::from_str::<ObjectList<Pod>>(&list)?.items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods)
    }

    /// Waits until exactly `replicas` pods are ready and owned by the set, and its status has that
    /// number.
    ///
    /// # Errors
    ///
    /// Returns an error with the actual counts if they differ after `timeout`.
    pub async fn wait_for_replicas(
        &self,
        replicas: usize,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        let late = |found: &Counts| format!("expected {replicas} replicas, found {found:?}");
        poll_until(timeout, async || self.counts().await, |found| found.is(replicas), late).await
    }

    /// Waits until neither the set nor a pod of it is left.
    ///
    /// # Errors
    ///
    /// Returns an error if one is left after `timeout`.
    pub async fn wait_for_deletion(&self, timeout: Duration) -> anyhow::Result<()> {
        let matching = ListParams::default().labels(&format!("app={}", self.name));
        let read = async || {
            let sets = usize::from(self.sets.get_opt(&self.name).await?.is_some());
            Ok((sets, self.pods.list(&matching).await?.items.len()))
        };
        let late = |(sets, pods): &_| format!("{sets} sets and {pods} pods are left");
        poll_until(timeout, read, |left| *left == (0, 0), late).await
    }

    /// Waits until the set is gone. Its pods may be left.
    ///
    /// # Errors
    ///
    /// Returns an error if it is left after `timeout`.
    pub(crate) async fn wait_until_absent(&self, timeout: Duration) -> anyhow::Result<()> {
        let read = async || Ok(self.sets.get_opt(&self.name).await?);
        poll_until(timeout, read, Option::is_none, |_| "the set is left".to_owned()).await
    }

    async fn wait_for_pod(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Pod) -> bool,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        let read = async || Ok(self.pods.get(name).await?);
        poll_until(timeout, read, is, |_| format!("{name} is not {what}")).await
    }

    async fn counts(&self) -> anyhow::Result<Counts> {
        let set = self.sets.get(&self.name).await.context("cannot get the owner of the pods")?;
        let uid = set.metadata.uid.unwrap_or_default();
        let status: ReplicaSetStatus = match set.data.get("status") {
            Some(status) => serde_json::from_value(status.clone())?,
            None => ReplicaSetStatus::default(),
        };
        let pods = self.pods().await?;
        let owned = |pod: &&Pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            owners.any(|owner| owner.uid == uid && owner.controller == Some(true))
        };
        Ok(Counts {
            pods: pods.len(),
            owned: pods.iter().filter(owned).count(),
            ready: pods.iter().filter(|pod| pod.is_ready()).count(),
            status_replicas: count(Some(status.replicas)),
            status_ready: count(status.ready_replicas),
        })
    }
}

/// Polls `read` until `is` holds. After `timeout`, returns an error with the text of `late`.
pub(crate) async fn poll_until<T>(
    timeout: Duration,
    read: impl AsyncFn() -> anyhow::Result<T>,
    is: impl Fn(&T) -> bool,
    late: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let seen = read().await?;
        if is(&seen) {
            return Ok(());
        }
        ensure!(started.elapsed() <= timeout, "after {timeout:?}: {}", late(&seen));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The counts of the set's pods, and those of its status.
#[derive(Debug)]
struct Counts {
    pods: usize,
    owned: usize,
    ready: usize,
    status_replicas: usize,
    status_ready: usize,
}

impl Counts {
    fn is(&self, replicas: usize) -> bool {
        [self.pods, self.owned, self.ready, self.status_replicas, self.status_ready]
            .iter()
            .all(|count| *count == replicas)
    }
}

fn count(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(0)).unwrap_or(0)
}

fn pod_spec() -> Value {
    json!({
        // The pause container needs no time to shut down.
        "terminationGracePeriodSeconds": 1,
        "containers": [{ "name": "main", "image": "registry.k8s.io/pause:3.10" }],
    })
}
