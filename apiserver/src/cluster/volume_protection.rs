//! A simulated controller that lets volume claims go once no pod uses them.

use futures::stream;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::actor::Actor;
use super::feed::feed;
use super::passes::{self, Key, keys};
use super::watch::Part;
use super::with_timeout;

/// The finalizer that the API server gives to each claim.
const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// A stand-in for the PVC protection controller of kube-controller-manager. Dropping it stops it.
///
/// The API server gives each `PersistentVolumeClaim` the finalizer `kubernetes.io/pvc-protection`.
/// This controller removes it from a deleted claim as soon as no pod on a node uses the claim.
/// Without it a deleted claim stays, and so does a deleted namespace with a claim.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::VolumeProtection;
/// use k8s_openapi::api::core::v1::PersistentVolumeClaim;
/// use kube_client::Api;
/// use kube_client::api::{DeleteParams, PostParams};
///
/// let server = ApiServer::builder().seed(1).build();
/// let _protection = VolumeProtection::start(server.client_as("volume-protection"));
/// let claims = Api::<PersistentVolumeClaim>::default_namespaced(server.client());
/// let claim = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "data" },
///     "spec": {
///         "accessModes": ["ReadWriteOnce"],
///         "resources": { "requests": { "storage": "1Gi" } },
///     },
/// }))?;
/// claims.create(&PostParams::default(), &claim).await?;
/// claims.delete("data", &DeleteParams::default()).await?;
/// tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// assert!(claims.get_opt("data").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the controller"]
pub struct VolumeProtection {
    actor: Actor,
}

// === impl VolumeProtection ===

impl VolumeProtection {
    /// Starts the controller.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let claims = feed(Api::<PersistentVolumeClaim>::all(client.clone()), Part::Whole);
        let pods = feed(Api::<Pod>::all(client.clone()), Part::Whole);
        let changes = stream::select(
            keys(claims, |claim: &PersistentVolumeClaim| claim.metadata.name.clone()),
            keys(pods, claims_of),
        );
        Self { actor: passes::start(client, changes, release) }
    }

    /// Stops the controller and waits for its end. Its requests in flight are dropped.
    ///
    /// # Panics
    ///
    /// Panics if its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// The controller stops even if the future is dropped.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

/// Returns the names of the claims that a pod uses.
fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| claim_of(pod, volume)).collect()
}

/// Returns the name of the claim of a volume; a generic ephemeral volume has one of its own.
fn claim_of(pod: &Pod, volume: &Volume) -> Option<String> {
    match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-{}", pod.metadata.name.as_deref()?, volume.name)),
        (None, None) => None,
    }
}

/// Removes the finalizer of a deleted claim if no pod uses the claim.
async fn release(client: Client, (namespace, name): Key) -> Result<()> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), &namespace);
    let Some(claim) = with_timeout(claims.get_opt(&name)).await? else { return Ok(()) };
    let mut finalizers = claim.metadata.finalizers.unwrap_or_default();
    if claim.metadata.deletion_timestamp.is_none() || !finalizers.iter().any(|it| it == FINALIZER) {
        return Ok(());
    }
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let pods = with_timeout(pods.list(&ListParams::default())).await?;
    // A kubelet starts no pod with a deleted claim, so a pod without a node does not count.
    let is_on_node = |pod: &&Pod| {
        pod.spec
            .as_ref()
            .and_then(|spec| spec.node_name.as_deref())
            .is_some_and(|it| !it.is_empty())
    };
    if pods.iter().filter(is_on_node).any(|pod| claims_of(pod).contains(&name)) {
        return Ok(());
    }
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    let patch = Patch::Merge(json!({ "metadata": {
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
        "finalizers": finalizers,
    } }));
    match with_timeout(claims.patch(&name, &PatchParams::default(), &patch)).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        patched => patched.map(drop),
    }
}
