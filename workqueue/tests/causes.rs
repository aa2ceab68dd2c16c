//! Causes: each added cause is delivered to exactly one worker.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use homeostat_workqueue::{LOW_PRIORITY, Priorities, Processing, Queue};
use proptest::prelude::{Just, Strategy, prop_oneof};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// Shared with the unit tests, so that every model runs alike.
#[path = "../src/testing.rs"]
mod testing;

use self::testing::{Schedules, Tally};

const MINUTE: Duration = Duration::from_secs(60);

/// Keeps all causes, the earlier ones first.
fn join(earlier: &mut Vec<u32>, later: Vec<u32>) {
    earlier.extend(later);
}

fn queue() -> Queue<u8, Vec<u32>> {
    Queue::builder().causes(join).build()
}

fn take(queue: &Queue<u8, Vec<u32>>) -> Processing<u8, Vec<u32>> {
    queue.try_get().expect("an item is queued")
}

/// Finishes the next item and returns its cause.
fn finish(queue: &Queue<u8, Vec<u32>>) -> Vec<u32> {
    let item = take(queue);
    let cause = item.cause().clone();
    item.done();
    cause
}

#[test]
fn cause_reaches_the_worker() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    assert_eq!(take(&queue).cause(), &[1]);
}

#[test]
fn causes_of_a_queued_item_are_merged() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    queue.because(vec![9]).add(9);
    queue.because(vec![2]).add(0);
    assert_eq!(finish(&queue), [1, 2]);
    assert_eq!(finish(&queue), [9], "each item has its own cause");
}

#[test]
fn cause_added_while_held_belongs_to_the_next_hand_out() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    let item = take(&queue);
    queue.because(vec![2]).add(0);
    queue.because(vec![3]).add(0);
    assert_eq!(item.cause(), &[1]);
    item.done();
    assert_eq!(finish(&queue), [2, 3]);
    assert!(queue.is_empty());
}

#[test]
fn item_given_back_keeps_its_cause() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    drop(take(&queue));
    assert_eq!(take(&queue).cause(), &[1]);
}

#[test]
fn worker_that_panics_gives_the_cause_back() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let item = take(&queue);
        queue.because(vec![2]).add(0);
        panic!("while it holds {}", *item);
    }));
    assert!(outcome.is_err());
    assert_eq!(finish(&queue), [1, 2], "the returned cause comes before the later one");
}

#[tokio::test(start_paused = true)]
async fn delayed_item_keeps_its_cause() {
    let queue = queue();
    queue.because(vec![1]).add_after(0, MINUTE);
    sleep(MINUTE).await;
    let item = queue.get().await.expect("the delay is over");
    assert_eq!(item.cause(), &[1]);
}

