//! One producer and 16 workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use homeostat_workqueue::Queue;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::stopwatch::Stopwatch;
use super::{Key, Pass};

const WORKERS: usize = 16;

/// Workers who wait for keys from one pass to the next.
#[derive(Debug)]
pub struct Many<K> {
    queue: Queue<K>,
    world: Arc<World<K>>,
    /// Dropped with this, which ends them.
    workers: JoinSet<()>,
}

/// What the workers share.
#[derive(Debug)]
struct World<K> {
    /// How many keys are yet to be finished.
    left: AtomicUsize,
    finished: Notify,
    keep: AtomicBool,
    seen: Mutex<Vec<K>>,
}

// === impl Many ===

impl<K: Key> Many<K> {
    /// Starts the workers on the runtime of the caller.
    pub fn start(queue: &Queue<K>) -> Self {
        let world = Arc::new(World {
            left: AtomicUsize::new(0),
            finished: Notify::new(),
            keep: AtomicBool::new(false),
            seen: Mutex::new(Vec::new()),
        });
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(work(queue.clone(), Arc::clone(&world)));
        }
        Self { queue: queue.clone(), world, workers }
    }

    /// Adds the keys from a task of its own, and waits until the workers have finished them all.
    pub(super) async fn pass(
        &self,
        supply: impl Iterator<Item = (K, i32)> + Send + 'static,
        count: usize,
        keep: bool,
    ) -> Pass<K> {
        assert_eq!(self.workers.len(), WORKERS);
        self.world.left.store(count, Ordering::Relaxed);
        self.world.keep.store(keep, Ordering::Relaxed);
        let queue = self.queue.clone();
        let mut producer = JoinSet::new();
        let start = Stopwatch::start();
        producer.spawn(async move {
            for (key, priority) in supply {
                queue.at_priority(priority).add(key);
            }
        });
        self.world.finished.notified().await;
        let took = start.read();
        producer.join_all().await;
        let handed_out = count - self.world.left.load(Ordering::Relaxed);
        let mut seen = self.world.seen.lock();
        Pass { took, handed_out, seen: std::mem::take(&mut *seen) }
    }
}

async fn work<K: Key>(queue: Queue<K>, world: Arc<World<K>>) {
    while let Some(key) = queue.get().await {
        if world.keep.load(Ordering::Relaxed) {
            let mut seen = world.seen.lock();
            seen.push(K::clone(&key));
        }
        key.done();
        if world.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            world.finished.notify_one();
        }
    }
}
