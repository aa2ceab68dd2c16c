//! Dependents go when their owners are gone.

mod graph;
mod plan;

use std::{fmt, sync::Arc};

use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    stream::{self, SelectAll},
};
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube_client::{Api, Client, Result};
use kube_core::{
    ApiResource,
    params::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    graph::{Graph, Kind, Owner, Uid},
    plan::{Plan, Target},
};
use super::{
    MAX_IN_FLIGHT,
    actor::{Actor, Next, Role},
    feed::{Change, feed},
    in_time,
    object::Object,
    served::{Served, deletable},
    work::Work,
};

/// Stands in for the garbage collector of kube-controller-manager; dropping it stops it.
///
/// * An object whose owners are all gone is deleted. Gone means: deleted before its eyes, or not there
///   under that name and UID when the server is asked.
/// * An owner deleted in the foreground goes after the dependents that block it.
/// * An owner deleted with `orphan` goes after its dependents have been told to forget it.
/// * Of several owners, those that are gone are struck off as long as one is left.
///
/// Every write carries the object's UID and resource version: an object that changed since it was
/// looked at is looked at again. It follows pods and `ReplicaSets` unless told otherwise; an owner
/// of another kind counts as there.
#[derive(Debug)]
#[must_use = "dropping it stops it"]
pub struct GarbageCollector {
    actor: Actor,
}

/// Starts a [`GarbageCollector`] that follows other kinds.
#[must_use = "nothing runs until `start` is called"]
pub struct GarbageCollectorBuilder {
    client: Client,
    kinds: Vec<Kind>,
}

/// What it knows.
struct Collecting {
    client: Client,
    graph: Graph,
    /// Kinds whose first list has not come yet. Until there are none nothing is judged.
    unlisted: Vec<usize>,
}

/// What was learnt by a request.
enum Seen {
    Nothing,
    /// These owners are not there.
    Absent(Vec<Owner>),
}

// === impl GarbageCollector ===

impl GarbageCollector {
    /// Starts one that follows pods and `ReplicaSets`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let pods = ApiResource::erase::<Pod>(&());
        let replica_sets = ApiResource::erase::<ReplicaSet>(&());
        Self::builder(client).kind(pods).kind(replica_sets).start()
    }

    /// A builder that follows no kind yet.
    pub fn builder(client: Client) -> GarbageCollectorBuilder {
        GarbageCollectorBuilder { client, kinds: Vec::new() }
    }

    /// Stops it and waits until it is gone. Requests it has in flight are given up.
    ///
    /// # Panics
    ///
    /// If its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// When cancelled it stops all the same.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

// === impl GarbageCollectorBuilder ===

impl GarbageCollectorBuilder {
    /// Follows this namespaced kind, as owner and as dependent.
    pub fn kind(mut self, resource: ApiResource) -> Self {
        self.kinds.push(Kind { resource, is_namespaced: true });
        self
    }

    /// Follows this kind of the whole cluster, as owner and as dependent.
    pub fn cluster_kind(mut self, resource: ApiResource) -> Self {
        self.kinds.push(Kind { resource, is_namespaced: false });
        self
    }

    /// Follows every kind that the server has now and that can be listed, watched and deleted.
    ///
    /// # Errors
    ///
    /// When the server does not say which kinds it has.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, nothing has happened.
    pub async fn every_kind(mut self) -> Result<Self> {
        for served in deletable(&self.client).await? {
            // One event is told in two groups, and nobody owns an event.
            if !served.is_events() {
                let Served { resource, is_namespaced, .. } = served;
                self.kinds.push(Kind { resource, is_namespaced });
            }
        }
        Ok(self)
    }

