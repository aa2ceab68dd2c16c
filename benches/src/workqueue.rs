//! Workloads of the work queue's benchmarks: the same work as in `peers/workqueue` (Go).

use std::hash::Hash;

use homeostat_informer::ObjectKey;
use homeostat_workqueue::{Priorities, Processing, Queue};
use k8s_openapi::api::core::v1::Pod;

mod delays;
mod many;
mod stopwatch;
mod supply;
mod workload;

pub use self::many::Many;
pub use self::stopwatch::Took;
pub use self::supply::{Keys, Supply};
pub use self::workload::{Peer, Workload};

use self::stopwatch::Stopwatch;

/// Number of keys in a batch.
const BATCH: usize = 64;
/// Number of priorities of the keys, in workloads with priorities.
const LEVELS: i32 = 5;

/// A queue's key, made from the text of a pod's namespace and name.
pub trait Key: Eq + Hash + Clone + Send + Sync + 'static {
    /// Returns the key with this text.
    fn from_text(text: &str) -> Self;
}

/// A workload with its keys and its queue, ready for any number of passes.
#[derive(Debug)]
pub struct Work<K> {
    workload: Workload,
    keys: Keys<K>,
    queue: Queue<K>,
    /// Number of priorities of the keys.
    levels: i32,
    many: Option<Many<K>>,
}

/// Result of one pass.
#[derive(Debug)]
pub struct Pass<K> {
    /// Time of the measured part.
    pub took: Took,
    /// Number of keys handed out.
    pub handed_out: usize,
    /// The keys that were handed out, if the pass keeps them.
    pub seen: Vec<K>,
}

// === impl Key ===

impl Key for String {
    fn from_text(text: &str) -> Self {
        text.to_owned()
    }
}

impl Key for ObjectKey<Pod> {
    fn from_text(text: &str) -> Self {
        text.parse().expect("the texts are keys of pods")
    }
}

// === impl Pass ===

impl<K> Default for Pass<K> {
    fn default() -> Self {
        Self { took: Took::default(), handed_out: 0, seen: Vec::new() }
    }
}

impl<K: Key> Pass<K> {
    /// Finishes a key.
    #[inline]
    fn hand_out(&mut self, key: Processing<K>, keep: bool) {
        self.handed_out += 1;
        if keep {
            self.seen.push(K::clone(&key));
        }
        key.done();
    }
}

// === impl Work ===

impl<K: Key> Work<K> {
    /// Makes the queue and the other parts that all passes share. Needs a tokio runtime.
    pub fn new(workload: Workload, keys: Keys<K>) -> Self {
        let (queue, levels) = if workload.has_priorities() {
            (Queue::builder().priorities(Priorities::default()).build(), LEVELS)
        } else if workload == Workload::CycleInspected {
            (Queue::builder().inspect().build(), 1)
        } else {
            (Queue::new(), 1)
        };
        let most = match workload {
            Workload::Workers | Workload::PriorityWorkers => Some(1),
            Workload::WorkerBatches => Some(16),
            _ => None,
        };
        let many = most.map(|most| Many::start(&queue, most));
        if workload == Workload::ReAdd {
            keys.supply().for_each(|key| queue.add(key));
        }
        Self { workload, keys, queue, levels, many }
    }

    /// Does the work once. `keep` keeps the keys that are handed out, which costs time.
    ///
    /// # Panics
    ///
    /// Panics if the queue does not hold the added keys.
    pub async fn pass(&mut self, keep: bool) -> Pass<K> {
        use Workload as W;
        match self.workload {
            W::CycleGet => self.cycle_get(keep).await,
            W::Cycle | W::CycleInspected | W::PriorityCycle => self.cycle(keep).await,
            W::Workers | W::WorkerBatches | W::PriorityWorkers => {
                let many = self.many.as_ref().expect("made for this workload");
                many.pass(self.supply(), self.keys.len(), keep).await
            }
            W::Burst | W::PriorityBurst => self.burst(&self.queue, keep).await,
            W::BurstFresh => self.burst(&Queue::new(), keep).await,
            W::Batch | W::PriorityBatch => self.batch(keep).await,
            W::ReAdd => self.re_add(),
            W::Delay => delays::delay(&self.keys),
            W::Due => delays::due(&self.keys, keep).await,
        }
    }

