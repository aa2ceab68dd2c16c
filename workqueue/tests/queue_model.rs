//! Any schedule of the whole queue, under the paused clock, against a plain model.
//!
//! The queue decides who is woken; the model decides what is queued, held and delayed. What is checked
//! after each step: the numbers agree, no key has two holders, and if something is queued while workers
//! wait, then one of them was woken. At the end, a drain hands back exactly what the model has left.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{Processing, Queue};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};
use tokio::time::{Instant, sleep};
use tokio_test::task::{Spawn, spawn};

/// The unit tests' own: what runs a model is the same inside the crate and outside of it.
#[path = "../src/testing.rs"]
mod testing;

type Get = Spawn<Pin<Box<dyn Future<Output = Option<Processing<u8>>>>>>;

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    AddRateLimited(u8),
    Forget(u8),
    TryGet,
    /// One more worker waits.
    StartGet,
    /// The n-th worker is polled, woken or not.
    PollGet(usize),
    /// The n-th worker is cancelled.
    DropGet(usize),
    /// The n-th of those that are held is finished, or given back.
    Done(usize),
    GiveBack(usize),
    /// So many milliseconds pass.
    Pass(u64),
}

#[derive(Default)]
struct Exercised {
    handed_out: Cell<usize>,
    added_while_held: Cell<usize>,
    given_back: Cell<usize>,
    overtaken: Cell<usize>,
    came_due: Cell<usize>,
    cancelled_when_woken: Cell<usize>,
    handed_back: Cell<usize>,
}

/// What must be queued, held and delayed.
#[derive(Default)]
struct Model {
    queue: VecDeque<u8>,
    /// Held → whether it was added since.
    held: BTreeMap<u8, bool>,
    delayed: BTreeMap<u8, (Instant, usize)>,
    failures: BTreeMap<u8, u32>,
    arrivals: usize,
}

struct World<'a> {
    queue: Queue<u8>,
    model: Model,
    gets: Vec<Get>,
    held: BTreeMap<u8, Processing<u8>>,
    exercised: &'a Exercised,
}

fn count(counter: &Cell<usize>, by: usize) {
    counter.update(|count| count + by);
}

// === impl Model ===

impl Model {
    fn add(&mut self, item: u8) {
        if let Some(dirty) = self.held.get_mut(&item) {
            *dirty = true;
        } else if !self.queue.contains(&item) {
            self.queue.push_back(item);
        }
    }

    fn delay(&mut self, item: u8, due: Instant) {
        self.arrivals += 1;
        let known = self.delayed.entry(item).or_insert((due, self.arrivals));
        known.0 = known.0.min(due);
    }

    fn release(&mut self, item: u8, again: bool) {
        if self.held.remove(&item) == Some(true) || again {
            self.queue.push_back(item);
        }
    }

    /// Queues what is due, in order, and returns how many that were.
    fn come_due(&mut self, now: Instant) -> usize {
        let first = |model: &Self| model.delayed.iter().map(|(&item, &due)| (due, item)).min();
        let mut number = 0;
        while let Some(((due, _), item)) = first(self)
            && due <= now
        {
            self.delayed.remove(&item);
            self.add(item);
            number += 1;
        }
        number
    }
}

// === impl World ===

