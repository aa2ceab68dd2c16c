//! An actor that runs one pass for each object that a change affects.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _};
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

/// Returns the keys that the changed objects name, before or after the change. Each is in the
/// namespace of its object.
pub(super) fn keys<K, N>(
    changes: impl Stream<Item = Change<K>>,
    names: impl Fn(&K) -> N,
) -> impl Stream<Item = Vec<Key>>
where
    K: Resource<DynamicType = ()>,
    N: IntoIterator<Item = String>,
{
    let mut seen = Named::default();
    changes.map(move |change| seen.change(change, &names))
}

/// The names in each object, as last seen: a relist does not report objects that are gone.
#[derive(Debug, Default)]
struct Named(BTreeMap<Key, Vec<String>>);

// === impl Named ===

impl Named {
    fn change<K, N>(&mut self, change: Change<K>, names: impl Fn(&K) -> N) -> Vec<Key>
    where
        K: Resource<DynamicType = ()>,
        N: IntoIterator<Item = String>,
    {
        let (objects, is_deleted, others) = match change {
            Change::Listed(objects) => (objects, false, std::mem::take(&mut self.0)),
            Change::Applied(object) => (vec![*object], false, BTreeMap::new()),
            Change::Deleted(object) => (vec![*object], true, BTreeMap::new()),
        };
        let mut keys = Vec::new();
        let mut add = |namespace: &str, names: &[String]| {
            keys.extend(names.iter().map(|name| (namespace.to_owned(), name.clone())));
        };
        let mut others = others;
        for object in &objects {
            let meta = object.meta();
            let namespace = meta.namespace.clone().unwrap_or_default();
            let key = (namespace.clone(), meta.name.clone().unwrap_or_default());
            let before = others.remove(&key).or_else(|| self.0.remove(&key)).unwrap_or_default();
            let now: Vec<String> = names(object).into_iter().collect();
            add(&namespace, &now);
            let gone: Vec<String> = before.into_iter().filter(|name| !now.contains(name)).collect();
            add(&namespace, &gone);
            if !is_deleted && !now.is_empty() {
                self.0.insert(key, now);
            }
        }
        for ((namespace, _), names) in &others {
            add(namespace, names);
        }
        keys
    }
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
