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

/// Workers that wait for keys between passes.
#[derive(Debug)]
pub struct Many<K> {
    queue: Queue<K>,
    world: Arc<World<K>>,
    /// The worker tasks; dropping the value ends them.
    workers: JoinSet<()>,
}

/// State that the workers share.
#[derive(Debug)]
struct World<K> {
    /// Number of keys that are not finished yet.
    left: AtomicUsize,
    finished: Notify,
    keep: AtomicBool,
    seen: Mutex<Vec<K>>,
}

// === impl Many ===

impl<K: Key> Many<K> {
    /// Starts the workers on the runtime of the caller.
    ///
    /// Each worker takes up to `most` keys at a time.
    pub fn start(queue: &Queue<K>, most: usize) -> Self {
        let world = Arc::new(World {
            left: AtomicUsize::new(0),
            finished: Notify::new(),
            keep: AtomicBool::new(false),
            seen: Mutex::new(Vec::new()),
        });
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(work(queue.clone(), Arc::clone(&world), most));
        }
        Self { queue: queue.clone(), world, workers }
    }

    /// Adds the keys in a separate task, and waits until the workers have finished all of them.
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

async fn work<K: Key>(queue: Queue<K>, world: Arc<World<K>>, most: usize) {
    let mut worker = queue.worker();
    while let Some(keys) = worker.next_batch(most).await {
        if world.keep.load(Ordering::Relaxed) {
            world.seen.lock().extend(keys.items().cloned());
        }
        let number = keys.items().count();
        if world.left.fetch_sub(number, Ordering::Relaxed) == number {
            world.finished.notify_one();
        }
    }
}
