//! The workloads that delay keys. Each pass has its own queue, because delayed keys stay in it.

use std::time::Duration;

use homeostat_workqueue::Queue;
use tokio::time::Instant;

use super::stopwatch::Stopwatch;
use super::{Key, Keys, Pass, drain};

/// The delay of keys that are due at the same time; usually long enough to add all of them.
const DUE_AFTER: Duration = Duration::from_millis(200);

/// Adds keys with delays of 3,600 to 4,600 s, in random order. None is handed out.
pub(super) fn delay<K: Key>(keys: &Keys<K>) -> Pass<K> {
    let queue = Queue::new();
    let delays: Vec<Duration> = delays().take(keys.len()).collect();
    let supply = keys.supply();
    let start = Stopwatch::start();
    for (key, delay) in supply.zip(delays) {
        queue.add_after(key, delay);
    }
    let took = start.read();
    assert!(queue.is_empty(), "a key was not delayed");
    Pass { took, ..Pass::default() }
}

/// Returns durations between 3,600 and 4,600 s, the same ones in each run.
fn delays() -> impl Iterator<Item = Duration> {
    // The upper bits of a linear congruential generator: random enough for a heap.
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_secs(3600) + Duration::from_millis((state >> 33) % 1_000_000)
    })
}

/// Adds keys that are due at the same time, and measures from then until all are handed out.
pub(super) async fn due<K: Key>(keys: &Keys<K>, keep: bool) -> Pass<K> {
    let mut after = DUE_AFTER;
    loop {
        let queue = Queue::new();
        let at = Instant::now() + after;
        for key in keys.supply() {
            queue.add_after(key, at.saturating_duration_since(Instant::now()));
        }
        if Instant::now() >= at {
            after *= 2; // Adding has taken too long: this machine is busy.
            continue;
        }
        let mut pass = Pass::default();
        let start = Stopwatch::start();
        drain(&queue, keys.len(), &mut pass, keep).await;
        return Pass { took: start.read_since(at), ..pass };
    }
}
