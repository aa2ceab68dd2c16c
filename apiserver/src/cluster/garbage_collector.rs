//! A simulated garbage collector: deletes dependents whose owners are gone.

mod graph;
mod plan;

use std::fmt;
use std::sync::Arc;

use futures::stream::{self, SelectAll};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::{Api, Client, Result};
use kube_core::ApiResource;
use kube_core::params::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::graph::{FollowedKind, Graph, Owner, Uid};
use self::plan::{Plan, Target};
use super::actor::{Actor, Next, Role};
use super::feed::{Change, feed};
use super::partial_object::PartialObject;
use super::served_kinds::{ServedKind, deletable};
use super::watch::Part;
use super::work_queue::WorkQueue;
use super::{MAX_IN_FLIGHT, with_timeout};

/// A stand-in for the garbage collector of kube-controller-manager. Dropping it stops it.
///
/// * It deletes an object whose owners are all gone. An owner is gone if a watch reported its
///   deletion, or if the server has no object with its name and UID.
/// * An owner that is deleted in the foreground is deleted after the dependents that block it.
/// * An owner that is deleted with `orphan` is deleted after its dependents lose their reference.
/// * If some owners of an object are gone and others are not, it removes the references to those
///   that are gone.
///
/// Every write carries the UID and the resource version of the object; after a conflict it uses the
/// new state. [`start`](Self::start) follows pods and `ReplicaSets`. An owner of a kind that is not
/// followed counts as existing.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> kube_client::Result<()> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::GarbageCollector;
///
/// let server = ApiServer::builder().seed(1).build();
/// let client = server.client_as("garbage-collector");
/// let collector = GarbageCollector::builder(client).every_kind().await?.start();
/// // The test creates and deletes owners here.
/// collector.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the garbage collector"]
pub struct GarbageCollector {
    actor: Actor,
}

/// A builder for a [`GarbageCollector`] that follows other kinds.
#[must_use = "nothing runs until `start` is called"]
pub struct GarbageCollectorBuilder {
    client: Client,
    kinds: Vec<FollowedKind>,
}

/// The state of the garbage collector.
struct Collector {
    client: Client,
    graph: Graph,
    /// Kinds without an initial list. The collector acts once this is empty.
    unlisted: Vec<usize>,
}

/// The result of a request.
enum Outcome {
    Done,
    /// These owners do not exist.
    Absent(Vec<Owner>),
}

// === impl GarbageCollector ===

impl GarbageCollector {
    /// Starts a garbage collector that follows pods and `ReplicaSets`.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let pods = ApiResource::erase::<Pod>(&());
        let replica_sets = ApiResource::erase::<ReplicaSet>(&());
        Self::builder(client).kind(pods).kind(replica_sets).start()
    }

    /// Returns a builder that follows no kind.
    pub fn builder(client: Client) -> GarbageCollectorBuilder {
        GarbageCollectorBuilder { client, kinds: Vec::new() }
    }

    /// Stops the garbage collector and waits for its end. Its requests in flight are dropped.
    ///
    /// # Panics
    ///
    /// Panics if its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// The garbage collector stops even if the future is dropped.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

// === impl GarbageCollectorBuilder ===

impl GarbageCollectorBuilder {
    /// Follows this namespaced kind, as owner and dependent.
    pub fn kind(mut self, resource: ApiResource) -> Self {
        self.kinds.push(FollowedKind { resource, is_namespaced: true });
        self
    }

    /// Follows this cluster-scoped kind, as owner and dependent.
    pub fn cluster_kind(mut self, resource: ApiResource) -> Self {
        self.kinds.push(FollowedKind { resource, is_namespaced: false });
        self
    }

    /// Follows every kind that the server serves now with the verbs list, watch and delete, except
    /// events.
    ///
    /// # Errors
    ///
    /// Returns an error if the discovery request fails.
    ///
    /// # Cancel safety
    ///
    /// The future only reads; dropping it has no effect on the server.
    pub async fn every_kind(mut self) -> Result<Self> {
        for served in deletable(&self.client).await? {
            // Events are served in two groups and own nothing.
            if !served.is_events() {
                let ServedKind { resource, is_namespaced, .. } = served;
                self.kinds.push(FollowedKind { resource, is_namespaced });
            }
        }
        Ok(self)
    }

    /// Starts the garbage collector.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(self) -> GarbageCollector {
        let unlisted = (0..self.kinds.len()).collect();
        let role = Collector { client: self.client, unlisted, graph: Graph::new(self.kinds) };
        let mut changes = SelectAll::new();
        for (index, kind) in role.graph.kinds().iter().enumerate() {
            let api = Api::<PartialObject>::all_with(role.client.clone(), &kind.resource);
            changes.push(feed(api, Part::Metadata).map(move |change| (index, change)).boxed());
        }
        GarbageCollector { actor: Actor::start(role, WorkQueue::new(), changes) }
    }
}