    /// Starts it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(self) -> GarbageCollector {
        let unlisted = (0..self.kinds.len()).collect();
        let role = Collecting { client: self.client, unlisted, graph: Graph::new(self.kinds) };
        let mut changes = SelectAll::new();
        for (index, kind) in role.graph.kinds().iter().enumerate() {
            let api = Api::<Object>::all_with(role.client.clone(), &kind.resource);
            changes.push(feed(api).map(move |change| (index, change)).boxed());
        }
        GarbageCollector { actor: Actor::start(role, Work::new(), changes) }
    }
}

impl fmt::Debug for GarbageCollectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GarbageCollectorBuilder")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

// === impl Collecting ===

impl Role for Collecting {
    type Key = Uid;
    type Change = (usize, Change<Object>);
    type Answer = Seen;

    fn observe(&mut self, (kind, change): (usize, Change<Object>), work: &mut Work<Uid>) {
        let touched = match change {
            Change::Listed(objects) => {
                self.unlisted.retain(|unlisted| *unlisted != kind);
                self.graph.replace(kind, objects)
            }
            Change::Applied(object) => self.graph.apply(kind, object),
            Change::Deleted(object) => self.graph.remove(object.metadata.uid.as_deref()),
        };
        for uid in touched {
            work.add(uid);
        }
    }

    fn is_ready(&self) -> bool {
        self.unlisted.is_empty()
    }

    fn next(&mut self, uid: &Uid, _: Instant) -> Next<Seen> {
        match self.graph.plan(uid) {
            Plan::Nothing => Next::Nothing,
            plan => {
                let requests = Requests { client: self.client.clone(), kinds: self.graph.kinds() };
                Next::Request(requests.carry_out(plan).boxed())
            }
        }
    }

    fn end(&mut self, uid: &Uid, result: Result<Seen>, work: &mut Work<Uid>) -> bool {
        match result {
            Ok(Seen::Nothing) => true,
            // One that is there and not in the graph yet will come; look again in a while.
            Ok(Seen::Absent(owners)) if owners.is_empty() => false,
            Ok(Seen::Absent(owners)) => {
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
    kinds: Arc<[Kind]>,
}

// === impl Requests ===

impl Requests {
    async fn carry_out(self, plan: Plan) -> Result<Seen> {
        match plan {
            Plan::Nothing => {}
            Plan::Look(owners) => return self.look(owners).await.map(Seen::Absent),
            Plan::Delete { target, policy } => self.delete(&target, policy).await?,
            Plan::SetOwners { target, owners } => self.set_owners(&target, &owners).await?,
            Plan::Release { target, finalizers, dependents } => {
                // The finalizer goes last: until then the owner remembers what is to be done.
                let (requests, dependents) = (&self, stream::iter(dependents).map(Ok));
                let forget = |(dependent, owners): (Target, Vec<OwnerReference>)| async move {
                    requests.set_owners(&dependent, &owners).await
                };
                dependents.try_for_each_concurrent(MAX_IN_FLIGHT, forget).await?;
                self.patch(&target, json!({ "finalizers": finalizers })).await?;
            }
        }
        Ok(Seen::Nothing)
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
        in_time(api.delete(&target.name, &params)).await.map(drop)
    }

    fn api(&self, kind: usize, namespace: Option<&str>) -> Api<Object> {
        let resource = &self.kinds[kind].resource;
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Which of these owners are not there.
    async fn look(&self, owners: Vec<Owner>) -> Result<Vec<Owner>> {
        let mut absent = Vec::new();
        for owner in owners {
            let api = self.api(owner.kind, owner.namespace.as_deref());
            let found = in_time(api.get_opt(&owner.name)).await?;
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

    /// Changes metadata, provided that the object is still what was looked at.
    async fn patch(&self, target: &Target, mut metadata: Value) -> Result<()> {
        metadata["uid"] = json!(&*target.uid);
        metadata["resourceVersion"] = json!(target.resource_version);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let api = self.api(target.kind, target.namespace.as_deref());
        in_time(api.patch(&target.name, &PatchParams::default(), &patch)).await.map(drop)
    }
}
