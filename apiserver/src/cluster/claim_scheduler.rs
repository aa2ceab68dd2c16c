//! A simulated scheduler for pods with resource claims.

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube_client::{Api, Client, Result};
use kube_core::params::{Patch, PatchParams, PostParams};
use kube_core::response::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::actor::{Actor, Next, Role};
use super::feed::{Change, feed};
use super::watch::Part;
use super::with_timeout;
use super::work_queue::WorkQueue;

/// The finalizer that the scheduler sets before it allocates.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// A stand-in for the scheduler, for pods that use resource claims. Dropping it stops it.
///
/// For a pod without a node it waits until the names of all claims are known and the claims exist.
/// For each claim it sets the finalizer, then allocates one device per request and reserves the
/// claim for the pod in one write; a claim that is allocated is only reserved. At last it binds the
/// pod to `node-0`. It needs no `DeviceClass` and no `ResourceSlice`: devices are never short.
///
/// A [`Kubelet`](super::Kubelet) leaves the binding of pods with claims to it, and starts them once
/// they are bound.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::ClaimScheduler;
/// use k8s_openapi::api::{core::v1::Pod, resource::v1::ResourceClaim};
/// use kube_client::{Api, api::PostParams};
///
/// let server = ApiServer::builder().seed(1).build();
/// let _scheduler = ClaimScheduler::start(server.client_as("scheduler"));
/// let claims = Api::<ResourceClaim>::default_namespaced(server.client());
/// let claim = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "gpu"},
///     "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
/// }))?;
/// claims.create(&PostParams::default(), &claim).await?;
/// let pods = Api::<Pod>::default_namespaced(server.client());
/// let pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"},
///     "spec": {
///         "resourceClaims": [{"name": "c", "resourceClaimName": "gpu"}],
///         "containers": [{"name": "c", "image": "i"}],
///     },
/// }))?;
/// pods.create(&PostParams::default(), &pod).await?;
/// tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// let status = claims.get("gpu").await?.status.unwrap_or_default();
/// assert_eq!(status.reserved_for.unwrap_or_default()[0].name, "web");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the scheduler"]
pub struct ClaimScheduler {
    actor: Actor,
}

/// The role of the actor.
struct Scheduler {
    client: Client,
}

/// The namespace and name of a pod.
type Key = (String, String);

/// The state of a pod after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheduled {
    /// The pod is bound, or it does not need this scheduler.
    Done,
    /// A claim is missing.
    Waits,
}

// === impl ClaimScheduler ===

impl ClaimScheduler {
    /// Starts the scheduler.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let changes = feed(Api::<Pod>::all(client.clone()), Part::Whole);
        Self { actor: Actor::start(Scheduler { client }, WorkQueue::new(), changes) }
    }

    /// Stops the scheduler and waits for its end. Its requests in flight are dropped.
    ///
    /// # Panics
    ///
    /// Panics if its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// The scheduler stops even if the future is dropped.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

// === impl Scheduler ===

impl Role for Scheduler {
    type Key = Key;
    type Change = Change<Pod>;
    type Answer = Scheduled;

    fn observe(&mut self, change: Change<Pod>, work: &mut WorkQueue<Key>) {
        let pods = match change {
            Change::Listed(pods) => pods,
            Change::Applied(pod) => vec![*pod],
            Change::Deleted(_) => return,
        };
        for pod in pods.iter().filter(|pod| waits_for_claims(pod)) {
            if let (Some(namespace), Some(name)) = (&pod.metadata.namespace, &pod.metadata.name) {
                work.add((namespace.clone(), name.clone()));
            }
        }
    }

    fn next(&mut self, (namespace, name): &Key, _: Instant) -> Next<Scheduled> {
        let pods = Api::namespaced(self.client.clone(), namespace);
        let claims = Api::namespaced(self.client.clone(), namespace);
        Next::Request(schedule(pods, claims, name.clone()).boxed())
    }

