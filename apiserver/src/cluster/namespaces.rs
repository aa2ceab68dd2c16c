//! A simulated namespace controller: empties and finalizes deleted namespaces.

mod conditions;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{DeleteParams, ListParams, PostParams};
use tokio::time::Instant;

use self::conditions::Remaining;
use super::actor::{Actor, Next, Role};
use super::feed::{Change, feed};
use super::partial_object::PartialObject;
use super::served_kinds::{ServedKind, deletable};
use super::server_clock::ServerClock;
use super::watch::Part;
use super::with_timeout;
use super::work_queue::WorkQueue;

/// The finalizer in `spec.finalizers` that this controller removes.
const KUBERNETES: &str = "kubernetes";

/// A stand-in for the namespace controller of kube-controller-manager. Dropping it stops it.
///
/// It deletes the pods of a namespace that is being deleted, then all other objects whose kinds the
/// server can delete. It waits for objects with a finalizer or a grace period. Then it removes the
/// finalizer `kubernetes` from the spec of the namespace.
///
/// While objects are left, the conditions of the namespace say how many, and which finalizers keep
/// them. The controller checks again with a backoff of 50 ms that doubles up to 5 s.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> kube_client::Result<()> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::NamespaceController;
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube_client::Api;
/// use kube_client::api::{DeleteParams, PostParams};
///
/// let server = ApiServer::builder().seed(1).build();
/// let _controller = NamespaceController::start(server.client_as("namespace-controller"));
/// let namespaces = Api::<Namespace>::all(server.client());
/// let mut namespace = Namespace::default();
/// namespace.metadata.name = Some("team-a".to_owned());
/// namespaces.create(&PostParams::default(), &namespace).await?;
/// namespaces.delete("team-a", &DeleteParams::default()).await?;
/// tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// assert!(namespaces.get_opt("team-a").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the controller"]
pub struct NamespaceController {
    actor: Actor,
}

/// The role of the actor.
struct Terminator {
    client: Client,
    clock: ServerClock,
}

/// The state of a namespace after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emptied {
    /// No work is left.
    Done,
    /// Objects are left.
    NotYet,
}

// === impl NamespaceController ===

impl NamespaceController {
    /// Starts the controller.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let changes = feed(Api::<Namespace>::all(client.clone()), Part::Whole);
        let clock = ServerClock::new(None, Instant::now());
        Self { actor: Actor::start(Terminator { client, clock }, WorkQueue::new(), changes) }
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

// === impl Terminator ===

impl Role for Terminator {
    type Key = String;
    type Change = Change<Namespace>;
    type Answer = Emptied;

    fn observe(&mut self, change: Change<Namespace>, work: &mut WorkQueue<String>) {
        let namespaces = match change {
            Change::Listed(namespaces) => namespaces,
            Change::Applied(namespace) => vec![*namespace],
            Change::Deleted(_) => return,
        };
        for namespace in namespaces.iter().filter(|namespace| needs_finalizing(namespace)) {
            let metadata = &namespace.metadata;
            self.clock.observe(metadata.deletion_timestamp.as_ref(), Instant::now());
            if let Some(name) = &namespace.metadata.name {
                work.add(name.clone());
            }
        }
    }

    fn next(&mut self, name: &String, _: Instant) -> Next<Emptied> {
        Next::Request(empty(self.client.clone(), self.clock.clone(), name.clone()).boxed())
    }

    fn end(&mut self, _: &String, result: Result<Emptied>, _: &mut WorkQueue<String>) -> bool {
        matches!(result, Ok(Emptied::Done))
    }
}

/// Returns true if the namespace is being deleted and has this controller's finalizer.
fn needs_finalizing(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref());
    namespace.metadata.deletion_timestamp.is_some()
        && finalizers.is_some_and(|finalizers| finalizers.iter().any(|f| f == KUBERNETES))
}

/// Deletes the objects of a namespace, and finalizes it once none is left.
async fn empty(client: Client, clock: ServerClock, name: String) -> Result<Emptied> {
    let namespaces = Api::<Namespace>::all(client.clone());
    // The finalizer is removed from the current object, not from the one that the watch delivered.
    let Some(namespace) = with_timeout(namespaces.get_opt(&name)).await?.filter(needs_finalizing)
    else {
        return Ok(Emptied::Done);
    };
    let kinds = deletable(&client).await?;
    // Pods first: the objects that they use must exist until they have stopped.
    let (pods, others): (Vec<_>, Vec<_>) =
        kinds.into_iter().filter(|kind| kind.is_namespaced).partition(ServedKind::is_pods);
    let mut has_pods = false;
    for kind in &pods {
        has_pods |= !clear(&client, &name, kind).await?.is_empty();
    }
    let mut remaining = Remaining::default();
    // As upstream's controller, this one does not count the pods that it waits for.
    for kind in others.iter().filter(|_| !has_pods) {
        remaining.add(&kind.resource, &clear(&client, &name, kind).await?);
    }
    if has_pods || !remaining.is_empty() {
        report(&namespaces, namespace, &remaining, &clock).await?;
        return Ok(Emptied::NotYet);
    }
    finalize(&namespaces, namespace).await?;
    Ok(Emptied::Done)
}

/// Writes the conditions of a namespace that is not empty, if they have changed.
async fn report(
    namespaces: &Api<Namespace>,
    mut namespace: Namespace,
    remaining: &Remaining,
    clock: &ServerClock,
) -> Result<()> {
    if !remaining.report(&mut namespace, clock.now(Instant::now())) {
        return Ok(());
    }
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let params = PostParams::default();
    let request = namespaces.replace_subresource("status", &name, &params, &namespace);
    with_timeout(request).await.map(drop)
}

/// Deletes all objects of one kind. Returns those that are left.
async fn clear(client: &Client, namespace: &str, kind: &ServedKind) -> Result<Vec<PartialObject>> {
    let objects = Api::<PartialObject>::namespaced_with(client.clone(), namespace, &kind.resource);
    let list = async || with_timeout(objects.list(&ListParams::default())).await;
    let objects_left = list().await?.items;
    if objects_left.is_empty() {
        return Ok(objects_left);
    }
    let params = DeleteParams::background();
    if kind.has_deletecollection {
        with_timeout(objects.delete_collection(&params, &ListParams::default())).await?;
    } else {
        for name in objects_left.iter().filter_map(|object| object.metadata.name.as_deref()) {
            match with_timeout(objects.delete(name, &params)).await {
                Err(Error::Api(status)) if status.is_not_found() => {}
                other => drop(other?),
            }
        }
    }
    Ok(list().await?.items)
}

/// Removes this controller's finalizer. Fails with a conflict if the namespace has changed since it
/// was read.
async fn finalize(namespaces: &Api<Namespace>, mut namespace: Namespace) -> Result<()> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != KUBERNETES);
    }
    let params = PostParams::default();
    let request = namespaces.replace_subresource("finalize", &name, &params, &namespace);
    with_timeout(request).await.map(drop)
}
