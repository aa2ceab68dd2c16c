//! Simulated nodes: bind, start, restart, finish and delete pods.

mod addresses;
mod container;
mod exit_script;
mod node;
mod plan;
mod pod;
mod ready_script;
mod status;

use std::fmt;
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

use self::container::{Delays, Moment};
use self::node::{Heartbeat, Registration};
use self::plan::{Plan, PodKey, Pods, Step};
use self::pod::Pod;
use super::actor::{Actor, Next, Role};
use super::feed::{Change, feed};
use super::server_clock::ServerClock;
use super::with_timeout;
use super::work_queue::WorkQueue;

/// A stand-in for the scheduler and the kubelets of some nodes. Dropping it stops them.
///
/// * It binds a pod without a node to one of its nodes, round-robin, except for pods with resource
///   claims: [`ClaimScheduler`](super::ClaimScheduler) binds those.
/// * It starts the containers of the pods on its nodes and makes them ready, at once or after
///   [`ready_delay`](KubeletBuilder::ready_delay), but not before the `initialDelaySeconds` of its
///   readiness probe, which always succeeds. It does this once: if another client makes the pod
///   unready or sets its phase, the change stays.
/// * A pod with readiness gates is ready while all of their conditions are true.
/// * A container runs until its pod is deleted, unless an annotation of the pod (see below) ends
///   it. A container that ends is restarted according to `restartPolicy`: the first time at once,
///   then in `CrashLoopBackOff` after 10 s (or [`restart_delay`](KubeletBuilder::restart_delay)),
///   which doubles up to 5 minutes. After 10 minutes without an end the delay starts again.
/// * A pod whose containers have all ended for good is `Succeeded`, or `Failed` if one of them
///   failed.
/// * It deletes a pod that is being deleted without waiting for its grace period. A pod that
///   finalizers keep is `Failed` first, unless it has ended before.
///
/// * Init containers run one after the other, before the others. Each succeeds at once, unless an
///   annotation says otherwise; one with `restartPolicy: Always` goes on.
/// * Each pod has an address of its own (`podIP`, in 10.128.0.0/9), at which nothing listens.
///
/// Pods on other nodes are not touched. `Node` objects exist only with
/// [`heartbeat`](KubeletBuilder::heartbeat): an API server does not need them.
///
/// # Pods that fail and finish
///
/// The annotation `exits.homeostat.dev/NAME` scripts the starts of the container `NAME`:
/// `CODE@TIME` exits with this code after this time, `run` does not exit. The last entry is used
/// for all later starts. In a pod template the annotation applies to every pod.
///
/// | annotation | effect |
/// |---|---|
/// | `exits.homeostat.dev/c: 0@30s` | succeeds after 30 s, as the pod of a Job |
/// | `exits.homeostat.dev/c: 1@2s, 1@2s, run` | fails twice, then runs |
/// | `exits.homeostat.dev/c: 137@1m` | fails after each minute |
/// | `ready.homeostat.dev/c: yes@5s, no@1m` | is ready from 5 s to 1 min after each start |
///
/// The annotation `ready.homeostat.dev/NAME` scripts the readiness of a container, as its probe
/// would report it, by the time since its start. Changes of other clients do not stay.
///
/// A container with an invalid entry stays in `CreateContainerConfigError`, with a message that
/// names the annotation.
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
#[must_use = "dropping the handle stops the kubelet"]
pub struct Kubelet {
    actor: Actor,
}

/// A builder for a [`Kubelet`] with several nodes, `Node` objects or delays.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
///
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::Kubelet;
///
/// let server = ApiServer::builder().seed(1).build();
/// let kubelet = Kubelet::builder(server.client_as("kubelet"))
///     .nodes(3)
///     .ready_delay(Duration::from_secs(5))
///     .heartbeat(Duration::from_secs(10))
///     .epoch(server.now())
///     .start();
/// kubelet.stop().await;
/// # }
/// ```
#[must_use = "nothing runs until `start` is called"]
pub struct KubeletBuilder {
    client: Client,
    nodes: usize,
    delays: Delays,
    heartbeat: Option<Duration>,
    epoch: Option<Timestamp>,
}

/// The state of the kubelets of all nodes.
struct NodeFleet {
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
enum Key {
    Pod(PodKey),
    Node(usize),
}

/// The result of a request.
enum Answer {
    Pod,
    Registered(Registration),
    Renewed,
}

/// Lower bound of restart delays and heartbeat periods, so that the actor does not loop without
/// pause.
const MIN_PERIOD: Duration = Duration::from_millis(10);

// === impl Kubelet ===

impl Kubelet {
    /// Starts a kubelet with one node, `node-0`, on which pods are ready at once.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        Self::builder(client).start()
    }

    /// Returns a builder with one node and no delays.
    pub fn builder(client: Client) -> KubeletBuilder {
        let restart = Duration::from_secs(10);
        let delays = Delays { ready: Duration::ZERO, stop: Duration::ZERO, restart };
        KubeletBuilder { client, nodes: 1, delays, heartbeat: None, epoch: None }
    }

    /// Stops the kubelet and waits for its end. Its requests in flight are dropped.
    ///
    /// # Panics
    ///
    /// Panics if its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// The kubelet stops even if the future is dropped.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

// === impl KubeletBuilder ===

impl KubeletBuilder {
    /// Sets the number of nodes, at least 1: `node-0`, `node-1` and so on.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes.max(1);
        self
    }

    /// Creates a `Node` object for each node, and renews its Lease in `kube-node-lease` with this
    /// period; real kubelets use 10 s. Periods below 10 ms are 10 ms. The objects stay when the
    /// kubelet stops.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period.max(MIN_PERIOD));
        self
    }

    /// Sets the time from the start of a container until it is ready; the default is 0.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.delays.ready = delay;
        self
    }

    /// Sets the time that a deleted pod takes to stop; the default is 0.
    pub fn stop_delay(mut self, delay: Duration) -> Self {
        self.delays.stop = delay;
        self
    }

    /// Sets the restart delay after the second consecutive end of a container. Each further end
    /// doubles it, up to 5 minutes. The default is 10 s, as on real nodes; values below 10 ms are
    /// 10 ms.
    pub fn restart_delay(mut self, delay: Duration) -> Self {
        self.delays.restart = delay.max(MIN_PERIOD);
        self
    }

    /// Sets the wall time of the nodes at their start, for example [`ApiServer::now`]. Without it,
    /// the nodes derive the time from the creation timestamps of the pods.
    ///
    /// [`ApiServer::now`]: crate::ApiServer::now
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Starts the kubelet.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(self) -> Kubelet {
        let names: Vec<String> = (0..self.nodes).map(|node| format!("node-{node}")).collect();
        let mut work = WorkQueue::new();
        if self.heartbeat.is_some() {
            (0..self.nodes).for_each(|node| work.add(Key::Node(node)));
        }
        let nodes = names.iter().map(|name| Node { name: name.clone(), uid: None, due: None });
        let role = NodeFleet {
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
