//! Runs generated schedules of the whole queue against a simple model, under the paused clock.
//!
//! The queue decides which worker is woken; the model decides which items are queued, held and
//! delayed. After each step the test checks that both have the same numbers of items and failures,
//! that no key has two holders, and that a waiter was woken if it can continue. At the end a drain
//! hands back exactly the items that the model has left.

use std::collections::BTreeMap;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{Priorities, Processing, Queue, Unfinished};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use tokio::time::{Instant, sleep};
use tokio_test::task::{Spawn, spawn};

/// Shared with the unit tests, so that every model runs alike.
#[path = "../src/testing.rs"]
mod testing;

#[path = "queue_model/model.rs"]
mod model;

use self::model::{Added, Kind, Model, Options, Released};
use self::testing::{Schedules, Tally};

type Least = &'static [(&'static str, u64)];
type Get = Spawn<Pin<Box<dyn Future<Output = Option<Processing<u8>>>>>>;
type Drain = Spawn<Pin<Box<dyn Future<Output = Unfinished<u8>>>>>;

#[derive(Debug, Clone)]
enum Step {
    /// Adds an item; the last field is the priority, as in the next three steps.
    Add(u8, i32),
    AddBatch(Vec<u8>, i32),
    AddAfter(u8, u64, i32),
    Schedule(u8, u64, i32),
    AddRateLimited(u8, i32),
    Forget(u8),
    Cancel(u8),
    TryGet,
    /// Starts one more waiting worker.
    StartGet,
    /// Polls the n-th worker, woken or not.
    PollGet(usize),
    /// Cancels the n-th worker.
    DropGet(usize),
    /// Finishes the n-th held item.
    Done(usize),
    /// Drops the n-th held item without `done`.
    GiveBack(usize),
    /// Advances the clock by this number of milliseconds.
    Pass(u64),
    ShutDown,
    /// Starts one more drain, with a timeout in milliseconds.
    StartDrain(u64),
    PollDrain(usize),
    DropDrain(usize),
}

struct World<'a> {
    queue: Queue<u8>,
    model: Model,
    gets: Vec<Get>,
    drains: Vec<(Drain, Instant)>,
    held: BTreeMap<u8, Processing<u8>>,
    start: Instant,
    tally: &'a Tally,
}

fn name(item: u8) -> char {
    char::from(b'a' + item)
}

fn at(priority: i32) -> String {
    if priority == 0 { String::new() } else { format!(" at {priority}") }
}

fn names(items: &[u8]) -> String {
    items.iter().map(|&item| name(item)).collect()
}

// === impl World ===

