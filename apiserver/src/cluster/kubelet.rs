//! Pods get a node, run, fail, are restarted, finish, and go when they are deleted.

mod clock;
mod container;
mod node;
mod plan;
mod pod;
mod script;
mod status;

use std::{fmt, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use kube_client::{Api, Client, Result};
use kube_core::{
    params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    response::Status,
};
use serde_json::json;
use tokio::time::Instant;

use self::{
    clock::ServerClock,
    container::{Delays, Moment},
    node::{Heart, Registered},
    plan::{Plan, PodKey, Pods, Step},
    pod::Pod,
};
use super::{
    actor::{Actor, Next, Role},
    feed::{Change, feed},
    in_time,
    work::Work,
};

/// Stands in for a scheduler and the kubelets of its nodes; dropping it stops them.
///
/// * A pod without a node is bound to one of its nodes, in turn.
/// * The containers of a pod on one of its nodes run, and are ready: at once, or after a delay. That is done once; who
///   makes the pod unready afterwards, or sets its phase, is not contradicted.
/// * A container runs until its pod is deleted, unless the pod says otherwise (below). One that ends is restarted as the
///   pod's `restartPolicy` has it: the first time at once, then after 10 s (or the
///   [`restart_delay`](KubeletBuilder::restart_delay)), twice that, and so on up to 5 minutes, in `CrashLoopBackOff`. Ten
///   minutes without an end are a fresh start.
/// * A pod none of whose containers is restarted any more is `Succeeded`, or `Failed` if one of them failed.
/// * A pod on one of its nodes that is being deleted is deleted for good, without its grace period.
///
/// Pods on other nodes are left alone. Init containers count as done. `Node` objects are made only with a
/// [`heartbeat`](KubeletBuilder::heartbeat): an API server does not ask for them.
///
/// # Pods that fail and finish
///
/// The annotation `exits.homeostat.dev/NAME` tells what becomes of each start of the container `NAME`: `CODE@TIME` exits
/// with this code after this time, `run` does not exit. The last entry goes for all starts that follow. In a pod template
/// it goes for every pod that is made from it.
///
/// | annotation | what happens |
/// |---|---|
/// | `exits.homeostat.dev/c: 0@30s` | it succeeds after 30 s; a Job's pod |
/// | `exits.homeostat.dev/c: 1@2s, 1@2s, run` | it fails twice, and then runs |
/// | `exits.homeostat.dev/c: 137@1m` | it fails after each minute, for ever |
///
/// An entry that cannot be understood keeps its container in `CreateContainerConfigError`, whose message says why.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use homeostat_apiserver::{ApiServer, cluster::Kubelet};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::{Api, api::PostParams};
///
/// let server = ApiServer::builder().seed(7).build();
/// let _kubelet = Kubelet::start(server.client());
/// let pods = Api::<Pod>::default_namespaced(server.client());
/// let pod = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "flaky", "annotations": { "exits.homeostat.dev/c": "1@2s, 0@2s" } },
///     "spec": { "restartPolicy": "OnFailure", "containers": [{ "name": "c", "image": "i" }] },
/// }))?;
/// pods.create(&PostParams::default(), &pod).await?;
///
/// tokio::time::sleep(Duration::from_secs(5)).await; // The clock is paused: this takes no time.
/// let status = pods.get("flaky").await?.status.unwrap();
/// assert_eq!(status.phase.as_deref(), Some("Succeeded"));
/// assert_eq!(status.container_statuses.unwrap()[0].restart_count, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it stops it"]
pub struct Kubelet {
    actor: Actor,
}

/// Starts a [`Kubelet`] with more nodes, or slower ones.
#[must_use = "nothing runs until `start` is called"]
pub struct KubeletBuilder {
    client: Client,
    nodes: usize,
    delays: Delays,
    heartbeat: Option<Duration>,
    epoch: Option<Timestamp>,
}

/// What a kubelet knows.
struct Fleet {
    client: Client,
    pods: Pods,
    nodes: Vec<Node>,
    heartbeat: Option<Duration>,
    clock: ServerClock,
}

/// One node, if it has a heartbeat.
struct Node {
    name: String,
    /// The UID of its `Node` object, once there is one.
    uid: Option<String>,
    /// When its Lease is due.
    due: Option<Instant>,
}

/// What a kubelet looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Pod(PodKey),
    Node(usize),
}

/// What a request has brought.
enum Answer {
    Pod,
    Registered(Registered),
    Renewed,
}

/// A container that is restarted at once and fails at once would do nothing else.
const SHORTEST_RESTART: Duration = Duration::from_millis(10);

