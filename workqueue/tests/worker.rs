//! One hand-written schedule for each promise of a worker, of the wake-ups, and of items that are
//! given back.

use std::time::Duration;

use homeostat_workqueue::{Queue, Worker};
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};

const SECOND: Duration = Duration::from_secs(1);

fn queue_of(items: impl IntoIterator<Item = u32>) -> Queue<u32> {
    let queue = Queue::new();
    queue.add_batch(items);
    queue
}

/// Takes the next item, which must be queued.
fn take(worker: &mut Worker<u32>) -> u32 {
    *assert_ready!(task::spawn(worker.next()).poll()).expect("the queue is not shut down")
}

fn take_batch(worker: &mut Worker<u32>, most: usize) -> Vec<u32> {
    let mut next = task::spawn(worker.next_batch(most));
    let batch = assert_ready!(next.poll()).expect("the queue is not shut down");
    batch.items().copied().collect()
}

// === next ===

#[test]
fn next_finishes_the_item_of_the_last_call() {
    let queue = queue_of([1, 2]);
    let mut worker = queue.worker();
    assert_eq!(take(&mut worker), 1);
    queue.add(1);
    assert_eq!(queue.len(), 1, "the worker holds the item");
    assert_eq!(take(&mut worker), 2);
    assert_eq!(take(&mut worker), 1, "it was added while held");
    assert_pending!(task::spawn(worker.next()).poll());
    queue.shut_down();
    assert!(assert_ready!(task::spawn(worker.next()).poll()).is_none());
}

#[tokio::test(start_paused = true)]
async fn cancelled_next_has_finished_the_last_item_and_took_none() {
    let queue = queue_of([1]);
    let mut worker = queue.worker();
    take(&mut worker);
    {
        let mut next = task::spawn(worker.next());
        assert_pending!(next.poll());
        queue.add(2);
        assert!(next.is_woken());
    }
    let unfinished = queue.drain(Duration::ZERO).await;
    assert_eq!((unfinished.held, unfinished.queued), (vec![], vec![2]));
}

#[test]
fn cancelled_next_passes_its_wake_up_on() {
    let queue = queue_of([]);
    let (mut first, mut second) = (queue.worker(), queue.worker());
    let mut first = task::spawn(first.next());
    let mut second = task::spawn(second.next());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add(1);
    assert_eq!((first.is_woken(), second.is_woken()), (true, false));
    drop(first);
    assert!(second.is_woken(), "the item is still queued and no other worker was woken");
    assert_eq!(*assert_ready!(second.poll()).expect("not shut down"), 1);
}

#[test]
fn next_dropped_before_its_wake_up_leaves_the_line() {
    let queue = queue_of([]);
    let (mut gone, mut stays) = (queue.worker(), queue.worker());
    let mut stays = task::spawn(stays.next());
    {
        let mut gone = task::spawn(gone.next());
        assert_pending!(gone.poll());
        assert_pending!(stays.poll());
    }
    queue.add(1);
    assert!(stays.is_woken());
}

#[test]
fn dropped_worker_gives_its_items_back() {
    let queue = queue_of([1, 2, 3]);
    let mut worker = queue.worker();
    assert_eq!(take_batch(&mut worker, 2), [1, 2]);
    drop(worker);
    let mut other = queue.worker();
    assert_eq!(take_batch(&mut other, 9), [3, 1, 2]);
}

#[test]
fn finished_item_is_not_given_back() {
    let queue = queue_of([1, 2]);
    let mut worker = queue.worker();
    let mut next = task::spawn(worker.next());
    assert_ready!(next.poll()).expect("not shut down").done();
    drop(next);
    drop(worker);
    assert_eq!(queue.len(), 1);
    assert_eq!(take(&mut queue.worker()), 2);
}

#[test]
fn item_given_back_goes_to_another_worker() {
    let queue = queue_of([1]);
    let mut worker = queue.worker();
    let mut next = task::spawn(worker.next());
    assert_ready!(next.poll()).expect("not shut down").give_back();
    assert_eq!(take(&mut queue.worker()), 1);
}

#[test]
fn lent_item_has_its_cause_and_priority() {
    let priorities = homeostat_workqueue::Priorities::default();
    let queue = Queue::builder().priorities(priorities).causes(|_: &mut u8, _| ()).build();
    queue.because(7).at_priority(3).add("a");
    let mut worker = queue.worker();
    let mut next = task::spawn(worker.next());
    let item = assert_ready!(next.poll()).expect("not shut down");
    assert_eq!((*item, *item.cause(), item.priority()), ("a", 7, 3));
}

// === batches ===

#[test]
fn batch_is_the_share_of_the_worker() {
    let queue = queue_of(0..10);
    let (mut first, mut second) = (queue.worker(), queue.worker());
    assert_eq!(take_batch(&mut first, 64), [0, 1, 2, 3, 4]);
    assert_eq!(take_batch(&mut second, 64), [5, 6, 7]);
    assert_eq!(take_batch(&mut second, 64), [8]);
    drop(first); // gives its five items back
    assert_eq!(take_batch(&mut second, 2), [9, 0], "at most two");
    assert_eq!(take_batch(&mut second, 0), [1], "at least one");
}

#[test]
fn batch_items_are_held_until_the_next_call() {
    let queue = queue_of([1, 2]);
    let mut worker = queue.worker();
    assert_eq!(take_batch(&mut worker, 2), [1, 2]);
    queue.add_batch([1, 2]);
    assert_eq!(queue.len(), 0, "the worker holds both");
    assert_eq!(take_batch(&mut worker, 9), [1, 2]);
}