impl World<'_> {
    async fn apply(&mut self, step: Step) {
        match step {
            Step::Add(item, priority) => self.add(item, priority),
            Step::AddBatch(items, priority) => self.add_batch(&items, priority),
            Step::AddAfter(item, delay, priority) => {
                self.delay(item, Kind::Delay, delay, priority);
            }
            Step::Schedule(item, delay, priority) => {
                self.delay(item, Kind::Schedule, delay, priority);
            }
            Step::AddRateLimited(item, priority) => self.add_rate_limited(item, priority),
            Step::Forget(item) => {
                self.record(|| format!("forget({})", name(item)));
                self.queue.forget(&item);
                self.model.failures.remove(&item);
            }
            Step::Cancel(item) => self.cancel(item),
            Step::TryGet => {
                self.record(|| "try_get".into());
                let item = self.queue.try_get();
                self.handed_out(item);
            }
            Step::StartGet => {
                self.record(|| format!("get #{}", self.gets.len()));
                let queue = self.queue.clone();
                self.gets.push(spawn(Box::pin(async move { queue.get().await })));
                self.poll_get(self.gets.len() - 1);
            }
            Step::PollGet(nth) if nth < self.gets.len() => {
                self.record(|| format!("poll get #{nth}"));
                self.poll_get(nth);
            }
            Step::DropGet(nth) if nth < self.gets.len() => {
                self.record(|| format!("drop get #{nth}"));
                let get = self.gets.remove(nth);
                self.tally.count("cancelled after they were woken", usize::from(get.is_woken()));
            }
            Step::Done(nth) => self.release(nth, false),
            Step::GiveBack(nth) => self.release(nth, true),
            Step::Pass(time) => self.pass(Duration::from_millis(time)).await,
            Step::ShutDown => {
                self.record(|| "shut_down".into());
                self.queue.shut_down();
                self.model.shut_down = true;
                self.tally.count("shut down", 1);
            }
            Step::StartDrain(timeout) => self.start_drain(timeout),
            Step::PollDrain(nth) if nth < self.drains.len() => {
                self.record(|| format!("poll drain #{nth}"));
                self.poll_drain(nth);
            }
            Step::DropDrain(nth) if nth < self.drains.len() => {
                self.record(|| format!("drop drain #{nth}"));
                drop(self.drains.remove(nth));
                self.tally.count("drains cancelled", 1);
            }
            Step::PollGet(_) | Step::DropGet(_) | Step::PollDrain(_) | Step::DropDrain(_) => {}
        }
    }

    fn record(&self, what: impl FnOnce() -> String) {
        self.tally.record_step(|| format!("{} @{}", what(), self.start.elapsed().as_millis()));
    }

    fn add(&mut self, item: u8, priority: i32) {
        self.record(|| format!("add({}){}", name(item), at(priority)));
        if priority == 0 {
            self.queue.add(item);
        } else {
            self.queue.at_priority(priority).add(item);
        }
        self.added(item, priority);
    }

    fn added(&mut self, item: u8, priority: i32) {
        if self.model.shut_down {
            self.tally.count("added after shut-down", 1);
            return;
        }
        let (added, overtaken) = self.model.add(item, priority);
        self.tally.record_outcome(|| format!("{added:?}"));
        self.tally.count("delays overtaken by an add", usize::from(overtaken));
        let kept = usize::from(self.model.is_scheduled(item));
        self.tally.count("deadlines kept by an add", kept);
        self.tally.count("added while held", usize::from(added == Added::Dirty));
        self.tally.count("raised to a higher priority", usize::from(added == Added::Raised));
    }

    fn add_batch(&mut self, items: &[u8], priority: i32) {
        self.record(|| format!("add_batch({}){}", names(items), at(priority)));
        self.queue.at_priority(priority).add_batch(items.iter().copied());
        for &item in items {
            self.added(item, priority);
        }
        self.tally.count("added in a batch", items.len());
    }

    fn delay(&mut self, item: u8, kind: Kind, delay: u64, priority: i32) {
        self.record(|| format!("{kind:?}({}, {delay}){}", name(item), at(priority)));
        let delay = Duration::from_millis(delay);
        match kind {
            Kind::Schedule => self.queue.at_priority(priority).schedule(item, delay),
            _ => self.queue.at_priority(priority).add_after(item, delay),
        }
        if delay.is_zero() {
            self.added(item, priority);
        } else {
            let moved = self.model.delay(item, kind, priority, Instant::now() + delay);
            self.tally.count("delays moved to an earlier time", usize::from(moved));
        }
    }

    fn add_rate_limited(&mut self, item: u8, priority: i32) {
        self.record(|| format!("add_rate_limited({}){}", name(item), at(priority)));
        self.queue.at_priority(priority).add_rate_limited(item);
        if !self.model.shut_down {
            let failures = self.model.failures.entry(item).or_default();
            let delay = Duration::from_millis(5) * 2_u32.pow((*failures).min(16));
            *failures += 1;
            self.model.delay(item, Kind::Delay, priority, Instant::now() + delay);
            self.tally.count("rate-limited", 1);
        }
    }

    fn cancel(&mut self, item: u8) {
        self.record(|| format!("cancel({})", name(item)));
        let cancelled = self.queue.cancel(&item);
        self.tally.record_outcome(|| cancelled.to_string());
        assert_eq!(cancelled, self.model.cancel(item));
        self.tally.count("delays cancelled", usize::from(cancelled));
    }

    fn poll_get(&mut self, nth: usize) {
        match self.gets[nth].poll() {
            Poll::Ready(item) => {
                assert!(item.is_some() || self.model.shut_down, "the queue is not shut down");
                drop(self.gets.remove(nth));
                self.tally.count("ended by shut-down", usize::from(item.is_none()));
                self.handed_out(item);
            }
            Poll::Pending => {
                self.tally.record_outcome(|| "waits".into());
                assert_eq!(self.model.queued(), 0, "the worker waits although an item is queued");
                assert!(!self.model.shut_down, "the worker waits after the shut-down");
            }
        }
    }

    fn handed_out(&mut self, item: Option<Processing<u8>>) {
        let key = item.as_deref().copied();
        self.tally.record_outcome(|| key.map_or_else(|| "none".into(), |key| name(key).into()));
        let aged = self.model.is_turn_of_oldest();
        let next = self.model.take();
        assert_eq!(key, next.map(|next| next.item), "the next item");
        let (Some(item), Some(next)) = (item, next) else { return };
        assert_eq!(item.priority(), next.priority);
        self.tally.count("handed out", 1);
        self.tally.count("handed out by age", usize::from(aged));
        assert!(self.held.insert(*item, item).is_none(), "one key, one worker");
    }

    fn release(&mut self, nth: usize, again: bool) {
        let Some(&item) = self.held.keys().nth(nth) else { return };
        self.record(|| format!("{}({})", if again { "drop" } else { "done" }, name(item)));
        let held = self.held.remove(&item).expect("just found");
        if again {
            drop(held);
        } else {
            held.done();
        }
        self.tally.count("dropped without done", usize::from(again));
        let released = self.model.release(item, again, Instant::now());
        self.tally.count("given back repeatedly", usize::from(released == Released::Resting));
        self.tally.record_outcome(|| format!("{released:?}"));
        let handed_back = released == Released::HandedBack;
        self.tally.count("returned after they were handed back", usize::from(handed_back));
    }

    async fn pass(&mut self, time: Duration) {
        self.record(|| format!("{} ms pass", time.as_millis()));
        sleep(time).await;
        // Lets the timer task run, so that it queues the items that are due now.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let due = self.model.come_due(Instant::now());
        self.tally.record_outcome(|| format!("{due} due"));
        self.tally.count("delays that ended", due);
    }

    fn start_drain(&mut self, timeout: u64) {
        self.record(|| format!("drain({timeout}) #{}", self.drains.len()));
        let (queue, timeout) = (self.queue.clone(), Duration::from_millis(timeout));
        let drain: Drain = spawn(Box::pin(async move { queue.drain(timeout).await }));
        self.drains.push((drain, Instant::now() + timeout));
        self.poll_drain(self.drains.len() - 1);
    }

    fn poll_drain(&mut self, nth: usize) {
        self.model.shut_down = true;
        let (drain, deadline) = &mut self.drains[nth];
        let over = *deadline <= Instant::now();
        let Poll::Ready(unfinished) = drain.poll() else {
            self.tally.record_outcome(|| "waits".into());
            assert!(!self.model.is_idle() && !over, "the drain could have ended");
            return;
        };
        self.tally.record_outcome(|| format!("{unfinished:?}"));
        assert!(self.model.is_idle() || over, "the drain ended early");
        drop(self.drains.remove(nth));
        let what = if over { "drains ended by their deadline" } else { "drains ended" };
        self.tally.count(what, 1);
        self.handed_back(unfinished);
    }

    fn handed_back(&mut self, mut unfinished: Unfinished<u8>) {
        self.tally.count("handed back by a drain", unfinished.len());
        unfinished.held.sort_unstable();
        assert_eq!(unfinished, self.model.hand_back());
    }

    fn check(&self) {
        assert_eq!(self.queue.len(), self.model.queued());
        assert_eq!(self.queue.is_shutting_down(), self.model.shut_down);
        let woken = self.gets.iter().filter(|get| get.is_woken()).count();
        let all_woken = woken == self.gets.len();
        assert!(woken > 0 || all_woken || self.queue.is_empty(), "queued, but no worker was woken");
        assert!(all_woken || !self.model.shut_down, "shut down, but not every worker was woken");
        let is_woken = |(drain, _): &(Drain, Instant)| drain.is_woken();
        assert!(
            !self.model.is_idle() || self.drains.iter().all(is_woken),
            "idle, but a drain waits"
        );
        for item in 0..ITEMS {
            let failures = self.model.failures.get(&item).copied().unwrap_or(0);
            assert_eq!(self.queue.failures(&item), failures);
        }
    }

    async fn end(mut self) {
        self.drains.clear();
        self.record(|| "drain(0)".into());
        let unfinished = self.queue.drain(Duration::ZERO).await;
        self.tally.record_outcome(|| format!("{unfinished:?}"));
        self.handed_back(unfinished);
        drop(self.held);
        assert!(self.queue.is_empty(), "an item was handed back and queued again");
        for mut get in self.gets {
            assert!(matches!(get.poll(), Poll::Ready(None)));
        }
    }
}

