//! A smoke alarm on real threads: schedules that nobody thought of. It asserts how much it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use homeostat_workqueue::Queue;
use tokio::task::{JoinSet, yield_now};

const KEYS: usize = 32;
const PRODUCERS: usize = 2;
const ROUNDS: usize = 4_000;
const WORKERS: usize = 4;

#[derive(Default)]
struct Key {
    /// How often something changed, and how much of that a worker has seen.
    changes: AtomicUsize,
    seen: AtomicUsize,
    held: AtomicBool,
}

struct World {
    queue: Queue<usize>,
    keys: Vec<Key>,
    handed_out: AtomicUsize,
    given_back: AtomicUsize,
    cancelled: AtomicUsize,
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
        // Slowly enough that workers wait, and are cancelled while they do.
        for _ in 0..round % 4 {
            yield_now().await;
        }
    }
}

async fn work(world: Arc<World>) {
    for turn in 1_usize.. {
        let item = if turn.is_multiple_of(3) {
            // Cancelled after one poll, or after it was woken: whatever the threads make of it.
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
        if turn.is_multiple_of(7) {
            world.given_back.fetch_add(1, SeqCst);
        } else {
            key.seen.store(seen, SeqCst);
            item.done();
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
    });
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(&world)));
    }
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        producers.spawn(produce(Arc::clone(&world), producer));
    }
    producers.join_all().await;
    // The delays must end, too, before nothing more is asked for.
    for key in 0..KEYS {
        world.queue.add(key);
    }
    let undone = world.queue.drain(Duration::from_secs(60)).await;
    assert!(undone.is_empty(), "{undone:?}");
    workers.join_all().await;
    for key in &world.keys {
        assert_eq!(key.seen.load(SeqCst), key.changes.load(SeqCst));
    }
    let load = |counter: &AtomicUsize| counter.load(SeqCst);
    assert!(load(&world.handed_out) > ROUNDS / 4, "{}", load(&world.handed_out));
    assert!(load(&world.given_back) > KEYS, "{}", load(&world.given_back));
    assert!(load(&world.cancelled) > 10, "{}", load(&world.cancelled));
}
