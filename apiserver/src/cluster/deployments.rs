//! A simulated Deployment controller: a `ReplicaSet` per template, and the status.

use futures::stream;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::{Api, Client, Result};
use kube_core::params::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::actor::Actor;
use super::feed::feed;
use super::passes::{self, Key, keys};
use super::watch::Part;
use super::with_timeout;

/// The label of a `ReplicaSet` and its pods: the hash of their template.
const HASH_LABEL: &str = "pod-template-hash";

/// A stand-in for the Deployment controller of kube-controller-manager. Dropping it stops it.
///
/// It creates one `ReplicaSet` for the template of each Deployment, gives it the Deployment's
/// replicas, and copies the sums of the `ReplicaSet`s' statuses. After a change of the template it
/// scales the earlier `ReplicaSet`s to 0 at once: there is no rollout, no history and no condition.
///
/// The pods need a `ReplicaSet` controller, such as `homeostat-replicaset`, and a
/// [`Kubelet`](super::Kubelet).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::DeploymentController;
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use kube_client::Api;
/// use kube_client::api::{ListParams, PostParams};
///
/// let server = ApiServer::builder().seed(1).build();
/// let _controller = DeploymentController::start(server.client_as("deployment-controller"));
/// let deployment: Deployment = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "web" },
///     "spec": {
///         "replicas": 3,
///         "selector": { "matchLabels": { "app": "web" } },
///         "template": {
///             "metadata": { "labels": { "app": "web" } },
///             "spec": { "containers": [{ "name": "c", "image": "i" }] },
///         },
///     },
/// }))?;
/// let deployments = Api::<Deployment>::default_namespaced(server.client());
/// deployments.create(&PostParams::default(), &deployment).await?;
/// tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// let sets = Api::<ReplicaSet>::default_namespaced(server.client());
/// let sets = sets.list(&ListParams::default()).await?.items;
/// assert_eq!(sets[0].spec.replicas, Some(3));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the controller"]
pub struct DeploymentController {
    actor: Actor,
}

// === impl DeploymentController ===

impl DeploymentController {
    /// Starts the controller.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let deployments = feed(Api::<Deployment>::all(client.clone()), Part::Whole);
        let sets = feed(Api::<ReplicaSet>::all(client.clone()), Part::Whole);
        let changes = stream::select(
            keys(deployments, |it: &Deployment| it.metadata.name.clone()),
            keys(sets, owner),
        );
        Self { actor: passes::start(client, changes, deploy) }
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

/// Returns the name of the Deployment that controls `set`.
fn owner(set: &ReplicaSet) -> Option<String> {
    let mut owners = set.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.filter(|owner| owner.kind == "Deployment").map(|owner| owner.name.clone())
}

/// Creates and scales the `ReplicaSet`s of one Deployment, and writes its status.
async fn deploy(client: Client, (namespace, name): Key) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), &namespace);
    let sets = Api::<ReplicaSet>::namespaced(client, &namespace);
    let Some(deployment) = with_timeout(deployments.get_opt(&name)).await? else { return Ok(()) };
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let spec = &deployment.spec;
    let mut owned = with_timeout(sets.list(&ListParams::default())).await?.items;
    owned.retain(|set| {
        let mut owners = set.metadata.owner_references.iter().flatten();
        owners.any(|owner| Some(&owner.uid) == deployment.metadata.uid.as_ref())
    });
    let current = replica_set_of(&deployment, spec);
    if !owned.iter().any(|set| set.metadata.name == current.metadata.name) {
        owned.push(with_timeout(sets.create(&PostParams::default(), &current)).await?);
    }
    for set in &owned {
        let is_current = set.metadata.name == current.metadata.name;
        scale(&sets, set, if is_current { spec.replicas.unwrap_or(1) } else { 0 }).await?;
    }
    let status = status_of(&deployment, &owned, &current);
    if deployment.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let patch = Patch::Merge(json!({
        "metadata": { "uid": deployment.metadata.uid },
        "status": {
            "observedGeneration": status.observed_generation,
            "replicas": status.replicas,
            "updatedReplicas": status.updated_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
        },
    }));
    let params = PatchParams::default();
    with_timeout(deployments.patch_status(&name, &params, &patch)).await.map(drop)
}

/// Gives `set` this number of replicas, unless it has it.
async fn scale(sets: &Api<ReplicaSet>, set: &ReplicaSet, replicas: i32) -> Result<()> {
    if set.spec.replicas == Some(replicas) {
        return Ok(());
    }
    let uid = &set.metadata.uid;
    let patch = json!({ "metadata": { "uid": uid }, "spec": { "replicas": replicas } });
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams::default();
    with_timeout(sets.patch(name, &params, &Patch::Merge(patch))).await.map(drop)
}

/// Returns the `ReplicaSet` of the Deployment's present template.
fn replica_set_of(deployment: &Deployment, spec: &DeploymentSpec) -> ReplicaSet {
    let name = deployment.metadata.name.clone().unwrap_or_default();
    let hash = hash(&serde_json::to_string(&spec.template).unwrap_or_default());
    let (mut selector, mut template) = (spec.selector.clone(), spec.template.clone());
    let label = (HASH_LABEL.to_owned(), hash.clone());
    selector.match_labels.get_or_insert_default().extend([label.clone()]);
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels.get_or_insert_default().extend([label]);
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            labels: metadata.labels.clone(),
            owner_references: Some(vec![OwnerReference {
                controller: Some(true),
                block_owner_deletion: Some(true),
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                name,
                uid: deployment.metadata.uid.clone().unwrap_or_default(),
            }]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}

/// Returns the status of `deployment`: the sums over its `ReplicaSet`s.
fn status_of(
    deployment: &Deployment,
    owned: &[ReplicaSet],
    current: &ReplicaSet,
) -> DeploymentStatus {
    let mut status = deployment.status.clone().unwrap_or_default();
    let (mut replicas, mut updated, mut ready, mut available) = (0, 0, 0, 0);
    for set in owned {
        let Some(of_set) = &set.status else { continue };
        replicas += of_set.replicas;
        ready += of_set.ready_replicas.unwrap_or(0);
        available += of_set.available_replicas.unwrap_or(0);
        if set.metadata.name == current.metadata.name {
            updated = of_set.replicas;
        }
    }
    // The API omits a count of 0.
    let count = |count: i32| Some(count).filter(|count| *count != 0);
    status.observed_generation = deployment.metadata.generation;
    status.replicas = count(replicas);
    status.updated_replicas = count(updated);
    status.ready_replicas = count(ready);
    status.available_replicas = count(available);
    status
}

/// Returns the FNV-1a hash of `text` in hexadecimal.
fn hash(text: &str) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}