const ITEMS: u8 = 5;

fn steps() -> impl Strategy<Value = Step> {
    let one_of = |make: fn(u8) -> Step| (0..ITEMS).prop_map(make);
    let nth = |make: fn(usize) -> Step| (0..4_usize).prop_map(make);
    let priority = || prop_oneof![2 => Just(0), 1 => -1..2_i32];
    prop_oneof![
        80 => (0..ITEMS, priority()).prop_map(|(item, at)| Step::Add(item, at)),
        20 => (vec(0..ITEMS, 0..4), priority()).prop_map(|(items, at)| Step::AddBatch(items, at)),
        50 => (0..ITEMS, 0..40_u64, priority())
            .prop_map(|(item, delay, at)| Step::AddAfter(item, delay, at)),
        25 => (0..ITEMS, 0..40_u64, priority())
            .prop_map(|(item, delay, at)| Step::Schedule(item, delay, at)),
        20 => (0..ITEMS, priority()).prop_map(|(item, at)| Step::AddRateLimited(item, at)),
        10 => one_of(Step::Forget),
        10 => one_of(Step::Cancel),
        30 => Just(Step::TryGet),
        50 => Just(Step::StartGet),
        60 => nth(Step::PollGet),
        30 => nth(Step::DropGet),
        60 => nth(Step::Done),
        30 => nth(Step::GiveBack),
        40 => (0..30_u64).prop_map(Step::Pass),
        2 => Just(Step::ShutDown),
        6 => (0..40_u64).prop_map(Step::StartDrain),
        10 => (0..2_usize).prop_map(Step::PollDrain),
        6 => (0..2_usize).prop_map(Step::DropDrain),
    ]
}

