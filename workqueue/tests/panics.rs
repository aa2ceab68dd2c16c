//! A panic in the code of an item, or in a rate limiter, affects only the call in which it happens.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{FALLBACK_DELAY, Queue, RateLimiter, Worker};
use tokio::time::{Instant, sleep};
use tokio_test::task;

const MINUTE: Duration = Duration::from_secs(60);

thread_local! {
    /// Number of comparisons and clones that succeed before the next one panics.
    static PATIENCE: Cell<Option<u32>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct Touchy(u8);

fn touch() {
    PATIENCE.set(match PATIENCE.get() {
        Some(0) => panic!("this comparison or clone panics"),
        patience => patience.map(|left| left - 1),
    });
}

/// Runs `run` and asserts that it panics in the comparison or clone after the first `patience`.
fn panics_after(patience: u32, run: impl FnOnce()) {
    PATIENCE.set(Some(patience));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    PATIENCE.set(None);
    assert!(outcome.is_err(), "nothing panicked, so nothing was tested");
}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        touch();
        Self(self.0)
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        touch();
        self.0 == other.0
    }
}

impl Eq for Touchy {}

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Takes and finishes all queued items and returns them in order.
fn take_all(queue: &Queue<Touchy>) -> Vec<u8> {
    let items = std::iter::from_fn(|| queue.try_get());
    items
        .map(|item| {
            let number = item.0;
            item.done();
            number
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn add_that_panics_changes_nothing() {
    let queue = Queue::new();
    queue.add(Touchy(1));
    queue.add_after(Touchy(1), MINUTE);
    // The add compares the item with the queued one and with the delayed one.
    for comparisons in 0..2 {
        panics_after(comparisons, || queue.add(Touchy(1)));
        assert_eq!(queue.len(), 1);
        assert!(queue.cancel(&Touchy(1)), "it is still delayed");
        queue.add_after(Touchy(1), MINUTE);
    }
    assert_eq!(take_all(&queue), [1]);
}

#[test]
fn batch_that_panics_wakes_a_worker_for_the_earlier_items() {
    let queue = Queue::new();
    let mut workers = [(); 3].map(|()| task::spawn(queue.get()));
    assert!(workers.iter_mut().all(|worker| worker.poll().is_pending()));
    panics_after(0, || queue.add_batch([Touchy(1), Touchy(2), Touchy(2), Touchy(3)]));
    let woken = [0, 1, 2].map(|nth: usize| workers[nth].is_woken());
    assert_eq!((queue.len(), woken), (2, [true, false, false]));
}

#[tokio::test(start_paused = true)]
async fn delay_that_panics_at_its_end_stays_pending() {
    let queue = Queue::new();
    queue.add(Touchy(1));
    queue.add_after(Touchy(1), MINUTE);
    PATIENCE.set(Some(0));
    sleep(MINUTE * 2).await;
    PATIENCE.set(None);
    assert_eq!(take_all(&queue), [1]);
    // The timer tries again.
    sleep(MINUTE).await;
    assert_eq!(take_all(&queue), [1]);
}

#[test]
fn get_that_panics_takes_nothing() {
    let queue = Queue::new();
    queue.add_batch([Touchy(1), Touchy(2)]);
    panics_after(0, || drop(queue.try_get()));
    assert_eq!(take_all(&queue), [1, 2]);
}

#[test]
fn batch_of_a_call_that_panics_is_not_finished_by_the_next_call() {
    let queue = Queue::new();
    queue.add_batch([Touchy(1), Touchy(2), Touchy(3), Touchy(4)]);
    let mut worker = queue.worker();
    assert!(task::spawn(worker.next_batch(1)).poll().is_ready());
    // This call finishes 1, takes 2 and panics at 3.
    panics_after(1, || drop(task::spawn(worker.next_batch(2)).poll()));
    let mut next = task::spawn(worker.next_batch(8));
    let Poll::Ready(Some(batch)) = next.poll() else { panic!("three items are queued") };
    assert_eq!(batch.items().map(|item| item.0).collect::<Vec<_>>(), [3, 4, 2]);
    batch.done();
    assert!(queue.is_empty());
}

#[test]
fn call_that_panics_wakes_another_worker_for_the_item_that_it_queued_again() {
    let queue = Queue::new();
    queue.add(Touchy(1));
    let mut worker = queue.worker();
    assert!(task::spawn(worker.next()).poll().is_ready());
    queue.add(Touchy(1)); // while held
    let mut other = task::spawn(queue.get());
    assert!(other.poll().is_pending());
    // This call finishes 1, which is queued again, and panics when it takes 1.
    panics_after(0, || drop(task::spawn(worker.next()).poll()));
    assert_eq!((queue.len(), other.is_woken()), (1, true));
    drop(worker);
    assert!(other.poll().is_ready());
}

#[tokio::test(start_paused = true)]
async fn drain_that_panics_hands_nothing_back() {
    let queue = Queue::new();
    queue.add_batch([Touchy(1), Touchy(2), Touchy(3)]);
    let held = [(); 2].map(|()| queue.try_get().expect("three are queued"));
    panics_after(1, || {
        let mut drain = task::spawn(queue.drain(Duration::ZERO));
        assert!(drain.poll().is_ready());
    });
    let unfinished = queue.drain(Duration::ZERO).await;
    assert_eq!((unfinished.held.len(), unfinished.queued.len()), (2, 1));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn drain_whose_comparison_panics_hands_nothing_back() {
    let queue = Queue::new();
    queue.add_batch([Touchy(1), Touchy(2)]);
    queue.add_after(Touchy(3), MINUTE);
    panics_after(0, || {
        let mut drain = task::spawn(queue.drain(Duration::ZERO));
        assert!(drain.poll().is_ready());
    });
    let unfinished = queue.drain(Duration::ZERO).await;
    assert_eq!((unfinished.queued.len(), unfinished.delayed.len()), (2, 1));
}

/// A rate limiter whose methods all panic.
struct Broken;

impl<T> RateLimiter<T> for Broken {
    fn when(&mut self, _item: &T, _now: Instant) -> Duration {
        panic!("when")
    }

    fn forget(&mut self, _item: &T) {
        panic!("forget")
    }

    fn failures(&self, _item: &T) -> u32 {
        panic!("failures")
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limiter_panic_causes_the_fallback_delay() {
    let queue = Queue::builder().rate_limiter(Broken).inspect().build();
    let start = Instant::now();
    queue.add_rate_limited("a");
    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
    let snapshot = queue.inspect().expect("inspection is enabled");
    assert_eq!(snapshot.delayed[0].failures, 0);
    queue.get().await.expect("the delay is over").done();
    assert_eq!(start.elapsed(), FALLBACK_DELAY);
}

/// An item whose drop panics while `ARMED` is set.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fragile(u8);

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!ARMED.replace(false), "a panic of the item's drop");
    }
}

/// Takes the items 1 to 3 as one batch, and returns it as done or unfinished; the drop of an item
/// panics meanwhile.
fn drop_panics_in_batch(is_done: bool) -> (Queue<Fragile>, Worker<Fragile>) {
    let queue = Queue::new();
    queue.add_batch([Fragile(1), Fragile(2), Fragile(3)]);
    let mut worker = queue.worker();
    {
        let mut next = task::spawn(worker.next_batch(3));
        let Poll::Ready(Some(batch)) = next.poll() else { panic!("three items are queued") };
        ARMED.set(true);
        let end = || if is_done { batch.done() } else { batch.give_back() };
        assert!(catch_unwind(AssertUnwindSafe(end)).is_err(), "a drop has panicked");
    }
    (queue, worker)
}

#[tokio::test(start_paused = true)]
async fn batch_is_done_although_the_drop_of_an_item_panics() {
    let (queue, mut worker) = drop_panics_in_batch(true);
    assert!(task::spawn(worker.next()).poll().is_pending());
    let unfinished = queue.drain(Duration::ZERO).await;
    assert!(unfinished.is_empty(), "{} items are held", unfinished.held.len());
}

#[tokio::test(start_paused = true)]
async fn batch_is_given_back_although_the_drop_of_an_item_panics() {
    let (queue, worker) = drop_panics_in_batch(false);
    drop(worker);
    let unfinished = queue.drain(Duration::ZERO).await;
    assert_eq!((unfinished.held.len(), unfinished.queued.len()), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn drain_in_which_a_drop_panics_wakes_the_other_drains() {
    let queue = Queue::new();
    queue.add(Fragile(1));
    // Of two deadlines of one item the drain returns one, and drops the other one.
    queue.add_after(Fragile(2), MINUTE);
    queue.schedule(Fragile(2), MINUTE);
    let mut patient = task::spawn(queue.drain(MINUTE));
    assert!(patient.poll().is_pending(), "an item is queued");
    ARMED.set(true);
    let mut hasty = task::spawn(queue.drain(Duration::ZERO));
    assert!(catch_unwind(AssertUnwindSafe(|| hasty.poll().is_ready())).is_err());
    assert!(patient.is_woken(), "nothing is queued any more");
}

#[test]
fn worker_whose_item_panics_at_its_drop_has_no_share_of_a_batch_any_more() {
    let queue = Queue::new();
    queue.add_batch([Fragile(1), Fragile(2)]);
    let mut doomed = queue.worker();
    assert!(task::spawn(doomed.next()).poll().is_ready());
    ARMED.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(doomed))).is_err(), "a drop has panicked");
    let mut worker = queue.worker();
    let mut next = task::spawn(worker.next_batch(8));
    let Poll::Ready(Some(batch)) = next.poll() else { panic!("two items are queued") };
    assert_eq!(batch.items().count(), 2, "the only worker takes all");
}
