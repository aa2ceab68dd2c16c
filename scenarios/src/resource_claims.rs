//! Operations of a user on pods with resource claims, with waits for their results.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use homeostat::kube_client::core::NamespaceResourceScope;
use homeostat::kube_client::{Client, Resource};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The polling interval of a wait.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The timeout of a wait: longer than any back-off of a few failures.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The finalizer that the scheduler sets.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// Pods, claims and templates of one namespace.
#[derive(Clone, Debug)]
pub struct ResourceClaims {
    /// The pods.
    pub pods: Api<Pod>,
    /// The claims.
    pub claims: Api<ResourceClaim>,
    templates: Api<ResourceClaimTemplate>,
    events: Api<Event>,
}

/// Returns the spec of a claim for one device.
fn one_device() -> Value {
    json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}})
}

/// Returns a pod with these entries of `spec.resourceClaims`.
pub fn pod_with(name: &str, entries: &[Value]) -> Value {
    let containers = json!([{"name": "c", "image": "i"}]);
    json!({
        "metadata": {"name": name},
        "spec": {
            "resourceClaims": entries, "containers": containers,
            "terminationGracePeriodSeconds": 0,
        },
    })
}

/// Returns a pod with `count` entries of the template `t`, named `e0`, `e1` and so on.
pub fn pod(name: &str, count: usize) -> Value {
    let entry = |n| json!({"name": format!("e{n}"), "resourceClaimTemplateName": "t"});
    pod_with(name, &(0..count).map(entry).collect::<Vec<_>>())
}

/// Returns a pod that uses the claim `claim`.
pub fn pod_using(name: &str, claim: &str) -> Value {
    pod_with(name, &[json!({"name": "e", "resourceClaimName": claim})])
}

/// Returns `pod`, bound to a node without the scheduler.
pub fn on_node(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("node-0");
    pod
}

// === impl ResourceClaims ===

impl ResourceClaims {
    /// Returns the operations of this client in the namespace `default`. Nothing is created yet.
    pub fn new(client: &Client) -> Self {
        Self::in_namespace(client, "default")
    }

    /// Returns the operations of this client in a namespace. Nothing is created yet.
    pub fn in_namespace(client: &Client, namespace: &str) -> Self {
        Self {
            pods: Api::namespaced(client.clone(), namespace),
            claims: Api::namespaced(client.clone(), namespace),
            templates: Api::namespaced(client.clone(), namespace),
            events: Api::namespaced(client.clone(), namespace),
        }
    }

