//! Requests of upstream's integration tests, with waits for their results.

use std::time::Duration;

use anyhow::Context as _;
use homeostat::kube_client::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use crate::replica_sets::poll_until;
use crate::{PodOwner, World};

/// Upstream waits for 60 s.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The namespace `default` with owners of one kind, and the pods whose label `foo` is `bar`.
pub(super) struct Cluster {
    kind: PodOwner,
    pub(super) owners: Api<DynamicObject>,
    pub(super) pods: Api<Pod>,
}

// === impl Cluster ===

impl Cluster {
    /// Returns the cluster of `world`, whose kubelet and garbage collector are stopped, as in
    /// upstream's tests.
    pub(super) fn of(world: &mut World) -> Self {
        world.stop_helpers();
        let kind = world.pod_owner();
        let client = world.user().clone();
        let owners = Api::default_namespaced_with(client.clone(), &kind.resource());
        Self { kind, owners, pods: Api::default_namespaced(client) }
    }

    /// Returns `apiVersion` and `kind` of the owners.
    pub(super) fn api_version_and_kind(&self) -> (String, String) {
        let resource = self.kind.resource();
        (resource.api_version, resource.kind)
    }

    /// Returns an owner that selects `foo=bar`.
    pub(super) fn owner(&self, name: &str, replicas: usize) -> Value {
        let (api_version, kind) = self.api_version_and_kind();
        let labels = json!({ "foo": "bar" });
        let selector = match self.kind {
            PodOwner::ReplicaSet => json!({ "matchLabels": labels }),
            PodOwner::ReplicationController => labels.clone(),
        };
        json!({
            "apiVersion": api_version, "kind": kind, "metadata": { "name": name },
            "spec": {
                "replicas": replicas, "selector": selector,
                "template": { "metadata": { "labels": labels }, "spec": pod_spec() },
            },
        })
    }

    /// Creates an owner, and returns its UID.
    pub(super) async fn create(&self, owner: Value) -> anyhow::Result<String> {
        let owner: DynamicObject = serde_json::from_value(owner)?;
        let created = self.owners.create(&PostParams::default(), &owner).await?;
        created.metadata.uid.context("the server gives a UID")
    }

    pub(super) async fn patch(&self, name: &str, patch: Value) -> anyhow::Result<()> {
        self.owners.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(super) async fn scale(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        self.patch(name, json!({ "spec": { "replicas": replicas } })).await
    }

    /// Waits until the status has the number of replicas.
    pub(super) async fn wait_until_stable(
        &self,
        name: &str,
        replicas: usize,
    ) -> anyhow::Result<()> {
        let wanted = i32::try_from(replicas)?;
        self.wait_for_status(name, |status| status.replicas == wanted).await
    }

    pub(super) async fn wait_for_status(
        &self,
        name: &str,
        is: impl Fn(&ReplicaSetStatus) -> bool,
    ) -> anyhow::Result<()> {
        let read = async || self.status(name).await;
        poll_until(TIMEOUT, read, is, |status| format!("{name} has {status:?}")).await
    }

    pub(super) async fn status(&self, name: &str) -> anyhow::Result<ReplicaSetStatus> {
        let owner = self.owners.get(name).await?;
        let status = owner.data.get("status").cloned();
        Ok(status.map(serde_json::from_value).transpose()?.unwrap_or_default())
    }

    /// Creates a pod that the owners select.
    pub(super) async fn create_pod(
        &self,
        name: &str,
        owners: Vec<OwnerReference>,
    ) -> anyhow::Result<()> {
        let mut pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "foo": "bar" } }, "spec": pod_spec(),
        }))?;
        pod.metadata.owner_references = Some(owners);
        self.pods.create(&PostParams::default(), &pod).await?;
        Ok(())
    }

    pub(super) async fn patch_pod(&self, name: &str, patch: Value) -> anyhow::Result<()> {
        self.pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(super) async fn patch_pod_status(&self, name: &str, status: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.pods.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(super) async fn delete_pod(&self, name: &str, grace_period: u32) -> anyhow::Result<()> {
        let params = DeleteParams::default().grace_period(grace_period);
        self.pods.delete(name, &params).await?;
        Ok(())
    }

    /// Returns the pods with the label `foo=bar`, also those that are being deleted.
    pub(super) async fn selected_pods(&self) -> anyhow::Result<Vec<Pod>> {
        Ok(self.pods.list(&ListParams::default().labels("foo=bar")).await?.items)
    }

    /// Returns the names of [`selected_pods`](Self::selected_pods), sorted.
    pub(super) async fn pod_names(&self) -> anyhow::Result<Vec<String>> {
        let pods = self.selected_pods().await?;
        Ok(pods.into_iter().filter_map(|pod| pod.metadata.name).collect())
    }

    pub(super) async fn wait_for_pods(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let read = async || self.pod_names().await;
        let late = |names: &Vec<_>| format!("expected {count} pods, found {names:?}");
        poll_until(TIMEOUT, read, |names| names.len() == count, late).await?;
        self.pod_names().await
    }

    /// Waits until there are `count` pods, and all belong to this controller.
    pub(super) async fn wait_for_pods_of(&self, uid: &str, count: usize) -> anyhow::Result<()> {
        let are_owned = |pods: &Vec<Pod>| {
            pods.len() == count && pods.iter().all(|pod| controller_uid(pod) == Some(uid))
        };
        let late = |pods: &Vec<Pod>| {
            let owners: Vec<_> = pods.iter().map(controller_uid).collect();
            format!("expected {count} pods of {uid}, found {owners:?}")
        };
        poll_until(TIMEOUT, async || self.selected_pods().await, are_owned, late).await
    }

    pub(super) async fn wait_for_pod(
        &self,
        name: &str,
        is: impl Fn(&Pod) -> bool,
    ) -> anyhow::Result<()> {
        let read = async || Ok(self.pods.get(name).await?);
        let late = |pod: &Pod| format!("{name} has {:?}, {:?}", pod.metadata, pod.status);
        poll_until(TIMEOUT, read, is, late).await
    }
}

/// Returns the UID of the pod's controller.
pub(super) fn controller_uid(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.map(|owner| owner.uid.as_str())
}

fn pod_spec() -> Value {
    json!({ "containers": [{ "name": "fake-name", "image": "fakeimage" }] })
}