impl fmt::Debug for GarbageCollectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GarbageCollectorBuilder")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

// === impl Collector ===

impl Role for Collector {
    type Key = Uid;
    type Change = (usize, Change<PartialObject>);
    type Answer = Outcome;

    fn observe(
        &mut self,
        (kind, change): (usize, Change<PartialObject>),
        work: &mut WorkQueue<Uid>,
    ) {
        let touched = match change {
            Change::Listed(objects) => {
                self.unlisted.retain(|unlisted| *unlisted != kind);
                self.graph.replace(kind, objects)
            }
            Change::Applied(object) => self.graph.apply(kind, *object),
            Change::Deleted(object) => self.graph.remove(object.metadata.uid.as_deref()),
        };
        for uid in touched {
            work.add(uid);
        }
    }

    fn is_ready(&self) -> bool {
        self.unlisted.is_empty()
    }

    fn next(&mut self, uid: &Uid, _: Instant) -> Next<Outcome> {
        match self.graph.plan(uid) {
            Plan::Nothing => Next::Nothing,
            plan => {
                let requests = Requests { client: self.client.clone(), kinds: self.graph.kinds() };
                Next::Request(requests.carry_out(plan).boxed())
            }
        }
    }

    fn end(&mut self, uid: &Uid, result: Result<Outcome>, work: &mut WorkQueue<Uid>) -> bool {
        match result {
            Ok(Outcome::Done) => true,
            // The owners exist and are not in the graph yet; the key is retried.
            Ok(Outcome::Absent(owners)) if owners.is_empty() => false,
            Ok(Outcome::Absent(owners)) => {
                for owner in owners {
                    self.graph.mark_absent(owner);
                }
                work.add(Arc::clone(uid));
                true
            }
            Err(_) => false,
        }
    }
}

/// The requests of one step.
#[derive(Clone)]
struct Requests {
    client: Client,
    kinds: Arc<[FollowedKind]>,
}

// === impl Requests ===

impl Requests {
    async fn carry_out(self, plan: Plan) -> Result<Outcome> {
        match plan {
            Plan::Nothing => {}
            Plan::CheckOwners(owners) => {
                return self.check_owners(owners).await.map(Outcome::Absent);
            }
            Plan::Delete { target, policy } => self.delete(&target, policy).await?,
            Plan::SetOwners { target, owners } => self.set_owners(&target, &owners).await?,
            Plan::Release { target, finalizers, dependents } => {
                // The finalizer is removed last: until then the work is not lost by a crash.
                let (requests, dependents) = (&self, stream::iter(dependents).map(Ok));
                let set_owners = |(dependent, owners): (Target, Vec<OwnerReference>)| async move {
                    requests.set_owners(&dependent, &owners).await
                };
                dependents.try_for_each_concurrent(MAX_IN_FLIGHT, set_owners).await?;
                self.patch(&target, json!({ "finalizers": finalizers })).await?;
            }
        }
        Ok(Outcome::Done)
    }

    async fn delete(&self, target: &Target, policy: PropagationPolicy) -> Result<()> {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: Some(target.uid.to_string()),
                resource_version: target.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let api = self.api(target.kind, target.namespace.as_deref());
        with_timeout(api.delete(&target.name, &params)).await.map(drop)
    }

    fn api(&self, kind: usize, namespace: Option<&str>) -> Api<PartialObject> {
        let resource = &self.kinds[kind].resource;
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Returns the owners that do not exist.
    async fn check_owners(&self, owners: Vec<Owner>) -> Result<Vec<Owner>> {
        let mut absent = Vec::new();
        for owner in owners {
            let api = self.api(owner.kind, owner.namespace.as_deref());
            let found = with_timeout(api.get_opt(&owner.name)).await?;
            let uid = found.and_then(|object| object.metadata.uid);
            if uid.as_deref() != Some(&*owner.uid) {
                absent.push(owner);
            }
        }
        Ok(absent)
    }

    async fn set_owners(&self, target: &Target, owners: &[OwnerReference]) -> Result<()> {
        self.patch(target, json!({ "ownerReferences": owners })).await
    }

    /// Patches metadata on condition that UID and resource version are unchanged.
    async fn patch(&self, target: &Target, mut metadata: Value) -> Result<()> {
        metadata["uid"] = json!(&*target.uid);
        metadata["resourceVersion"] = json!(target.resource_version);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let api = self.api(target.kind, target.namespace.as_deref());
        with_timeout(api.patch(&target.name, &PatchParams::default(), &patch)).await.map(drop)
    }
}
