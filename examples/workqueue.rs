//! The work queue alone: producers, workers, a key that keeps failing, and a drain. Nothing of
//! Kubernetes in it.
//!
//! ```text
//! cargo run --example workqueue
//! ```
//!
//! It ends by itself after about two seconds. The exit code is not zero when it has not seen what it
//! says.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use homeostat_workqueue::{ExponentialFailureRateLimiter, Processing, Queue, Undone};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const PRODUCERS: usize = 3;
const CHANGES: usize = 200;
const WORKERS: usize = 2;
const SHELVES: [&str; 5] = ["apples", "bread", "cheese", "dates", "eggs"];

/// A key that fails until this attempt, and how long it waits after the first one.
const SUPPLIER: &str = "supplier";
const ATTEMPTS: usize = 6;
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// A shop: customers take things from shelves, workers fill them up.
#[derive(Default)]
struct Shop {
    /// By shelf: what has happened to it.
    shelves: Mutex<BTreeMap<&'static str, Shelf>>,
}

#[derive(Default)]
struct Shelf {
    /// How often something was taken from it.
    changes: usize,
    /// How many of these changes somebody has looked at.
    seen: usize,
    /// How many workers are at it now, and the most there ever were.
    workers: usize,
    most_workers: usize,
    /// When somebody looked.
    looks: Vec<Instant>,
}

struct NoAnswer;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("\nfailed: {error:#}"));
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
    // Long after closing time.
    queue.add_after("stock-taking", Duration::from_secs(3600));

    producers.join_all().await;
    tell("The customers have gone; the workers finish what is queued …");
    // The back-off is a delay: a drain would hand it back instead of waiting for it.
    while shop.looks(SUPPLIER) < ATTEMPTS {
        sleep(FIRST_RETRY).await;
    }
    let undone = queue.drain(Duration::from_secs(5)).await;
    workers.join_all().await; // `get` has told them that nothing more comes.
    shop.report(&undone)
}

/// Changes shelves and says which, often more quickly than the workers can follow.
async fn produce(queue: Queue<&'static str>, shop: Arc<Shop>, producer: usize) {
    for change in 0..CHANGES {
        let name = SHELVES[(producer + change) % SHELVES.len()];
        shop.shelf(name, |shelf| shelf.changes += 1);
        queue.add(name); // First the change, then the request to look at it.
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

/// Takes a while. Nobody answers at the supplier's, for the first few times.
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

/// A terminal program speaks on standard output.
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
fn tell(line: &str) {
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

    /// Says what was seen, and fails if it is not what the queue promises.
    fn report(&self, undone: &Undone<&'static str>) -> anyhow::Result<()> {
        let mut shelves = self.shelves.lock();
        let supplier = shelves.remove(SUPPLIER).unwrap_or_default();
        let mut wait = FIRST_RETRY;
        for pair in supplier.looks.windows(2) {
            let waited = pair[1] - pair[0];
            tell(&format!("No answer at the supplier's: again after {} ms", waited.as_millis()));
            ensure!(waited >= wait, "it was to wait {wait:?}");
            wait *= 2;
        }
        tell("\nshelf     changes  looks  workers at once");
        for (name, shelf) in &*shelves {
            let Shelf { changes, seen, most_workers, .. } = *shelf;
            let looks = shelf.looks.len();
            tell(&format!("{name:<8} {changes:>8} {looks:>6} {most_workers:>16}"));
            ensure!(most_workers == 1, "two workers at the {name} at once");
            ensure!(seen == changes, "nobody has seen the last change of the {name}");
            ensure!(looks < changes, "no two changes of the {name} were merged");
        }
        tell("\nOne key, one worker; many changes are one look; no change went unseen.");
        tell(&format!("Handed back by the drain: {:?}", undone.delayed));
        ensure!(undone.delayed == ["stock-taking"], "the drain has lost a delayed key");
        ensure!(undone.len() == 1, "the workers have not finished in time: {undone:?}");
        ensure!(shelves.len() == SHELVES.len(), "nobody looked at a shelf");
        Ok(())
    }
}