// === impl Kubelet ===

impl Kubelet {
    /// Starts one that has one node, `node-0`, where pods are ready at once.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        Self::builder(client).start()
    }

    /// A builder, for more nodes, for `Node` objects, and for delays.
    pub fn builder(client: Client) -> KubeletBuilder {
        let restart = Duration::from_secs(10);
        let delays = Delays { ready: Duration::ZERO, stop: Duration::ZERO, restart };
        KubeletBuilder { client, nodes: 1, delays, heartbeat: None, epoch: None }
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

// === impl KubeletBuilder ===

impl KubeletBuilder {
    /// How many nodes: `node-0`, `node-1` and so on; at least one.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes.max(1);
        self
    }

    /// Makes a `Node` for each of its nodes, and renews its Lease in `kube-node-lease` so often (real kubelets: every
    /// 10 s). What it has made stays when it stops, and ceases to be renewed.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period.max(SHORTEST_RESTART));
        self
    }

    /// How long a container runs until it is ready.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.delays.ready = delay;
        self
    }

    /// How long a pod takes to stop when it is deleted.
    pub fn stop_delay(mut self, delay: Duration) -> Self {
        self.delays.stop = delay;
        self
    }

    /// How long a container that has ended for the second time in a row waits for its next start, doubled each time up
    /// to 5 minutes. The default is 10 s, as on real nodes; less than 10 ms is 10 ms.
    pub fn restart_delay(mut self, delay: Duration) -> Self {
        self.delays.restart = delay.max(SHORTEST_RESTART);
        self
    }

    /// What time it is on the nodes when they start. Otherwise they go by the server's clock, as told
    /// by the creation of the pods they see.
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Starts it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(self) -> Kubelet {
        let names: Vec<String> = (0..self.nodes).map(|node| format!("node-{node}")).collect();
        let mut work = Work::new();
        if self.heartbeat.is_some() {
            (0..self.nodes).for_each(|node| work.add(Key::Node(node)));
        }
        let nodes = names.iter().map(|name| Node { name: name.clone(), uid: None, due: None });
        let role = Fleet {
            nodes: nodes.collect(),
            pods: Pods::new(names, self.delays),
            heartbeat: self.heartbeat,
            clock: ServerClock::new(self.epoch, Instant::now()),
            client: self.client.clone(),
        };
        Kubelet { actor: Actor::start(role, work, feed(Api::<Pod>::all(self.client))) }
    }
}

impl fmt::Debug for KubeletBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletBuilder").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

// === impl Fleet ===

impl Role for Fleet {
    type Key = Key;
    type Change = Change<Pod>;
    type Answer = Answer;

    fn observe(&mut self, change: Change<Pod>, work: &mut Work<Key>) {
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
                Plan::Do(step) => Next::Request(in_time(self.request(key, step)).boxed()),
            },
            Key::Node(index) => self.next_of_node(*index, now),
        }
    }

    fn end(&mut self, key: &Key, result: Result<Answer>, work: &mut Work<Key>) -> bool {
        let Ok(answer) = result else { return false };
        if let Key::Node(index) = key {
            let now = Instant::now();
            if let Answer::Registered(Registered { uid, created }) = answer {
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

impl Fleet {
    fn next_of_node(&self, index: usize, now: Instant) -> Next<Answer> {
        let (Some(period), Some(node)) = (self.heartbeat, self.nodes.get(index)) else {
            return Next::Nothing;
        };
        if let Some(due) = node.due.filter(|due| now < *due) {
            return Next::Later(due);
        }
        let (client, clock) = (self.client.clone(), self.clock.clone());
        let heart = Heart { client, clock, node: node.name.clone(), period };
        Next::Request(match node.uid.clone() {
            None => async move { heart.register().await.map(Answer::Registered) }.boxed(),
            Some(uid) => async move { heart.renew(uid).await.map(|()| Answer::Renewed) }.boxed(),
        })
    }

    /// What a step asks of the server. Each names the pod's UID: a pod of the same name that took
    /// its place is not touched.
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
            Step::Report(patch) => async move {
                let params = PatchParams::default();
                let told = pods.patch_status(&name, &params, &Patch::Strategic(patch)).await;
                told.map(|_| Answer::Pod)
            }
            .boxed(),
            Step::Finish { uid } => {
                let params = DeleteParams {
                    grace_period_seconds: Some(0),
                    preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
                    ..DeleteParams::default()
                };
                async move { pods.delete(&name, &params).await.map(|_| Answer::Pod) }.boxed()
            }
        }
    }
}