impl World<'_> {
    async fn apply(&mut self, step: Step) {
        let now = Instant::now();
        match step {
            Step::Add(item) => self.add(item),
            Step::AddAfter(item, 0) => {
                self.queue.add_after(item, Duration::ZERO);
                self.model.delayed.remove(&item);
                self.model.add(item);
            }
            Step::AddAfter(item, delay) => {
                let delay = Duration::from_millis(delay);
                self.queue.add_after(item, delay);
                self.model.delay(item, now + delay);
            }
            Step::AddRateLimited(item) => {
                self.queue.add_rate_limited(item);
                let failures = self.model.failures.entry(item).or_default();
                let delay = Duration::from_millis(5) * 2_u32.pow(*failures);
                *failures += 1;
                self.model.delay(item, now + delay);
            }
            Step::Forget(item) => {
                self.queue.forget(&item);
                self.model.failures.remove(&item);
            }
            Step::TryGet => {
                let item = self.queue.try_get();
                self.handed_out(item);
            }
            Step::StartGet => {
                let queue = self.queue.clone();
                self.gets.push(spawn(Box::pin(async move { queue.get().await })));
                self.poll(self.gets.len() - 1);
            }
            Step::PollGet(nth) if nth < self.gets.len() => self.poll(nth),
            Step::DropGet(nth) if nth < self.gets.len() => {
                let get = self.gets.remove(nth);
                count(&self.exercised.cancelled_when_woken, usize::from(get.is_woken()));
            }
            Step::Done(nth) => self.release(nth, false),
            Step::GiveBack(nth) => self.release(nth, true),
            Step::Pass(time) => self.pass(Duration::from_millis(time)).await,
            Step::PollGet(_) | Step::DropGet(_) => {}
        }
    }

    fn add(&mut self, item: u8) {
        self.queue.add(item);
        let overtaken = self.model.delayed.remove(&item).is_some();
        count(&self.exercised.overtaken, usize::from(overtaken));
        count(&self.exercised.added_while_held, usize::from(self.held.contains_key(&item)));
        self.model.add(item);
    }

    fn poll(&mut self, nth: usize) {
        match self.gets[nth].poll() {
            Poll::Ready(item) => {
                assert!(item.is_some(), "the queue is not shut down");
                drop(self.gets.remove(nth));
                self.handed_out(item);
            }
            Poll::Pending => assert!(self.model.queue.is_empty(), "it could have had one"),
        }
    }

    fn handed_out(&mut self, item: Option<Processing<u8>>) {
        assert_eq!(item.as_deref().copied(), self.model.queue.pop_front());
        let Some(item) = item else { return };
        count(&self.exercised.handed_out, 1);
        assert_eq!(self.model.held.insert(*item, false), None);
        assert!(self.held.insert(*item, item).is_none(), "one key, one worker");
    }

    fn release(&mut self, nth: usize, again: bool) {
        let Some(&item) = self.held.keys().nth(nth) else { return };
        let held = self.held.remove(&item).expect("just found");
        if again {
            drop(held);
        } else {
            held.done();
        }
        count(&self.exercised.given_back, usize::from(again));
        self.model.release(item, again);
    }

    async fn pass(&mut self, time: Duration) {
        sleep(time).await;
        // What is due at this very millisecond may still have to be queued by the timer's task.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let number = self.model.come_due(Instant::now());
        count(&self.exercised.came_due, number);
    }

    fn check(&self) {
        assert_eq!(self.queue.len(), self.model.queue.len());
        let waiting = !self.gets.is_empty();
        let woken = self.gets.iter().any(Get::is_woken);
        assert!(!waiting || woken || self.queue.is_empty(), "queued, but nobody was woken");
        for item in 0..ITEMS {
            let failures = self.model.failures.get(&item).copied().unwrap_or(0);
            assert_eq!(self.queue.failures(&item), failures);
        }
    }

    async fn end(self) {
        let left = self.queue.drain(Duration::from_millis(1)).await;
        count(&self.exercised.handed_back, left.len());
        let mut delayed: Vec<_> =
            self.model.delayed.iter().map(|(item, due)| (due, item)).collect();
        delayed.sort();
        assert_eq!(left.queued, Vec::from(self.model.queue));
        assert_eq!(left.delayed, delayed.iter().map(|(_, item)| **item).collect::<Vec<_>>());
        let held: BTreeSet<u8> = left.held.iter().copied().collect();
        assert_eq!(held, self.held.keys().copied().collect());
        assert_eq!(left.held.len(), held.len());
        drop(self.held);
        assert!(self.queue.is_empty(), "what was handed back is not queued again");
        for mut get in self.gets {
            assert!(matches!(get.poll(), Poll::Ready(None)));
        }
    }
}

const ITEMS: u8 = 5;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one_of = |make: fn(u8) -> Step| (0..ITEMS).prop_map(make);
    let nth = |make: fn(usize) -> Step| (0..4_usize).prop_map(make);
    let step = prop_oneof![
        10 => one_of(Step::Add),
        6 => (0..ITEMS, 0..40_u64).prop_map(|(item, delay)| Step::AddAfter(item, delay)),
        2 => one_of(Step::AddRateLimited),
        1 => one_of(Step::Forget),
        3 => one_of(|_| Step::TryGet),
        5 => one_of(|_| Step::StartGet),
        6 => nth(Step::PollGet),
        3 => nth(Step::DropGet),
        6 => nth(Step::Done),
        3 => nth(Step::GiveBack),
        4 => (0..30_u64).prop_map(Step::Pass),
    ];
    vec(step, 1..160)
}

async fn run(steps: Vec<Step>, exercised: &Exercised) {
    let (queue, model) = (Queue::new(), Model::default());
    let mut world = World { queue, model, gets: Vec::new(), held: BTreeMap::new(), exercised };
    for step in steps {
        world.apply(step).await;
        world.check();
    }
    world.end().await;
}

#[test]
#[expect(clippy::print_stdout, reason = "a model test says what it has exercised")]
fn any_schedule_is_that_of_the_model() {
    let exercised = Exercised::default();
    testing::check(&steps(), |steps| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(steps, &exercised));
    });
    for (what, number, least) in [
        ("handed out", &exercised.handed_out, 2_000),
        ("added while held", &exercised.added_while_held, 500),
        ("dropped without done", &exercised.given_back, 300),
        ("delays overtaken by an add", &exercised.overtaken, 150),
        ("delays that ended", &exercised.came_due, 300),
        ("cancelled after they were woken", &exercised.cancelled_when_woken, 50),
        ("handed back by a drain", &exercised.handed_back, 500),
    ] {
        println!("{what}: {}", number.get());
        assert!(number.get() >= least, "{what}: only {}", number.get());
    }
}
