//! An actor that runs one pass for each object that a change affects.

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream};
use kube_client::{Client, Resource, Result};
use tokio::time::Instant;

use super::actor::{Actor, Next, Role};
use super::feed::Change;
use super::work_queue::WorkQueue;

/// The namespace and name of an object.
pub(super) type Key = (String, String);

/// The role of the actor. A pass reads its objects from the server, so that the role has no state.
struct Passes<P> {
    client: Client,
    pass: P,
}

/// Starts an actor that runs `pass` for the keys in `changes`.
pub(super) fn start<P, F>(
    client: Client,
    changes: impl Stream<Item = Vec<Key>> + Send + 'static,
    pass: P,
) -> Actor
where
    P: Fn(Client, Key) -> F + Send + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let pass = move |client, key| pass(client, key).boxed();
    Actor::start(Passes { client, pass }, WorkQueue::new(), changes)
}

/// Returns the keys that the changed objects name. Each is in the namespace of its object.
pub(super) fn keys<K, N>(change: Change<K>, names: impl Fn(&K) -> N) -> Vec<Key>
where
    K: Resource<DynamicType = ()>,
    N: IntoIterator<Item = String>,
{
    let objects = match change {
        Change::Listed(objects) => objects,
        Change::Applied(object) | Change::Deleted(object) => vec![object],
    };
    let keys = objects.iter().flat_map(|object| {
        let namespace = object.meta().namespace.clone().unwrap_or_default();
        names(object).into_iter().map(move |name| (namespace.clone(), name))
    });
    keys.collect()
}

// === impl Passes ===

impl<P> Role for Passes<P>
where
    P: Fn(Client, Key) -> BoxFuture<'static, Result<()>> + Send + 'static,
{
    type Key = Key;
    type Change = Vec<Key>;
    type Answer = ();

    fn observe(&mut self, changed: Vec<Key>, work: &mut WorkQueue<Key>) {
        for key in changed {
            work.add(key);
        }
    }

    fn next(&mut self, key: &Key, _: Instant) -> Next<()> {
        Next::Request((self.pass)(self.client.clone(), key.clone()))
    }

    fn end(&mut self, _: &Key, result: Result<()>, _: &mut WorkQueue<Key>) -> bool {
        result.is_ok()
    }
}