fn queue(options: Options) -> Queue<u8> {
    let mut builder = Queue::builder();
    if options.priorities {
        let priorities = match NonZeroU32::new(options.oldest_every) {
            Some(every) => Priorities::default().oldest_every(every),
            None => Priorities::default().strict(),
        };
        builder = builder.priorities(priorities);
    }
    if options.fair {
        builder = builder.fair_by(|item| item % 2);
    }
    builder.build()
}

async fn run(options: Options, steps: &[Step], tally: &Tally) {
    let mut world = World {
        queue: queue(options),
        model: Model::new(options),
        gets: Vec::new(),
        drains: Vec::new(),
        held: BTreeMap::new(),
        start: Instant::now(),
        tally,
    };
    for step in steps {
        world.apply(step.clone()).await;
        world.check();
    }
    world.end().await;
}

fn check(options: Options, more: Least) {
    let least = &[LEAST, more].concat();
    Schedules { step: steps(), longest: 160, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run(options, steps, tally));
    });
}

/// Minimum counts of each operation with any options, per 10,000 operations.
const LEAST: Least = &[
    ("handed out", 400),
    ("added while held", 200),
    ("added after shut-down", 400),
    ("added in a batch", 300),
    ("dropped without done", 100),
    ("given back repeatedly", 5),
    ("deadlines kept by an add", 100),
    ("delays overtaken by an add", 100),
    ("delays moved to an earlier time", 15),
    ("delays cancelled", 15),
    ("delays that ended", 100),
    ("rate-limited", 100),
    ("cancelled after they were woken", 20),
    ("ended by shut-down", 150),
    ("shut down", 15),
    ("drains ended", 10),
    ("drains ended by their deadline", 7),
    ("drains cancelled", 7),
    ("returned after they were handed back", 4),
    ("handed back by a drain", 50),
];

#[test]
fn any_schedule_matches_the_model() {
    check(Options { priorities: false, oldest_every: 0, fair: false }, &[]);
}

#[test]
fn any_schedule_with_priorities_matches_the_model() {
    let more: Least = &[("raised to a higher priority", 25), ("handed out by age", 50)];
    check(Options { priorities: true, oldest_every: 3, fair: false }, more);
}

#[test]
fn any_schedule_with_strict_priorities_and_turns_matches_the_model() {
    let more: Least = &[("raised to a higher priority", 25)];
    check(Options { priorities: true, oldest_every: 0, fair: true }, more);
}