    /// Returns the keys and their priorities.
    fn supply(&self) -> impl Iterator<Item = (K, i32)> + Send + use<K> {
        self.keys.supply().zip(priorities(self.levels))
    }

    /// Adds and takes one key after the other; the next step finishes the last key.
    async fn cycle(&self, keep: bool) -> Pass<K> {
        let mut pass = Pass::default();
        let supply = self.supply();
        let mut worker = self.queue.worker();
        let start = Stopwatch::start();
        for (key, priority) in supply {
            self.queue.at_priority(priority).add(key);
            let key = worker.next().await.expect("the queue is not shut down");
            pass.handed_out += 1;
            if keep {
                pass.seen.push(K::clone(&key));
            }
            // The last key; the others are finished by the next step.
            if pass.handed_out == self.keys.len() {
                key.done();
            }
        }
        Pass { took: start.read(), ..pass }
    }

    /// Adds, gets and finishes one key after the other.
    async fn cycle_get(&self, keep: bool) -> Pass<K> {
        let mut pass = Pass::default();
        let supply = self.supply();
        let start = Stopwatch::start();
        for (key, priority) in supply {
            self.queue.at_priority(priority).add(key);
            let key = self.queue.get().await.expect("the queue is not shut down");
            pass.hand_out(key, keep);
        }
        Pass { took: start.read(), ..pass }
    }

    /// Adds all keys, then drains the queue.
    async fn burst(&self, queue: &Queue<K>, keep: bool) -> Pass<K> {
        let mut pass = Pass::default();
        let supply = self.supply();
        let start = Stopwatch::start();
        for (key, priority) in supply {
            queue.at_priority(priority).add(key);
        }
        drain(queue, queue.len(), &mut pass, keep).await;
        Pass { took: start.read(), ..pass }
    }

    /// Adds 64 keys per call, then drains the queue.
    async fn batch(&self, keep: bool) -> Pass<K> {
        let mut pass = Pass::default();
        let mut supply = self.keys.supply().peekable();
        let mut priorities = priorities(self.levels);
        let start = Stopwatch::start();
        while let (Some(_), Some(priority)) = (supply.peek(), priorities.next()) {
            self.queue.at_priority(priority).add_batch(supply.by_ref().take(BATCH));
        }
        drain(&self.queue, self.queue.len(), &mut pass, keep).await;
        Pass { took: start.read(), ..pass }
    }

    /// Adds keys that are queued already; nothing is handed out.
    fn re_add(&self) -> Pass<K> {
        let supply = self.keys.supply();
        let start = Stopwatch::start();
        for key in supply {
            self.queue.add(key);
        }
        let took = start.read();
        assert_eq!(self.queue.len(), self.keys.len(), "a queued key was queued twice");
        Pass { took, ..Pass::default() }
    }
}

/// Returns 0, 1, 2, …, `levels` - 1 in a cycle.
fn priorities(levels: i32) -> impl Iterator<Item = i32> + Send {
    let mut next = 0;
    std::iter::repeat_with(move || {
        let priority = next;
        next = if next + 1 == levels { 0 } else { next + 1 };
        priority
    })
}

/// Gets and finishes `count` keys.
async fn drain<K: Key>(queue: &Queue<K>, count: usize, pass: &mut Pass<K>, keep: bool) {
    let mut worker = queue.worker();
    for number in 1..=count {
        let key = worker.next().await.expect("the queue is not shut down");
        pass.handed_out += 1;
        if keep {
            pass.seen.push(K::clone(&key));
        }
        // The last key; the others are finished by the next call.
        if number == count {
            key.done();
        }
    }
}

/// Returns the texts of the keys, 40 bytes each. The Go program makes the same texts.
pub fn texts(count: usize) -> impl Iterator<Item = String> {
    let texts = (0..count).map(|number| {
        let hash = u32::try_from(number).unwrap_or(u32::MAX).wrapping_mul(2_654_435_761);
        format!("namespace-{:04}/deployment-{hash:08x}-{:05}", number % 100, number % 100_000)
    });
    texts.inspect(|text| debug_assert_eq!(text.len(), 40))
}
