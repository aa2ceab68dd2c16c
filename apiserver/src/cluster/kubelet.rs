//! Pods get a node, run, become ready, and go when they are deleted.

mod clock;
mod plan;
mod pod;
mod status;

use std::{fmt, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use kube_client::{Api, Client, Result};
use kube_core::{
    params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    response::Status,
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use self::{
    clock::ServerClock,
    plan::{Plan, PodKey, Pods, Step},
    pod::Pod,
};
use super::{
    MAX_IN_FLIGHT, OwnedTask,
    feed::{Change, feed},
    in_time,
    work::Work,
};

/// Stands in for a scheduler and the kubelets of its nodes; dropping it stops them.
///
/// * A pod without a node is bound to one of its nodes, in turn.
/// * A pod on one of its nodes is set Running, and Ready: at once, or after a delay. That is done once;
///   who makes the pod unready afterwards, or sets its phase, is not contradicted.
/// * A pod on one of its nodes that is being deleted is deleted for good, without its grace period.
///
/// Pods on other nodes are left alone. No `Node` objects are made: an API server does not ask for them.
#[derive(Debug)]
#[must_use = "dropping it stops it"]
pub struct Kubelet {
    task: OwnedTask,
}

/// Starts a [`Kubelet`] with more nodes, or slower ones.
#[must_use = "nothing runs until `start` is called"]
pub struct KubeletBuilder {
    client: Client,
    nodes: usize,
    ready_delay: Duration,
    stop_delay: Duration,
    epoch: Option<Timestamp>,
}

struct Actor {
    client: Client,
    pods: Pods,
    work: Work<PodKey>,
    clock: ServerClock,
    in_flight: FuturesUnordered<BoxFuture<'static, (PodKey, Step, Result<()>)>>,
}

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

    /// A builder, for more nodes and for delays.
    pub fn builder(client: Client) -> KubeletBuilder {
        KubeletBuilder {
            client,
            nodes: 1,
            ready_delay: Duration::ZERO,
            stop_delay: Duration::ZERO,
            epoch: None,
        }
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
        self.task.stop().await;
    }
}

// === impl KubeletBuilder ===

impl KubeletBuilder {
    /// How many nodes: `node-0`, `node-1` and so on; at least one.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes.max(1);
        self
    }

    /// How long a pod runs until it is ready.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.ready_delay = delay;
        self
    }

    /// How long a pod takes to stop when it is deleted.
    pub fn stop_delay(mut self, delay: Duration) -> Self {
        self.stop_delay = delay;
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
        let actor = Actor {
            client: self.client,
            pods: Pods::new(self.nodes, self.ready_delay, self.stop_delay),
            work: Work::new(),
            clock: ServerClock::new(self.epoch, Instant::now()),
            in_flight: FuturesUnordered::new(),
        };
        Kubelet { task: OwnedTask::spawn(actor.run()) }
    }
}

impl fmt::Debug for KubeletBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletBuilder").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

// === impl Actor ===

impl Actor {
    async fn run(mut self) {
        let mut changes = Box::pin(feed(Api::<Pod>::all(self.client.clone())));
        loop {
            self.begin_steps();
            // No key can be due with nothing in flight and no deadline: then only a change wakes us.
            let deadline = self.work.deadline().filter(|_| self.in_flight.len() < MAX_IN_FLIGHT);
            tokio::select! {
                biased;
                Some((key, step, result)) = self.in_flight.next() => self.end_step(key, &step, &result),
                Some(change) = changes.next() => self.observe(change),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {}
            }
        }
    }

    fn observe(&mut self, change: Change<Pod>) {
        let now = Instant::now();
        match change {
            Change::Listed(pods) => {
                for pod in &pods {
                    self.clock.observe(pod.metadata.creation_timestamp.as_ref(), now);
                }
                for key in self.pods.replace(pods, now) {
                    self.work.add(key);
                }
            }
            Change::Applied(pod) => {
                self.clock.observe(pod.metadata.creation_timestamp.as_ref(), now);
                if let Some(key) = self.pods.apply(pod, now) {
                    self.work.add(key);
                }
            }
            Change::Deleted(pod) => self.pods.remove(&pod),
        }
    }

    fn begin_steps(&mut self) {
        let now = Instant::now();
        while self.in_flight.len() < MAX_IN_FLIGHT
            && let Some(key) = self.work.next(now)
        {
            match self.pods.plan(&key, now) {
                Plan::Nothing => self.work.finish(key, false, now),
                Plan::Later(time) => {
                    self.work.add_at(key.clone(), time);
                    self.work.finish(key, false, now);
                }
                Plan::Do(step) => {
                    let request = in_time(self.request(&key, &step));
                    let done = request.map(|result| (key, step, result));
                    self.in_flight.push(done.boxed());
                }
            }
        }
    }

    fn end_step(&mut self, key: PodKey, step: &Step, result: &Result<()>) {
        if let Err(error) = result {
            // Most often somebody else was faster; what comes of it is seen in the next plan.
            tracing::debug!(pod = ?key, ?step, %error, "kubelet failed");
        } else {
            self.pods.done(&key, step);
        }
        self.work.finish(key, result.is_err(), Instant::now());
    }

    /// What a step asks of the server. Each names the pod's UID: a pod of the same name that took
    /// its place is not touched.
    fn request(&self, key: &PodKey, step: &Step) -> BoxFuture<'static, Result<()>> {
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
                    bound.await.map(|_: Status| ())
                }
                .boxed()
            }
            Step::Run { pod, ready } => {
                let status = status::running(pod, *ready, self.clock.now(Instant::now()));
                async move {
                    let params = PatchParams::default();
                    pods.patch_status(&name, &params, &Patch::Strategic(status)).await.map(drop)
                }
                .boxed()
            }
            Step::Finish { uid } => {
                let params = DeleteParams {
                    grace_period_seconds: Some(0),
                    preconditions: Some(Preconditions {
                        uid: Some(uid.clone()),
                        resource_version: None,
                    }),
                    ..DeleteParams::default()
                };
                async move { pods.delete(&name, &params).await.map(drop) }.boxed()
            }
        }
    }
}
