//! The kubelets of all nodes, as one actor.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube_core::request::{self, Request};
use kube_core::response::Status;
use serde_json::json;
use tokio::time::Instant;

use super::super::actor::{Next, Role};
use super::super::feed::Change;
use super::super::server_clock::ServerClock;
use super::super::with_timeout;
use super::super::work_queue::WorkQueue;
use super::container::{Delays, Moment};
use super::node::{Heartbeat, Registration};
use super::plan::{Plan, PodKey, Pods, Step};
use super::pod::Pod;

/// The state of the kubelets of all nodes.
pub(super) struct NodeFleet {
    client: Client,
    pods: Pods,
    nodes: Vec<Node>,
    heartbeat: Option<Duration>,
    clock: ServerClock,
}

/// The heartbeat state of one node.
struct Node {
    name: String,
    /// The UID of its `Node` object, once it exists.
    uid: Option<String>,
    /// The time at which its Lease is renewed next.
    due: Option<Instant>,
}

/// A unit of work: a pod, or the heartbeat of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Pod(PodKey),
    Node(usize),
}

/// The result of a request.
pub(super) enum Answer {
    Pod,
    Registered(Registration),
    Renewed,
}

// === impl NodeFleet ===

impl Role for NodeFleet {
    type Key = Key;
    type Change = Change<Pod>;
    type Answer = Answer;

    fn observe(&mut self, change: Change<Pod>, work: &mut WorkQueue<Key>) {
        let now = Instant::now();
        match change {
            Change::Listed(pods) => {
                for pod in &pods {
                    self.clock.observe(pod.metadata.creation_timestamp.as_ref(), now);
                }
                for key in self.pods.replace(pods, now) {
                    work.add(Key::Pod(key));
                }
            }
            Change::Applied(pod) => {
                self.clock.observe(pod.metadata.creation_timestamp.as_ref(), now);
                if let Some(key) = self.pods.apply(pod, now) {
                    work.add(Key::Pod(key));
                }
            }
            Change::Deleted(pod) => self.pods.remove(&pod),
        }
    }

    fn next(&mut self, key: &Key, now: Instant) -> Next<Answer> {
        match key {
            Key::Pod(key) => match self.pods.plan(key, Moment { now, time: self.clock.now(now) }) {
                Plan::Nothing => Next::Nothing,
                Plan::Later(time) => Next::Later(time),
                Plan::Do(step) => Next::Request(with_timeout(self.request(key, step)).boxed()),
            },
            Key::Node(index) => self.next_for_node(*index, now),
        }
    }

    fn end(&mut self, key: &Key, result: Result<Answer>, work: &mut WorkQueue<Key>) -> bool {
        let Ok(answer) = result else { return false };
        if let Key::Node(index) = key {
            let now = Instant::now();
            if let Answer::Registered(Registration { uid, created }) = answer {
                self.clock.observe(created.as_ref(), now);
                self.nodes[*index].uid = Some(uid);
            }
            let due = self.heartbeat.and_then(|period| now.checked_add(period));
            self.nodes[*index].due = due;
            if let Some(due) = due {
                work.add_at(key.clone(), due);
            }
        }
        true
    }
}

impl NodeFleet {
    pub(super) fn new(
        client: Client,
        nodes: usize,
        delays: Delays,
        heartbeat: Option<Duration>,
        epoch: Option<Timestamp>,
    ) -> Self {
        let names: Vec<String> = (0..nodes).map(|node| format!("node-{node}")).collect();
        let nodes = names.iter().map(|name| Node { name: name.clone(), uid: None, due: None });
        Self {
            client,
            nodes: nodes.collect(),
            pods: Pods::new(names, delays),
            heartbeat,
            clock: ServerClock::new(epoch, Instant::now()),
        }
    }

    /// Returns the work at the start: the first heartbeat of each node, if they have any.
    pub(super) fn first_work(&self) -> WorkQueue<Key> {
        let mut work = WorkQueue::new();
        if self.heartbeat.is_some() {
            (0..self.nodes.len()).for_each(|node| work.add(Key::Node(node)));
        }
        work
    }

    fn next_for_node(&self, index: usize, now: Instant) -> Next<Answer> {
        let (Some(period), Some(node)) = (self.heartbeat, self.nodes.get(index)) else {
            return Next::Nothing;
        };
        if let Some(due) = node.due.filter(|due| now < *due) {
            return Next::Later(due);
        }
        let (client, clock) = (self.client.clone(), self.clock.clone());
        let heartbeat = Heartbeat { client, clock, node: node.name.clone(), period };
        Next::Request(match node.uid.clone() {
            None => async move { heartbeat.register().await.map(Answer::Registered) }.boxed(),
            Some(uid) => {
                async move { heartbeat.renew(uid).await.map(|()| Answer::Renewed) }.boxed()
            }
        })
    }

    /// Returns the request for a step. It carries the UID of the pod, so that a new pod of the same
    /// name is not touched.
    fn request(&self, key: &PodKey, step: Step) -> BoxFuture<'static, Result<Answer>> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        let name = key.name.clone();
        match step {
            Step::Bind { uid, node } => {
                let binding = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": { "name": name, "namespace": key.namespace, "uid": uid },
                    "target": { "apiVersion": "v1", "kind": "Node", "name": node },
                });
                async move {
                    let params = PostParams::default();
                    let bound = pods.create_subresource("binding", &name, &params, &binding);
                    bound.await.map(|_: Status| Answer::Pod)
                }
                .boxed()
            }
            Step::PatchStatus(patch) => {
                let (patch, params) = (Patch::Strategic(patch), PatchParams::default());
                let request = Request::new(pods.resource_url());
                let request = request.patch_subresource("status", &name, &params, &patch);
                send(self.client.clone(), request).boxed()
            }
            Step::Delete { uid } => {
                let params = DeleteParams {
                    grace_period_seconds: Some(0),
                    preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
                    ..DeleteParams::default()
                };
                let request = Request::new(pods.resource_url()).delete(&name, &params);
                send(self.client.clone(), request).boxed()
            }
        }
    }
}

/// Sends a request that changes a pod. The watch reports the new state: the reply is not decoded.
async fn send(
    client: Client,
    request: Result<http::Request<Vec<u8>>, request::Error>,
) -> Result<Answer> {
    client.request_text(request.map_err(Error::BuildRequest)?).await?;
    Ok(Answer::Pod)
}