    fn end(&mut self, _: &Key, result: Result<Scheduled>, _: &mut WorkQueue<Key>) -> bool {
        matches!(result, Ok(Scheduled::Done))
    }
}

/// Returns true if the pod has claims and can be bound.
fn waits_for_claims(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())
        && spec.node_name.as_ref().is_none_or(String::is_empty)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Allocates and reserves the claims of a pod, and binds it.
async fn schedule(pods: Api<Pod>, claims: Api<ResourceClaim>, name: String) -> Result<Scheduled> {
    // The current pod: its status may name more claims than the one that the watch delivered.
    let Some(pod) = with_timeout(pods.get_opt(&name)).await?.filter(waits_for_claims) else {
        return Ok(Scheduled::Done);
    };
    let Some(names) = claim_names(&pod) else { return Ok(Scheduled::Waits) };
    let mut found = Vec::new();
    for name in names {
        match with_timeout(claims.get_opt(&name)).await? {
            Some(claim) if claim.metadata.deletion_timestamp.is_none() => found.push(claim),
            _ => return Ok(Scheduled::Waits),
        }
    }
    for claim in found {
        reserve(&claims, claim, &pod).await?;
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
    });
    let params = PostParams::default();
    let bound: Status =
        with_timeout(pods.create_subresource("binding", &name, &params, &binding)).await?;
    tracing::trace!(?bound, pod = name, "bound the pod");
    Ok(Scheduled::Done)
}

/// Returns the names of the claims that the pod needs, or `None` if one is not known yet.
fn claim_names(pod: &Pod) -> Option<Vec<String>> {
    let status = pod.status.clone().unwrap_or_default();
    let recorded = status.resource_claim_statuses.unwrap_or_default();
    let mut names = Vec::new();
    for entry in pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten()) {
        if let Some(name) = &entry.resource_claim_name {
            names.push(name.clone());
        } else {
            let recorded = recorded.iter().find(|status| status.name == entry.name)?;
            names.extend(recorded.resource_claim_name.clone());
        }
    }
    Some(names)
}

/// Sets the finalizer, allocates the claim and reserves it for the pod. Each write fails with a
/// conflict if the claim has changed since it was read.
async fn reserve(claims: &Api<ResourceClaim>, mut claim: ResourceClaim, pod: &Pod) -> Result<()> {
    let name = claim.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::default();
    let mut finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
        let version = &claim.metadata.resource_version;
        let metadata = json!({"resourceVersion": version, "finalizers": finalizers});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        claim = with_timeout(claims.patch(&name, &params, &patch)).await?;
    }
    let mut status = serde_json::Map::new();
    let current = claim.status.clone().unwrap_or_default();
    if current.allocation.is_none() {
        status.insert("allocation".to_owned(), allocation(&claim));
    }
    let mut consumers = current.reserved_for.unwrap_or_default();
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    if consumers.iter().all(|consumer| consumer.uid != uid) {
        consumers.push(k8s_openapi::api::resource::v1::ResourceClaimConsumerReference {
            api_group: None,
            name: pod.metadata.name.clone().unwrap_or_default(),
            resource: "pods".to_owned(),
            uid,
        });
        status.insert("reservedFor".to_owned(), json!(consumers));
    }
    if status.is_empty() {
        return Ok(());
    }
    let version = &claim.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
    with_timeout(claims.patch_status(&name, &params, &Patch::Merge(patch))).await.map(drop)
}

/// Returns an allocation with one device per request.
fn allocation(claim: &ResourceClaim) -> Value {
    let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    let requests = devices.and_then(|devices| devices.requests.as_ref()).into_iter().flatten();
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let results = requests.enumerate().map(|(n, request)| {
        let first = request.first_available.iter().flatten().next();
        let request = match first {
            Some(first) => format!("{}/{}", request.name, first.name),
            None => request.name.clone(),
        };
        json!({"request": request, "driver": "devices.example.com", "pool": name,
               "device": format!("device-{n}")})
    });
    json!({"devices": {"results": results.collect::<Vec<_>>()}})
}