#[tokio::test(start_paused = true)]
async fn causes_of_two_delays_are_merged_in_the_order_of_the_adds() {
    for (first, second) in [(1, 2), (2, 1)] {
        let queue = queue();
        queue.because(vec![1]).add_after(0, MINUTE * first);
        queue.because(vec![2]).add_after(0, MINUTE * second);
        let item = queue.get().await.expect("a delay is over");
        assert_eq!(item.cause(), &[1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn add_takes_the_cause_of_the_delay_that_it_ends() {
    let queue = queue();
    queue.because(vec![1]).add_after(0, MINUTE);
    queue.because(vec![2]).add(0);
    assert_eq!(finish(&queue), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn ended_delay_merges_its_cause_into_queued_or_held_item() {
    let queue = queue();
    for item in [0, 1] {
        queue.because(vec![1]).add(item);
    }
    let held = take(&queue);
    for item in [0, 1] {
        queue.because(vec![2]).add_after(item, MINUTE);
    }
    sleep(MINUTE * 2).await;
    assert_eq!(finish(&queue), [1, 2], "it was queued");
    held.done();
    assert_eq!(finish(&queue), [2], "it was held");
}

#[tokio::test(start_paused = true)]
async fn cancelled_delay_drops_its_cause() {
    let queue = queue();
    queue.because(vec![1]).add_after(0, MINUTE);
    assert!(queue.cancel(&0));
    queue.because(vec![2]).add(0);
    assert_eq!(finish(&queue), [2]);
}

#[tokio::test(start_paused = true)]
async fn retry_has_a_cause_and_a_priority() {
    let queue = Queue::builder().causes(join).priorities(Priorities::default()).build();
    queue.because(vec![1]).at_priority(LOW_PRIORITY).add_rate_limited(0);
    let item = queue.get().await.expect("the back-off is over");
    assert_eq!((item.cause(), item.priority()), (&vec![1], LOW_PRIORITY));
}

#[test]
fn batch_gives_each_item_the_cause() {
    let queue = queue();
    queue.because(vec![1]).add_batch([0, 1, 0]);
    assert_eq!(finish(&queue), [1, 1]);
    assert_eq!(finish(&queue), [1]);
}

#[tokio::test]
async fn cause_of_handed_back_item_is_dropped() {
    let queue = queue();
    queue.because(vec![1]).add(0);
    let held = take(&queue);
    queue.because(vec![2]).add(0);
    let left = queue.drain(Duration::ZERO).await;
    assert_eq!(left.held, [0]);
    drop(held);
    assert!(queue.try_get().is_none());
}

/// Builds a queue whose merge function panics for the cause 13.
fn touchy() -> Queue<u8, Vec<u32>> {
    Queue::builder()
        .causes(|earlier: &mut Vec<u32>, later| {
            assert_ne!(later, [13], "this cause cannot be merged");
            earlier.extend(later);
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn merge_panic_keeps_the_earlier_cause() {
    let queue = touchy();
    queue.because(vec![1]).add(0);
    queue.because(vec![13]).add(0);
    queue.because(vec![13]).add_batch([0]);
    queue.because(vec![13]).add_after(0, MINUTE);
    sleep(MINUTE).await; // the timer continues after the panic
    yield_now().await;
    queue.because(vec![2]).add_after(0, MINUTE);
    sleep(MINUTE * 2).await;
    let item = take(&queue);
    assert_eq!(item.cause(), &[1, 2]);
    queue.because(vec![13]).add(0);
    drop(item);
    assert_eq!(finish(&queue), [1, 2]);
    assert!(queue.is_empty());
}

#[test]
fn merge_panic_during_a_worker_panic_does_not_abort() {
    let queue = touchy();
    queue.because(vec![1]).add(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _item = take(&queue);
        queue.because(vec![13]).add(0);
        panic!("the panic of the worker");
    }));
    assert!(outcome.is_err());
    assert_eq!(finish(&queue), [1]);
}

#[test]
fn zero_sized_causes_are_not_merged() {
    thread_local! {
        static MERGED: Cell<u32> = const { Cell::new(0) };
    }
    let queue = Queue::builder().causes(|(), ()| MERGED.set(MERGED.get() + 1)).build();
    queue.add(0);
    queue.add(0);
    assert_eq!(MERGED.get(), 0);
}

/// A zero-sized cause adds nothing to the size of a guard.
#[test]
fn guard_without_causes_has_no_extra_size() {
    assert_eq!(size_of::<Processing<u64>>(), 3 * size_of::<u64>());
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddBatch(Vec<u8>),
    AddAfter(u8, u64),
    Cancel(u8),
    Take,
    /// Finishes the n-th held item.
    Done(usize),
    /// Drops the n-th held item without `done`.
    GiveBack(usize),
    /// Advances the clock by this number of seconds.
    Pass(u64),
}

/// All causes of one key, by the state of the key; each list is in merge order.
#[derive(Default)]
struct Causes {
    queued: Vec<u32>,
    delayed: Vec<u32>,
    /// End of the delay; not valid while `delayed` is empty.
    due: Option<Instant>,
    /// Causes of an item that was given back repeatedly.
    resting: Vec<u32>,
    /// End of the rest; not valid while `resting` is empty.
    rested: Option<Instant>,
    held: Option<Vec<u32>>,
    added_while_held: Vec<u32>,
    /// Number of times that the key was given back since it was last done.
    given_back: u32,
}

// === impl Causes ===

impl Causes {
    /// Adds causes to the queued request, or to the one that is queued after the worker finishes.
    fn enqueue(&mut self, causes: Vec<u32>) {
        let pending =
            if self.held.is_some() { &mut self.added_while_held } else { &mut self.queued };
        pending.extend(causes);
    }

    fn add(&mut self, cause: u32) {
        let mut causes = std::mem::take(&mut self.resting);
        causes.append(&mut self.delayed);
        causes.push(cause);
        self.enqueue(causes);
    }

    fn delay(&mut self, cause: u32, due: Instant) {
        let earlier = if self.delayed.is_empty() { None } else { self.due };
        self.due = Some(earlier.map_or(due, |earlier| earlier.min(due)));
        self.delayed.push(cause);
    }

    fn end_delays(&mut self, now: Instant) {
        let is_over = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let delay_first = self.rested > self.due;
        for delay in [delay_first, !delay_first] {
            let (due, causes) = if delay {
                (self.due, &mut self.delayed)
            } else {
                (self.rested, &mut self.resting)
            };
            if is_over(due) {
                let causes = std::mem::take(causes);
                self.enqueue(causes);
            }
        }
    }

    fn release(&mut self, given_back: bool) {
        let held = self.held.take().unwrap_or_default();
        let before = self.given_back;
        self.given_back = if given_back { before + 1 } else { 0 };
        if given_back && before > 0 && self.added_while_held.is_empty() {
            self.resting = held;
            let rest = Duration::from_millis(5) * 2_u32.pow(before - 1);
            self.rested = Some(Instant::now() + rest.min(Duration::from_secs(1000)));
            return;
        }
        if given_back {
            self.queued = held;
        }
        self.queued.append(&mut self.added_while_held);
    }
}

struct World {
    queue: Queue<u8, Vec<u32>>,
    model: BTreeMap<u8, Causes>,
    held: BTreeMap<u8, Processing<u8, Vec<u32>>>,
    next: u32,
}

// === impl World ===

impl World {
    fn new() -> Self {
        Self { queue: queue(), model: BTreeMap::new(), held: BTreeMap::new(), next: 0 }
    }

    fn cause(&mut self) -> (u32, Vec<u32>) {
        self.next += 1;
        (self.next, vec![self.next])
    }

    fn model(&mut self, item: u8) -> &mut Causes {
        self.model.entry(item).or_default()
    }

    async fn apply(&mut self, step: &Step, tally: &Tally) {
        match step {
            Step::Add(item) => {
                let (number, cause) = self.cause();
                let model = self.model(*item);
                tally.count("added while held", usize::from(model.held.is_some()));
                tally.count("ended a delay", usize::from(!model.delayed.is_empty()));
                model.add(number);
                self.queue.because(cause).add(*item);
            }
            Step::AddBatch(items) => {
                let (number, cause) = self.cause();
                for item in items {
                    self.model(*item).add(number);
                }
                self.queue.because(cause).add_batch(items.iter().copied());
            }
            Step::AddAfter(item, delay) => {
                let (number, cause) = self.cause();
                let delay = Duration::from_secs(*delay);
                let model = self.model(*item);
                tally.count("delayed twice", usize::from(!model.delayed.is_empty()));
                model.delay(number, Instant::now() + delay);
                self.queue.because(cause).add_after(*item, delay);
            }
            Step::Cancel(item) => {
                let delayed = std::mem::take(&mut self.model(*item).delayed);
                assert_eq!(self.queue.cancel(item), !delayed.is_empty());
            }
            Step::Take => self.take(tally),
            Step::Done(nth) | Step::GiveBack(nth) => {
                let Some(&item) = self.held.keys().nth(*nth) else { return };
                let given_back = matches!(step, Step::GiveBack(_));
                self.model(item).release(given_back);
                let rests = usize::from(!self.model(item).resting.is_empty());
                tally.count("given back repeatedly", rests);
                let guard = self.held.remove(&item);
                tally.count("given back", usize::from(given_back));
                if !given_back && let Some(guard) = guard {
                    guard.done();
                }
            }
            Step::Pass(seconds) => {
                sleep(Duration::from_secs(*seconds)).await;
                for _ in 0..3 {
                    yield_now().await; // the timer runs
                }
                let now = Instant::now();
                self.model.values_mut().for_each(|causes| causes.end_delays(now));
            }
        }
    }

    fn take(&mut self, tally: &Tally) {
        let Some(guard) = self.queue.try_get() else {
            return assert!(self.model.values().all(|causes| causes.queued.is_empty()));
        };
        let item = *guard;
        let model = self.model(item);
        assert!(model.held.is_none(), "one key, one worker");
        let expected = std::mem::take(&mut model.queued);
        assert_eq!(guard.cause(), &expected, "item {item}");
        tally.record_outcome(|| format!("{item} for {expected:?}"));
        tally.count("handed out", 1);
        tally.count("handed out with merged causes", usize::from(expected.len() > 1));
        model.held = Some(expected);
        self.held.insert(item, guard);
    }
}

#[test]
fn no_cause_is_lost_or_invented_in_any_schedule() {
    let item = || 0..4_u8;
    let step = prop_oneof![
        8 => item().prop_map(Step::Add),
        2 => proptest::collection::vec(item(), 0..4).prop_map(Step::AddBatch),
        5 => (item(), 1..9_u64).prop_map(|(item, delay)| Step::AddAfter(item, delay)),
        1 => item().prop_map(Step::Cancel),
        10 => Just(Step::Take),
        4 => (0..3_usize).prop_map(Step::Done),
        4 => (0..3_usize).prop_map(Step::GiveBack),
        3 => (1..6_u64).prop_map(Step::Pass),
    ];
    let least = &[
        ("handed out", 1_000),
        ("handed out with merged causes", 500),
        ("added while held", 300),
        ("ended a delay", 100),
        ("delayed twice", 100),
        ("given back", 200),
        ("given back repeatedly", 50),
    ];
    Schedules { step, longest: 80, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for step in steps {
                tally.record_step(|| format!("{step:?}"));
                world.apply(step, tally).await;
            }
        });
    });
}
