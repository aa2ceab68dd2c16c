//! The work queue alone: producers, workers, a key that keeps failing, and a drain. It uses no
//! Kubernetes types.
//!
//! ```text
//! cargo run --example workqueue
//! ```
//!
//! It ends by itself after about 2 seconds. The exit code is not zero if the queue broke a promise.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use homeostat_workqueue::{ExponentialFailureRateLimiter, Processing, Queue, Unfinished};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const PRODUCERS: usize = 3;
const CHANGES: usize = 200;
const WORKERS: usize = 2;
const SHELVES: [&str; 5] = ["apples", "bread", "cheese", "dates", "eggs"];

/// A key that fails until this attempt, and its delay after the first one.
const SUPPLIER: &str = "supplier";
const ATTEMPTS: usize = 6;
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// A shop: customers take things from shelves, workers fill them up.
#[derive(Default)]
struct Shop {
    /// The history of each shelf.
    shelves: Mutex<BTreeMap<&'static str, Shelf>>,
}

#[derive(Default)]
struct Shelf {
    /// Number of times that a customer took something.
    changes: usize,
    /// Number of these changes that a worker has seen.
    seen: usize,
    /// Number of workers at it now, and the highest such number.
    workers: usize,
    most_workers: usize,
    /// Instants at which a worker came.
    looks: Vec<Instant>,
}

struct NoAnswer;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(&format!("\nfailed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<()> {
    let shop = Arc::new(Shop::default());
    let back_off = ExponentialFailureRateLimiter::new(FIRST_RETRY, Duration::from_secs(10));
    let queue = Queue::builder().name("shelves").rate_limiter(back_off).build();

    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(queue.clone(), Arc::clone(&shop)));
    }
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        producers.spawn(produce(queue.clone(), Arc::clone(&shop), producer));
    }
    queue.add(SUPPLIER);
    // Due long after the example ends.
    queue.add_after("stock-taking", Duration::from_secs(3600));

    producers.join_all().await;
    print("The customers have gone; the workers finish what is queued …");
    // The back-off is a delay: a drain would hand it back instead of waiting for it.
    while shop.looks(SUPPLIER) < ATTEMPTS {
        sleep(FIRST_RETRY).await;
    }
    let unfinished = queue.drain(Duration::from_secs(5)).await;
    workers.join_all().await; // `get` has returned `None`.
    shop.report(&unfinished)
}

/// Changes shelves and queues them, often faster than the workers follow.
async fn produce(queue: Queue<&'static str>, shop: Arc<Shop>, producer: usize) {
    for change in 0..CHANGES {
        let name = SHELVES[(producer + change) % SHELVES.len()];
        shop.shelf(name, |shelf| shelf.changes += 1);
        queue.add(name); // First the change, then the key.
        sleep(Duration::from_millis(5)).await;
    }
}

async fn work(queue: Queue<&'static str>, shop: Arc<Shop>) {
    while let Some(name) = queue.get().await {
        match look(&shop, &name).await {
            Ok(()) => queue.forget(&name),
            Err(_) => queue.add_rate_limited(*name),
        }
        name.done();
    }
}

/// Visits a shelf for 10 ms. The supplier does not answer at the first attempts.
async fn look(shop: &Shop, name: &Processing<&'static str>) -> Result<(), NoAnswer> {
    let (changes, attempt) = shop.shelf(name, |shelf| {
        shelf.workers += 1;
        shelf.most_workers = shelf.most_workers.max(shelf.workers);
        shelf.looks.push(Instant::now());
        (shelf.changes, shelf.looks.len())
    });
    sleep(Duration::from_millis(10)).await;
    shop.shelf(name, |shelf| {
        shelf.workers -= 1;
        shelf.seen = changes;
    });
    if **name == SUPPLIER && attempt < ATTEMPTS { Err(NoAnswer) } else { Ok(()) }
}

/// Prints to standard output.
#[expect(clippy::print_stdout, reason = "the output of the example")]
fn print(line: &str) {
    println!("{line}");
}

// === impl Shop ===

impl Shop {
    fn shelf<R>(&self, name: &'static str, change: impl FnOnce(&mut Shelf) -> R) -> R {
        change(self.shelves.lock().entry(name).or_default())
    }

    fn looks(&self, name: &'static str) -> usize {
        self.shelf(name, |shelf| shelf.looks.len())
    }

    /// Prints the history, and fails if it breaks a promise of the queue.
    fn report(&self, unfinished: &Unfinished<&'static str>) -> anyhow::Result<()> {
        let mut shelves = self.shelves.lock();
        let supplier = shelves.remove(SUPPLIER).unwrap_or_default();
        let mut wait = FIRST_RETRY;
        for pair in supplier.looks.windows(2) {
            let waited = pair[1] - pair[0];
            print(&format!("The supplier did not answer: retried after {} ms", waited.as_millis()));
            ensure!(waited >= wait, "expected a wait of {wait:?}");
            wait *= 2;
        }
        print("\nshelf     changes  looks  workers at once");
        for (name, shelf) in &*shelves {
            let Shelf { changes, seen, most_workers, .. } = *shelf;
            let looks = shelf.looks.len();
            print(&format!("{name:<8} {changes:>8} {looks:>6} {most_workers:>16}"));
            ensure!(most_workers == 1, "two workers at the {name} at once");
            ensure!(seen == changes, "no worker saw the last change of the {name}");
            ensure!(looks < changes, "no two changes of the {name} were merged");
        }
        print("\nOne key, one worker; many changes are one visit; no change was missed.");
        print(&format!("Handed back by the drain: {:?}", unfinished.delayed));
        ensure!(unfinished.delayed == ["stock-taking"], "the drain has lost a delayed key");
        ensure!(unfinished.len() == 1, "the workers have not finished in time: {unfinished:?}");
        ensure!(shelves.len() == SHELVES.len(), "no worker came to one of the shelves");
        Ok(())
    }
}
