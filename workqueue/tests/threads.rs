//! A smoke test on real threads, for schedules that the other tests do not cover. It also asserts a
//! minimum of hand-outs, given-back items and cancellations.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use homeostat_workqueue::Queue;
use tokio::task::{JoinSet, yield_now};

const KEYS: usize = 32;
const PRODUCERS: usize = 2;
const ROUNDS: usize = 4_000;
/// Number of workers of each kind.
const WORKERS: usize = 2;

#[derive(Default)]
struct Key {
    /// Number of changes.
    changes: AtomicUsize,
    /// Number of changes that a worker has seen.
    seen: AtomicUsize,
    held: AtomicBool,
}

struct World {
    queue: Queue<usize>,
    keys: Vec<Key>,
    handed_out: AtomicUsize,
    given_back: AtomicUsize,
    cancelled: AtomicUsize,
    /// Set when the producers have ended: no item is given back then.
    stops: AtomicBool,
}

async fn produce(world: Arc<World>, producer: usize) {
    for round in 0..ROUNDS {
        let key = (round * 7 + producer) % KEYS;
        world.keys[key].changes.fetch_add(1, SeqCst);
        if round % 16 == 0 {
            world.queue.add_after(key, Duration::from_millis(1));
        } else {
            world.queue.add(key);
        }
        // Produces slowly enough that workers wait and are cancelled while they wait.
        for _ in 0..round % 4 {
            yield_now().await;
        }
    }
}

async fn work(world: Arc<World>) {
    for turn in 1_usize.. {
        let item = if turn.is_multiple_of(3) {
            // Cancels the get after one poll or after its wake-up, as the threads happen to run.
            tokio::select! {
                biased;
                item = world.queue.get() => item,
                () = yield_now() => {
                    world.cancelled.fetch_add(1, SeqCst);
                    continue;
                }
            }
        } else {
            world.queue.get().await
        };
        let Some(item) = item else { return };
        let key = &world.keys[*item];
        assert!(!key.held.swap(true, SeqCst), "one key, one worker");
        world.handed_out.fetch_add(1, SeqCst);
        let seen = key.changes.load(SeqCst);
        yield_now().await;
        key.held.store(false, SeqCst);
        if turn.is_multiple_of(7) && !world.stops.load(SeqCst) {
            world.given_back.fetch_add(1, SeqCst);
        } else {
            key.seen.store(seen, SeqCst);
            item.done();
        }
    }
}

/// As `work`, with items that are lent, one or several at a time.
async fn work_lent(world: Arc<World>) {
    let mut worker = world.queue.worker();
    for turn in 1_usize.. {
        let batch = if turn.is_multiple_of(3) {
            tokio::select! {
                biased;
                batch = worker.next_batch(4) => batch,
                () = yield_now() => {
                    world.cancelled.fetch_add(1, SeqCst);
                    continue;
                }
            }
        } else {
            worker.next_batch(1 + turn % 4).await
        };
        let Some(batch) = batch else { return };
        let keys = || batch.items().map(|&item| &world.keys[item]);
        for key in keys() {
            assert!(!key.held.swap(true, SeqCst), "one key, one worker");
            world.handed_out.fetch_add(1, SeqCst);
        }
        let seen: Vec<usize> = keys().map(|key| key.changes.load(SeqCst)).collect();
        yield_now().await;
        keys().for_each(|key| key.held.store(false, SeqCst));
        if turn.is_multiple_of(7) && !world.stops.load(SeqCst) {
            world.given_back.fetch_add(1, SeqCst);
            batch.give_back();
        } else {
            keys().zip(seen).for_each(|(key, seen)| key.seen.store(seen, SeqCst));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_change_goes_unseen() {
    let counter = AtomicUsize::default;
    let world = Arc::new(World {
        queue: Queue::new(),
        keys: (0..KEYS).map(|_| Key::default()).collect(),
        handed_out: counter(),
        given_back: counter(),
        cancelled: counter(),
        stops: AtomicBool::new(false),
    });
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(&world)));
        workers.spawn(work_lent(Arc::clone(&world)));
    }
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        producers.spawn(produce(Arc::clone(&world), producer));
    }
    producers.join_all().await;
    world.stops.store(true, SeqCst);
    // Adds each key a last time, so that no delay is still pending when the drain starts.
    for key in 0..KEYS {
        world.queue.add(key);
    }
    let unfinished = world.queue.drain(Duration::from_secs(60)).await;
    assert!(unfinished.is_empty(), "{unfinished:?}");
    workers.join_all().await;
    for key in &world.keys {
        assert_eq!(key.seen.load(SeqCst), key.changes.load(SeqCst));
    }
    let load = |counter: &AtomicUsize| counter.load(SeqCst);
    assert!(load(&world.handed_out) > ROUNDS / 4, "{}", load(&world.handed_out));
    assert!(load(&world.given_back) > KEYS, "{}", load(&world.given_back));
    assert!(load(&world.cancelled) > 10, "{}", load(&world.cancelled));
}
