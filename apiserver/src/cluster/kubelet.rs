//! Simulated nodes: bind, start, restart, finish and delete pods.

mod addresses;
mod container;
mod container_state;
mod exit_script;
mod node;
mod node_fleet;
mod plan;
mod pod;
mod ready_script;
mod restart_policy;
mod status;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kube_client::{Api, Client};

use self::container::Delays;
use self::node_fleet::NodeFleet;
use self::pod::Pod;
use super::actor::Actor;
use super::feed::feed;
use super::watch::Part;

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
        let Self { client, nodes, delays, heartbeat, epoch } = self;
        let feed = feed(Api::<Pod>::all(client.clone()), Part::Whole);
        let fleet = NodeFleet::new(client, nodes, delays, heartbeat, epoch);
        let work = fleet.first_work();
        Kubelet { actor: Actor::start(fleet, work, feed) }
    }
}

impl fmt::Debug for KubeletBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletBuilder").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
