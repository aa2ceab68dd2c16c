//! The parts of an informer, each by itself: what `peers/informer/parts.go` does with client-go's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use homeostat_informer::{
    Decoded, DeltaFifo, Index, Lister, ObjectMeta, WatchEvent, testing::Store,
};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use tokio::time::Instant;

/// How many pods there are.
pub const PODS: usize = 100_000;
/// How many of them are on one node.
pub const PER_NODE: usize = 20;
/// How many are written in a second while somebody lists.
const WRITES: u32 = 5000;

/// A queue, and a cache with two indices, full of small pods.
#[derive(Debug)]
pub struct Parts {
    fifo: DeltaFifo<Pod>,
    store: Store<Pod>,
    lister: Lister<Pod>,
    by_node: Index<Pod, String>,
    nodes: Vec<String>,
    /// The same pods in two states, of which the second is the newer.
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
        // Our store takes no older version of an object, and another text is not known to be older.
        let states: [Vec<_>; 2] = [state("one"), state("two")];
        states[0].iter().for_each(|pod| store.apply(Arc::clone(pod)));
        let nodes = (0..PODS / PER_NODE).map(node_name).collect();
        Self { fifo: DeltaFifo::in_order(), store, lister, by_node, nodes, states, turn: 0 }
    }

    /// Queues each pod and takes it at once.
    pub fn queue_each(&self) {
        for pod in &self.states[0] {
            self.fifo.push([WatchEvent::Applied(Decoded::Fits(Arc::clone(pod)))]);
            drop(self.fifo.try_pop());
        }
    }

    /// Queues all pods, one at a time, and then takes them as they come.
    pub fn queue_all(&self) {
        for pod in &self.states[0] {
            self.fifo.push([WatchEvent::Applied(Decoded::Fits(Arc::clone(pod)))]);
        }
        while let Some(batch) = self.fifo.try_pop() {
            drop(batch);
        }
    }

    /// Changes each pod once, one at a time, as a watch does at rest.
    pub fn update_all(&mut self) {
        self.turn += 1;
        for pod in &self.states[self.turn % 2] {
            self.store.apply(Arc::clone(pod));
        }
    }

    /// Looks up the pods of each node; returns how many there are.
    pub fn look_up_all(&self) -> usize {
        self.nodes.iter().map(|node| self.by_node.get(node.as_str()).len()).sum()
    }

    /// Lists all pods; returns whether there are any.
    pub fn list(&self) -> bool {
        !self.lister.list().is_empty()
    }

    /// How long 99 in 100 updates take at the most while somebody lists in a loop.
    pub fn writer_p99(&self, during: Duration) -> Duration {
        let stop = AtomicBool::new(false);
        let list = || {
            while !stop.load(Ordering::Relaxed) && self.list() {
                std::hint::spin_loop();
            }
        };
        let mut took = thread::scope(|scope| {
            scope.spawn(list);
            let took = self.write(during);
            stop.store(true, Ordering::Relaxed);
            took
        });
        took.sort_unstable();
        took[took.len() * 99 / 100]
    }

    /// How long each write took.
    #[expect(clippy::disallowed_methods, reason = "there is no runtime: these are threads")]
    fn write(&self, during: Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let apart = Duration::from_secs(1) / WRITES;
        let all = self.states[1].iter().chain(&self.states[0]).cycle();
        let mut took = Vec::new();
        let mut due = Duration::ZERO;
        for pod in all.take_while(|_| begin.elapsed() < during) {
            thread::sleep(due.saturating_sub(begin.elapsed()));
            due += apart;
            let start = Instant::now();
            self.store.apply(Arc::clone(pod));
            took.push(start.elapsed());
        }
        took
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

fn small_pod(number: usize, version: &str) -> Pod {
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