    /// Creates the template `t`.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_template(&self) -> anyhow::Result<()> {
        self.create_template_for(&one_device()).await
    }

    /// Creates the template `t` with this spec of its claims.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_template_for(&self, spec: &Value) -> anyhow::Result<()> {
        let metadata = json!({"labels": {"app": "web"}, "annotations": {"note": "kept"}});
        let spec = json!({"metadata": metadata, "spec": spec});
        create(&self.templates, &json!({"metadata": {"name": "t"}, "spec": spec})).await?;
        Ok(())
    }

    /// Creates a claim with this metadata.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_claim(&self, metadata: &Value) -> anyhow::Result<ResourceClaim> {
        create(&self.claims, &json!({"metadata": metadata, "spec": one_device()})).await
    }

    /// Creates a pod.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_pod(&self, pod: &Value) -> anyhow::Result<Pod> {
        create(&self.pods, pod).await
    }

    /// Sets the finalizer and allocates a device, as the scheduler does.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn allocate(&self, claim: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
        self.claims.patch(claim, &PatchParams::default(), &patch).await?;
        let device = json!({"request": "r", "driver": "devices.example.com", "pool": "p",
                            "device": "d"});
        self.patch_claim_status(claim, &json!({"allocation": {"devices": {"results": [device]}}}))
            .await
    }

    /// Patches the status of a claim.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn patch_claim_status(&self, claim: &str, status: &Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.claims.patch_status(claim, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Patches the status of a pod.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn patch_pod_status(&self, pod: &str, status: &Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.pods.patch_status(pod, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Ends a pod with success.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn finish(&self, pod: &str) -> anyhow::Result<()> {
        self.patch_pod_status(pod, &json!({"phase": "Succeeded"})).await
    }

    /// Deletes a pod without a grace period.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn kill(&self, pod: &str) -> anyhow::Result<()> {
        self.pods.delete(pod, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    /// Returns the recorded claims of a pod by entry, in the order of the status.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn recorded(&self, pod: &str) -> anyhow::Result<Vec<(String, String)>> {
        let status = self.pods.get(pod).await?.status.unwrap_or_default();
        let statuses = status.resource_claim_statuses.unwrap_or_default().into_iter();
        Ok(statuses.filter_map(|it| Some((it.name, it.resource_claim_name?))).collect())
    }

    /// Waits until `count` claims of the pod are recorded, and returns their names.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server, or that it did not happen in time.
    pub async fn wait_for_names(&self, pod: &str, count: usize) -> anyhow::Result<Vec<String>> {
        self.wait("claims are recorded", async || Ok(self.recorded(pod).await?.len() == count))
            .await?;
        Ok(self.recorded(pod).await?.into_iter().map(|(_, claim)| claim).collect())
    }

    /// Returns the names of all claims.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn names(&self) -> anyhow::Result<Vec<String>> {
        let claims = self.claims.list(&ListParams::default()).await?;
        Ok(claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect())
    }

    /// Returns the messages of the events of failed creations.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn events(&self) -> anyhow::Result<Vec<String>> {
        let events = self.events.list(&ListParams::default()).await?.items.into_iter();
        let reason = Some("FailedResourceClaimCreation");
        let failed = events.filter(|event| event.reason.as_deref() == reason);
        Ok(failed.filter_map(|event| event.message).collect())
    }

    /// Returns the names of the consumers of a claim.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn consumers(&self, claim: &str) -> anyhow::Result<Vec<String>> {
        let status = self.claims.get(claim).await?.status.unwrap_or_default();
        Ok(status.reserved_for.unwrap_or_default().into_iter().map(|it| it.name).collect())
    }

    /// Waits until these are the consumers of a claim, in any order.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server, or that it did not happen in time.
    pub async fn wait_for_consumers(&self, claim: &str, pods: &[&str]) -> anyhow::Result<()> {
        self.wait("the claim has the consumers", async || {
            let mut consumers = self.consumers(claim).await?;
            consumers.sort();
            Ok(consumers == pods)
        })
        .await
    }

    /// Waits until the claim is neither allocated nor protected.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server, or that it did not happen in time.
    pub async fn wait_for_deallocation(&self, claim: &str) -> anyhow::Result<()> {
        self.wait("the claim is deallocated", async || {
            let claim = self.claims.get(claim).await?;
            let is_allocated = claim.status.is_some_and(|status| status.allocation.is_some());
            Ok(!is_allocated && claim.metadata.finalizers.unwrap_or_default().is_empty())
        })
        .await
    }

    /// Waits until these are all claims.
    ///
    /// # Errors
    ///
    /// Returns an error of the API server, or that it did not happen in time.
    pub async fn wait_for_claims(&self, claims: &[&str]) -> anyhow::Result<()> {
        self.wait("the claims are as expected", async || Ok(self.names().await? == claims)).await
    }

    /// Waits until `is_done` returns true.
    ///
    /// # Errors
    ///
    /// Returns the error of `is_done`, or that it did not happen in time.
    pub async fn wait(
        &self,
        what: &str,
        is_done: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !is_done().await? {
            if Instant::now() > deadline {
                let claims = self.claims.list(&ListParams::default()).await?.items;
                let claims = serde_json::to_string(&claims).context("claims are JSON")?;
                ensure!(false, "{what}: not within {TIMEOUT:?}; claims: {claims}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

async fn create<K>(api: &Api<K>, object: &Value) -> anyhow::Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object.clone())?;
    Ok(api.create(&PostParams::default(), &object).await?)
}