// === wake-ups ===

#[test]
fn woken_worker_wakes_the_next_one() {
    let queue = queue_of([]);
    let mut gets: Vec<_> = (0..4).map(|_| task::spawn(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.add_batch([1, 2, 3]);
    let mut held = Vec::new();
    for nth in 0..3 {
        let woken: Vec<bool> = gets.iter().skip(nth).map(task::Spawn::is_woken).collect();
        assert!(woken[0] && !woken[1], "one at a time, the longest waiting one: {woken:?}");
        held.push(assert_ready!(gets[nth].poll()));
    }
    assert!(!gets[3].is_woken(), "nothing is left for it");
}

#[test]
fn sixteen_items_wake_one_more_worker() {
    let queue = queue_of([]);
    let mut gets: Vec<_> = (0..3).map(|_| task::spawn(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.add_batch(0..16);
    assert!(gets[0].is_woken() && !gets[1].is_woken());
    queue.add(16);
    assert!(gets[1].is_woken(), "the first worker may be late");
    assert!(!gets[2].is_woken());
}

#[test]
fn long_batch_wakes_one_worker_per_sixteen_items() {
    let queue = queue_of([]);
    let mut gets: Vec<_> = (0..3).map(|_| task::spawn(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.add_batch(0..17);
    let woken: Vec<bool> = gets.iter().map(task::Spawn::is_woken).collect();
    assert_eq!(woken, [true, true, false]);
}

#[test]
fn batch_that_is_requested_again_wakes_one_worker_per_sixteen_items() {
    let queue = queue_of(0..17);
    let mut worker = queue.worker();
    let mut next = task::spawn(worker.next_batch(17));
    let batch = assert_ready!(next.poll()).expect("the queue is not shut down");
    let mut gets: Vec<_> = (0..3).map(|_| task::spawn(queue.get())).collect();
    for get in &mut gets {
        assert_pending!(get.poll());
    }
    queue.add_batch(0..17);
    batch.done();
    let woken: Vec<bool> = gets.iter().map(task::Spawn::is_woken).collect();
    assert_eq!(woken, [true, true, false]);
}

// === items that are given back ===

#[tokio::test(start_paused = true)]
async fn item_dropped_again_and_again_is_delayed_ever_longer() {
    let queue = queue_of([1]);
    let start = Instant::now();
    let mut times = Vec::new();
    for _ in 0..5 {
        drop(queue.get().await);
        times.push(start.elapsed().as_millis());
    }
    assert_eq!(times, [0, 0, 5, 15, 35], "the first drop is not delayed");

    queue.get().await.expect("not shut down").done();
    queue.add(1);
    let done = Instant::now();
    drop(queue.get().await);
    drop(queue.get().await);
    assert_eq!(done.elapsed(), Duration::ZERO, "done has reset the count");
}

#[tokio::test(start_paused = true)]
async fn poison_item_does_not_keep_a_worker_busy() {
    let queue = queue_of([1]);
    let mut hand_outs = 0;
    let poisoned = async {
        loop {
            let mut worker = queue.worker(); // panics each time
            assert!(worker.next().await.is_some());
            drop(worker);
            hand_outs += 1;
        }
    };
    assert!(tokio::time::timeout(SECOND, poisoned).await.is_err());
    assert!(hand_outs < 12, "{hand_outs} hand-outs in a second");
}

#[tokio::test(start_paused = true)]
async fn add_ends_the_delay_of_an_item_that_was_given_back() {
    let queue = queue_of([1]);
    drop(queue.try_get());
    drop(queue.try_get());
    assert!(queue.try_get().is_none(), "it is delayed");
    assert!(!queue.cancel(&1), "its request cannot be cancelled");
    queue.add(1);
    queue.try_get().expect("it was added").done();
    sleep(SECOND).await;
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn item_added_while_held_is_queued_at_once_when_it_is_given_back() {
    let queue = queue_of([1]);
    for _ in 0..4 {
        let held = queue.try_get().expect("it is queued at once");
        queue.add(1);
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn item_given_back_after_the_shut_down_is_queued_at_once() {
    let queue = queue_of([1]);
    queue.shut_down();
    for _ in 0..4 {
        drop(queue.try_get().expect("it is queued at once"));
    }
}

#[test]
fn item_given_back_outside_of_a_runtime_is_queued_at_once() {
    let queue = queue_of([1]);
    for _ in 0..4 {
        drop(queue.try_get().expect("it is queued at once"));
    }
}

// === deadlines that stay ===

#[tokio::test(start_paused = true)]
async fn scheduled_item_is_handed_out_although_it_was_added_before() {
    let queue = queue_of([]);
    let start = Instant::now();
    queue.schedule(1, SECOND * 60);
    queue.add_after(1, SECOND * 30);
    queue.add(1); // ends the delay of `add_after`
    queue.try_get().expect("it was added").done();
    queue.get().await.expect("not shut down").done();
    assert_eq!(start.elapsed(), SECOND * 60);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancel_removes_both_deadlines_of_an_item() {
    let queue = queue_of([]);
    queue.schedule(1, SECOND);
    queue.add_after(1, SECOND);
    assert!(queue.cancel(&1));
    assert!(!queue.cancel(&1));
    sleep(SECOND * 2).await;
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_returns_an_item_with_two_deadlines_once() {
    let queue = queue_of([]);
    queue.schedule(1, SECOND);
    queue.add_after(1, SECOND * 2);
    assert_eq!(queue.drain(Duration::ZERO).await.delayed, [1]);
}
