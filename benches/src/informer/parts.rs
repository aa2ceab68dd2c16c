//! Measures each part of an informer separately, as `peers/informer/parts.go` does with
//! client-go's.

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::fifo::DeltaFifo;
use homeostat_informer::list_watch::{Decoded, WatchEvent};
use homeostat_informer::testing::Store;
use homeostat_informer::{Index, Lister, ObjectMeta};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

mod crowd;
mod paced;

pub use self::crowd::{Crowd, Reader};
use self::paced::writer_p99;

/// Number of pods.
pub const PODS: usize = 100_000;
/// Number of pods on one node.
pub const PER_NODE: usize = 20;

/// A queue, and a cache with two indices, full of small pods.
#[derive(Debug)]
pub struct Parts {
    fifo: DeltaFifo<Pod>,
    store: Store<Pod>,
    lister: Lister<Pod>,
    by_node: Index<Pod, String>,
    nodes: Vec<String>,
    /// The same pods in an older and a newer state.
    states: [Vec<Arc<Pod>>; 2],
    turn: usize,
}

// === impl Parts ===

impl Parts {
    /// Fills the cache.
    pub fn new() -> Self {
        let store = Store::new();
        let lister = store.lister();
        let by_node = store.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
        drop(lister.list_in(""));
        let state =
            |version: &str| (0..PODS).map(|number| Arc::new(small_pod(number, version))).collect();
        // Our store ignores an older version of an object. These versions are no numbers, so none
        // is older.
        let states: [Vec<_>; 2] = [state("one"), state("two")];
        states[0].iter().for_each(|pod| store.apply(Arc::clone(pod)));
        let nodes = (0..PODS / PER_NODE).map(node_name).collect();
        Self { fifo: DeltaFifo::in_order(), store, lister, by_node, nodes, states, turn: 0 }
    }

    /// Queues each pod, and takes it before the next one.
    pub fn queue_each(&self) {
        for pod in &self.states[0] {
            self.fifo.push([WatchEvent::Applied(Decoded::Fits(Arc::clone(pod)))]);
            drop(self.fifo.try_pop());
        }
    }

    /// Queues all pods, one at a time, and then takes all of them.
    pub fn queue_all(&self) {
        for pod in &self.states[0] {
            self.fifo.push([WatchEvent::Applied(Decoded::Fits(Arc::clone(pod)))]);
        }
        while let Some(batch) = self.fifo.try_pop() {
            drop(batch);
        }
    }

    /// Changes each pod once, one at a time, as the watch of an idle cluster does.
    pub fn update_all(&mut self) {
        self.turn += 1;
        for pod in &self.states[self.turn % 2] {
            self.store.apply(Arc::clone(pod));
        }
    }

    /// Looks up the pods of each node. Returns their number.
    pub fn look_up_all(&self) -> usize {
        self.nodes.iter().map(|node| self.by_node.get(node.as_str()).len()).sum()
    }

    /// Lists all pods. Returns true if there are any.
    pub fn list(&self) -> bool {
        !self.lister.list().is_empty()
    }

    /// Returns the 99th percentile of the time of an update while another thread lists in a loop.
    pub fn writer_p99(&self, during: Duration) -> Duration {
        let states = self.states[1].iter().chain(&self.states[0]).cycle();
        let write = |pod| self.store.apply(Arc::clone(pod));
        writer_p99(|| self.list(), states, write, during)
    }
}

impl Default for Parts {
    fn default() -> Self {
        Self::new()
    }
}

fn node_name(number: usize) -> String {
    format!("node-{number}")
}

pub(super) fn small_pod(number: usize, version: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("web-7d4b9c6f5d-{number:06}")),
            namespace: Some(format!("team-{:03}", number % 500 / 10)),
            uid: Some(format!("a{number:07x}-1d2c-4ab3-8e3f-0123456789ab")),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { node_name: Some(node_name(number / PER_NODE)), ..PodSpec::default() }),
        ..Pod::default()
    }
}
