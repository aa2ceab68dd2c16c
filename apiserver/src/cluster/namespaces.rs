//! A namespace that is deleted is emptied, and then it goes.

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{DeleteParams, ListParams, PostParams};
use tokio::time::Instant;

use super::{
    actor::{Actor, Next, Role},
    feed::{Change, feed},
    in_time,
    object::Object,
    served::{Served, deletable},
    work::Work,
};

/// The finalizer in `spec.finalizers` that is this controller's to remove.
const KUBERNETES: &str = "kubernetes";

/// Stands in for the namespace controller of kube-controller-manager; dropping it stops it.
///
/// A namespace that is being deleted is emptied: its pods first, and when none is left everything else that the server
/// says can be deleted. What has a finalizer, or a grace period, is waited for. Then the namespace loses the finalizer
/// `kubernetes` of its spec, and with it, unless it has others, its existence.
///
/// It asks again with back-off, up to every five seconds, for as long as something is left.
#[derive(Debug)]
#[must_use = "dropping it stops it"]
pub struct NamespaceController {
    actor: Actor,
}

/// What it needs to know.
struct Emptying {
    client: Client,
}

/// How far a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emptied {
    /// There is nothing to do for it, or it is done.
    Done,
    /// Something is in it yet.
    NotYet,
}

// === impl NamespaceController ===

impl NamespaceController {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let changes = feed(Api::<Namespace>::all(client.clone()));
        Self { actor: Actor::start(Emptying { client }, Work::new(), changes) }
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

// === impl Emptying ===

impl Role for Emptying {
    type Key = String;
    type Change = Change<Namespace>;
    type Answer = Emptied;

    fn observe(&mut self, change: Change<Namespace>, work: &mut Work<String>) {
        let namespaces = match change {
            Change::Listed(namespaces) => namespaces,
            Change::Applied(namespace) => vec![namespace],
            Change::Deleted(_) => return,
        };
        for namespace in namespaces.iter().filter(|namespace| is_ours(namespace)) {
            if let Some(name) = &namespace.metadata.name {
                work.add(name.clone());
            }
        }
    }

    fn next(&mut self, name: &String, _: Instant) -> Next<Emptied> {
        Next::Request(empty(self.client.clone(), name.clone()).boxed())
    }

    fn end(&mut self, _: &String, result: Result<Emptied>, _: &mut Work<String>) -> bool {
        matches!(result, Ok(Emptied::Done))
    }
}

/// Whether it is being deleted and waits for us.
fn is_ours(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref());
    namespace.metadata.deletion_timestamp.is_some()
        && finalizers.is_some_and(|finalizers| finalizers.iter().any(|f| f == KUBERNETES))
}

/// Deletes what is in the namespace; lets the namespace go once that is gone.
async fn empty(client: Client, name: String) -> Result<Emptied> {
    let namespaces = Api::<Namespace>::all(client.clone());
    // The finalizer is taken from what the server has now, not from what a watch has shown.
    let Some(namespace) = in_time(namespaces.get_opt(&name)).await?.filter(is_ours) else {
        return Ok(Emptied::Done);
    };
    let kinds = deletable(&client).await?;
    // Pods first: what they use has to be there until they have stopped.
    let (pods, others): (Vec<_>, Vec<_>) =
        kinds.into_iter().filter(|kind| kind.is_namespaced).partition(Served::is_pods);
    for kinds in [pods, others] {
        let mut is_empty = true;
        for kind in &kinds {
            is_empty &= clear(&client, &name, kind).await?;
        }
        if !is_empty {
            return Ok(Emptied::NotYet);
        }
    }
    finalize(&namespaces, namespace).await?;
    Ok(Emptied::Done)
}

/// Deletes all objects of one kind; whether none is left.
async fn clear(client: &Client, namespace: &str, kind: &Served) -> Result<bool> {
    let objects = Api::<Object>::namespaced_with(client.clone(), namespace, &kind.resource);
    let left = async || in_time(objects.list(&ListParams::default())).await;
    let there = left().await?.items;
    if there.is_empty() {
        return Ok(true);
    }
    let params = DeleteParams::background();
    if kind.has_deletecollection {
        in_time(objects.delete_collection(&params, &ListParams::default())).await?;
    } else {
        for name in there.iter().filter_map(|object| object.metadata.name.as_deref()) {
            match in_time(objects.delete(name, &params)).await {
                Err(Error::Api(status)) if status.is_not_found() => {}
                other => drop(other?),
            }
        }
    }
    Ok(left().await?.items.is_empty())
}

/// Takes our finalizer out of the spec. Fails with a conflict if the namespace has changed since it was read.
async fn finalize(namespaces: &Api<Namespace>, mut namespace: Namespace) -> Result<()> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != KUBERNETES);
    }
    let params = PostParams::default();
    let request = namespaces.replace_subresource("finalize", &name, &params, &namespace);
    in_time(request).await.map(drop)
}
