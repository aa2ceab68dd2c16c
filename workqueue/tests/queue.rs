//! One hand-written schedule for each promise of the queue: who is polled when, and what must follow.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use homeostat_workqueue::{BucketRateLimiter, Processing, Queue, RateLimiter, Undone};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};

const MINUTE: Duration = Duration::from_secs(60);

fn queue_of<const N: usize>(items: [&'static str; N]) -> Queue<&'static str> {
    let queue = Queue::new();
    for item in items {
        queue.add(item);
    }
    queue
}

fn take(queue: &Queue<&'static str>) -> Processing<&'static str> {
    queue.try_get().expect("something is queued")
}

/// Waits for an item and finishes it.
async fn next(queue: &Queue<&'static str>) -> &'static str {
    let item = queue.get().await.expect("the queue is not shut down");
    let name = *item;
    item.done();
    name
}

fn undone<T>(held: Vec<T>, queued: Vec<T>, delayed: Vec<T>) -> Undone<T> {
    Undone { held, queued, delayed }
}

// === one key, one worker; no request is lost ===

#[test]
fn item_added_while_held_waits_for_its_worker() {
    let queue = queue_of(["a"]);
    let first = take(&queue);
    queue.add("a");
    let mut second = task::spawn(queue.get());
    assert_pending!(second.poll(), "one key, one worker");
    assert!(!second.is_woken());

    first.done();
    assert!(second.is_woken());
    assert_eq!(*assert_ready!(second.poll()).expect("added while it was held"), "a");
}

#[test]
fn many_adds_are_one_hand_out() {
    let queue = queue_of(["a", "b", "a", "a"]);
    assert_eq!(queue.len(), 2);
    take(&queue).done();
    take(&queue).done();
    assert!(queue.try_get().is_none());
    assert!(queue.is_empty());
}

#[test]
fn item_done_is_not_handed_out_again() {
    let queue = queue_of(["a"]);
    let mut other = task::spawn(queue.get());
    let item = take(&queue);
    assert_pending!(other.poll());
    item.done();
    assert!(!other.is_woken());
    assert_pending!(other.poll());
}

/// A worker that is as fast as can be: it takes an item while it is being woken.
struct TakesAtOnce {
    queue: Queue<&'static str>,
    taken: Mutex<Option<Processing<&'static str>>>,
}

impl Wake for TakesAtOnce {
    fn wake(self: Arc<Self>) {
        *self.taken.lock() = self.queue.try_get();
    }
}

#[test]
fn item_taken_while_another_workers_done_still_runs_is_that_of_the_new_worker() {
    let queue = queue_of(["a"]);
    let held = take(&queue);
    queue.add("a");
    let fast = Arc::new(TakesAtOnce { queue: queue.clone(), taken: Mutex::new(None) });
    let waker = Waker::from(Arc::clone(&fast));
    let mut get = pin!(queue.get());
    assert_pending!(get.as_mut().poll(&mut Context::from_waker(&waker)));
    held.done();
    assert!(fast.taken.lock().is_some());
    queue.add("a");
    assert!(queue.try_get().is_none(), "one key, one worker");
}

#[test]
fn dropped_processing_is_queued_again() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    let mut other = task::spawn(queue.get());
    assert_pending!(other.poll());
    drop(item);
    assert!(other.is_woken());
    assert_eq!(*assert_ready!(other.poll()).expect("nobody finished it"), "a");
}

#[test]
fn item_added_while_held_and_then_dropped_is_queued_once() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    queue.add("a");
    drop(item);
    take(&queue).done();
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn panicking_worker_gives_its_item_back() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    let mut workers = tokio::task::JoinSet::new();
    workers.spawn(async move {
        let _item = item;
        panic!("a bug in a reconciler");
    });
    let worker = workers.join_next().await.expect("one was spawned");
    assert!(worker.expect_err("it panicked").is_panic());
    assert_eq!(*take(&queue), "a");
}

#[test]
fn processing_outlives_the_runtime_it_was_made_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime can be built");
    let queue = queue_of(["a"]);
    let item = runtime.block_on(async {
        queue.add_after("b", MINUTE);
        queue.get().await.expect("not shut down")
    });
    drop(runtime);
    drop(item);
    assert_eq!(queue.len(), 1);
}

// === get: who is woken, and what a cancelled one leaves behind ===

#[test]
fn each_item_wakes_one_worker_the_one_that_waited_longest() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("a");
    assert_eq!((first.is_woken(), second.is_woken()), (true, false));
    queue.add("b");
    assert!(second.is_woken());
    let second = assert_ready!(second.poll()).expect("not shut down");
    let first = assert_ready!(first.poll()).expect("not shut down");
    assert_eq!(HashSet::from([*first, *second]), HashSet::from(["a", "b"]));
}

#[test]
fn cancelled_get_passes_its_wake_up_on() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("a");
    assert_eq!((first.is_woken(), second.is_woken()), (true, false));
    drop(first);
    assert!(second.is_woken(), "the item is still there, and nobody else was told");
    assert_eq!(*assert_ready!(second.poll()).expect("not shut down"), "a");
}

#[test]
fn get_cancelled_before_it_was_woken_takes_nobodys_place() {
    let queue = queue_of([]);
    let mut gone = task::spawn(queue.get());
    let mut stays = task::spawn(queue.get());
    assert_pending!(gone.poll());
    assert_pending!(stays.poll());
    drop(gone);
    assert!(!stays.is_woken(), "there is nothing to pass on");
    queue.add("a");
    assert!(stays.is_woken());
}

#[test]
fn worker_that_finds_its_item_taken_waits_again() {
    let queue = queue_of([]);
    let mut late = task::spawn(queue.get());
    assert_pending!(late.poll());
    queue.add("a");
    let item = take(&queue); // faster than the one that was woken
    assert!(late.is_woken());
    assert_pending!(late.poll());
    item.done();
    queue.add("b");
    assert!(late.is_woken());
    assert_eq!(*assert_ready!(late.poll()).expect("not shut down"), "b");
}

#[test]
fn worker_polled_without_being_woken_leaves_the_line() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("a"); // wakes the first
    let taken = assert_ready!(second.poll()).expect("not shut down");
    assert_pending!(first.poll());
    drop(second);
    queue.add("b");
    assert!(first.is_woken(), "not the one that has left");
    assert_eq!(*taken, "a");
}

#[test]
fn worker_polled_twice_waits_in_one_place() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    for _ in 0..3 {
        assert_pending!(first.poll());
    }
    assert_pending!(second.poll());
    queue.add("a");
    queue.add("b");
    assert!(first.is_woken() && second.is_woken());
}

// === shut-down and drain ===

#[test]
fn shut_down_hands_out_what_is_queued_then_none() {
    let queue = queue_of(["a"]);
    queue.shut_down();
    queue.add("b");
    assert!(queue.is_shutting_down());
    let mut get = task::spawn(queue.get());
    let item = assert_ready!(get.poll()).expect("it was queued before");
    assert_eq!(*item, "a");
    item.done();
    assert!(assert_ready!(task::spawn(queue.get()).poll()).is_none());
}

#[test]
fn shut_down_wakes_all_waiters() {
    let queue = queue_of([]);
    let mut waiting = [task::spawn(queue.get()), task::spawn(queue.get())];
    for get in &mut waiting {
        assert_pending!(get.poll());
    }
    queue.shut_down();
    for get in &mut waiting {
        assert!(get.is_woken());
        assert!(assert_ready!(get.poll()).is_none());
    }
}

#[test]
fn item_held_at_shut_down_is_queued_again_if_it_is_dropped_or_was_added() {
    let queue = queue_of(["a", "b", "c"]);
    let (dropped, added, done) = (take(&queue), take(&queue), take(&queue));
    queue.add("b");
    queue.shut_down();
    drop(dropped);
    added.done();
    done.done();
    let (first, second) = (take(&queue), take(&queue));
    assert_eq!((*first, *second), ("a", "b"));
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_of_an_idle_queue_returns_at_once() {
    let queue = queue_of([]);
    let start = Instant::now();
    assert!(queue.drain(MINUTE).await.is_empty());
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(queue.is_shutting_down());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_queued_and_held() {
    let queue = queue_of(["held", "queued"]);
    let held = take(&queue);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());

    held.done();
    assert!(!drain.is_woken(), "one is still queued");
    assert_pending!(drain.poll());

    let queued = take(&queue);
    assert_pending!(drain.poll(), "one is still held");
    queued.done();
    assert!(drain.is_woken());
    assert!(assert_ready!(drain.poll()).is_empty());
}

/// client-go's waits for what is held alone: here nothing is, so it would return at once.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_what_is_only_queued() {
    let queue = queue_of(["a"]);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    let item = take(&queue);
    assert_pending!(drain.poll());
    item.done();
    assert!(assert_ready!(drain.poll()).is_empty());
}

/// client-go's believes any wake-up: one that was meant for somebody else ends it.
#[tokio::test(start_paused = true)]
async fn drain_that_is_polled_for_no_reason_waits_on() {
    let queue = queue_of(["a", "b"]);
    let (first, second) = (take(&queue), take(&queue));
    queue.add("a");
    let mut drain = task::spawn(queue.drain(MINUTE));
    for _ in 0..3 {
        assert_pending!(drain.poll());
    }
    first.done(); // queued again
    second.done(); // nothing is held now
    assert!(!drain.is_woken());
    assert_pending!(drain.poll());
    assert_eq!(queue.len(), 1);
    take(&queue).done();
    assert!(assert_ready!(drain.poll()).is_empty());
}

/// client-go signals one of its waiters, of whichever kind.
#[tokio::test(start_paused = true)]
async fn drain_does_not_take_the_wake_up_of_a_worker() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    queue.add("a");
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    // Queued again, and the drain must not be what hears of it: no worker would come.
    item.done();
    assert!(!drain.is_woken());
    assert_pending!(drain.poll());
    take(&queue).done();
    assert!(drain.is_woken());
    assert!(assert_ready!(drain.poll()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_an_item_that_is_dropped_and_queued_again() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    drop(item);
    assert_pending!(drain.poll());
    take(&queue).done();
    assert!(assert_ready!(drain.poll()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_hands_back_at_its_deadline_what_is_left() {
    let queue = queue_of(["held", "queued"]);
    queue.add_after("later", MINUTE * 9);
    queue.add_after("soon", MINUTE * 2);
    let held = take(&queue);
    let start = Instant::now();
    let left = queue.drain(MINUTE).await;
    assert_eq!(start.elapsed(), MINUTE);
    assert_eq!(left.len(), 4);
    assert_eq!(left, undone(vec!["held"], vec!["queued"], vec!["soon", "later"]));

    // It was handed back: it is not queued once more.
    drop(held);
    assert!(queue.is_empty());
    assert!(queue.get().await.is_none());
    assert!(queue.drain(MINUTE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_hands_back_what_is_delayed_without_waiting_for_it() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE / 2);
    let start = Instant::now();
    assert_eq!(queue.drain(MINUTE).await, undone(vec![], vec![], vec!["a"]));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn delay_does_not_end_after_shut_down() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.shut_down();
    sleep(MINUTE * 2).await;
    assert!(queue.get().await.is_none());
    assert_eq!(queue.drain(MINUTE).await.delayed, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn drain_with_no_end_and_with_no_time_are_fine() {
    let queue = queue_of(["a"]);
    let mut endless = task::spawn(queue.drain(Duration::MAX));
    assert_pending!(endless.poll());
    assert_eq!(queue.drain(Duration::ZERO).await.queued, ["a"]);
    drop(endless);
}

#[tokio::test(start_paused = true)]
async fn two_drains_hand_each_item_back_once() {
    let queue = queue_of(["held", "queued"]);
    let held = take(&queue);
    let (first, second) = tokio::join!(queue.drain(MINUTE), queue.drain(MINUTE * 2));
    assert_eq!(first, undone(vec!["held"], vec!["queued"], vec![]));
    assert!(second.is_empty());
    held.done();
}

#[tokio::test(start_paused = true)]
async fn two_drains_both_hear_of_the_last_item() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    let mut first = task::spawn(queue.drain(MINUTE));
    let mut second = task::spawn(queue.drain(MINUTE));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    item.done();
    assert!(first.is_woken() && second.is_woken());
    assert!(assert_ready!(first.poll()).is_empty());
    assert!(assert_ready!(second.poll()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_that_hands_back_what_is_queued_ends_the_one_that_waits_for_it() {
    let (queue, start) = (queue_of(["a"]), Instant::now());
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(9));
    let (first, second) = tokio::join!(queue.drain(short), queue.drain(long));
    assert_eq!(first, undone(vec![], vec!["a"], vec![]));
    assert!(second.is_empty());
    assert_eq!(start.elapsed(), short);
}

#[tokio::test(start_paused = true)]
async fn cancelled_drain_hands_nothing_back() {
    let queue = queue_of(["a"]);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    drop(drain);
    assert!(queue.is_shutting_down());
    assert_eq!(queue.drain(Duration::ZERO).await.queued, ["a"]);
}

// === delays ===

#[tokio::test(start_paused = true)]
async fn delayed_item_comes_when_it_is_due() {
    let queue = queue_of([]);
    let start = Instant::now();
    queue.add_after("b", MINUTE * 2);
    queue.add_after("a", MINUTE);
    for (item, due) in [("a", MINUTE), ("b", MINUTE * 2)] {
        assert_eq!((next(&queue).await, start.elapsed()), (item, due));
    }
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_delays_counts() {
    let queue = queue_of([]);
    let start = Instant::now();
    for minutes in [5, 2, 7] {
        queue.add_after("a", MINUTE * minutes);
        tokio::task::yield_now().await;
    }
    next(&queue).await;
    assert_eq!(start.elapsed(), MINUTE * 2);
    sleep(MINUTE * 60).await;
    assert!(queue.try_get().is_none(), "the later delays are gone");
}

#[tokio::test(start_paused = true)]
async fn delayed_item_overtaken_by_an_add_comes_once() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.add("a");
    take(&queue).done();
    sleep(MINUTE * 2).await;
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn delay_of_an_item_that_is_queued_or_held_stands() {
    let queue = queue_of(["a"]);
    queue.add_after("a", MINUTE);
    let item = take(&queue);
    sleep(MINUTE * 2).await;
    assert!(queue.try_get().is_none(), "due, but held");
    item.done();
    assert_eq!(*take(&queue), "a");
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_an_add() {
    let queue = queue_of([]);
    queue.add_after("a", Duration::ZERO);
    assert_eq!(*take(&queue), "a");
}

#[tokio::test(start_paused = true)]
async fn endless_delays_are_fine() {
    let queue = queue_of([]);
    queue.add_after("for ever", Duration::MAX);
    queue.add_after("68 years", Duration::from_secs(68 * 365 * 24 * 60 * 60));
    // Where the timer wheel of tokio ends, and tokio_util's `DelayQueue` panics.
    queue.add_after("2 years", Duration::from_millis(1 << 36));
    queue.add_after("a", MINUTE);
    assert_eq!(next(&queue).await, "a");
    let start = Instant::now();
    assert_eq!(next(&queue).await, "2 years");
    assert!(start.elapsed() >= Duration::from_secs(2 * 365 * 24 * 60 * 60));
    assert_eq!(queue.drain(Duration::ZERO).await.delayed, ["68 years", "for ever"]);
}

#[tokio::test(start_paused = true)]
async fn many_items_due_at_once_all_come() {
    let queue = Queue::new();
    for item in 0..1000 {
        queue.add_after(item, MINUTE);
    }
    sleep(MINUTE + Duration::from_millis(1)).await;
    let mut items = Vec::new();
    while items.len() < 1000 {
        let item = queue.get().await.expect("not shut down");
        items.push(*item);
        item.done();
    }
    assert_eq!(items, (0..1000).collect::<Vec<_>>());
}

#[test]
fn new_needs_no_runtime_and_the_first_delay_says_that_it_does() {
    let queue = queue_of(["a"]);
    let delayed = queue.clone();
    let panic = std::thread::spawn(move || delayed.add_after("b", MINUTE)).join();
    let panic = panic.expect_err("there is no runtime");
    let message = panic.downcast_ref::<&str>().expect("a message");
    assert!(message.contains("tokio runtime"), "{message}");
    // It costs nothing else.
    assert_eq!(*take(&queue), "a");
}

#[test]
fn timer_starts_again_when_its_runtime_has_ended() {
    let queue = queue_of([]);
    for item in ["a", "b"] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be built");
        runtime.block_on(async {
            queue.add_after(item, Duration::from_millis(10));
            assert_eq!(next(&queue).await, item);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn timer_starts_with_the_first_delay_and_ends_with_the_last_handle() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let queue = queue_of([]);
    queue.add("b");
    assert_eq!(tasks(), 0);
    queue.add_after("a", MINUTE);
    queue.add_after("a", MINUTE);
    assert_eq!(tasks(), 1);
    tokio::task::yield_now().await;

    let (clone, item) = (queue.clone(), take(&queue));
    drop(queue);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), 1);
    drop(clone);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), 1, "who processes has a handle, too");
    drop(item);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn timer_ends_when_the_queue_is_shut_down() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    tokio::task::yield_now().await;
    queue.shut_down();
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelled_delay_never_ends() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.add_after("b", MINUTE * 2);
    assert!(queue.cancel(&"a"));
    assert!(!queue.cancel(&"a"), "once");
    let start = Instant::now();
    assert_eq!((next(&queue).await, start.elapsed()), ("b", MINUTE * 2));
    assert!(queue.drain(MINUTE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancel_leaves_what_is_queued_or_held() {
    let queue = queue_of(["a"]);
    assert!(!queue.cancel(&"a"));
    queue.add_after("a", MINUTE);
    assert!(queue.cancel(&"a"), "a delay of a queued item is one of its own");
    let item = take(&queue);
    queue.add_after("a", MINUTE);
    assert!(queue.cancel(&"a"));
    item.done();
    sleep(MINUTE * 2).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelled_retry_stays_counted() {
    let queue = queue_of([]);
    queue.add_rate_limited("a");
    assert!(queue.cancel(&"a"));
    assert_eq!(queue.failures(&"a"), 1);
}

// === batches ===

#[test]
fn batch_is_queued_in_order_and_each_item_once() {
    let queue = Queue::new();
    queue.add(2);
    let held = queue.try_get().expect("just added");
    queue.add_batch((0..1000).chain(0..10));
    assert_eq!(queue.len(), 999);
    held.done();
    let mut items = Vec::new();
    while let Some(item) = queue.try_get() {
        items.push(*item);
        item.done();
    }
    assert_eq!(items, (0..2).chain(3..1000).chain([2]).collect::<Vec<_>>());
}

#[test]
fn batch_wakes_a_worker_for_each_item_and_no_more() {
    let queue = queue_of(["known"]);
    let known = take(&queue);
    let mut workers: Vec<_> = (0..4).map(|_| task::spawn(queue.get())).collect();
    for worker in &mut workers {
        assert_pending!(worker.poll());
    }
    queue.add_batch(["a", "b", "a", "known", "b"]);
    let woken: Vec<bool> = workers.iter().map(task::Spawn::is_woken).collect();
    assert_eq!(woken, [true, true, false, false]);
    drop(known);
    assert!(workers[2].is_woken());
}

#[tokio::test(start_paused = true)]
async fn batch_ends_delays_as_an_add_does() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.add_batch(["a"]);
    take(&queue).done();
    sleep(MINUTE * 2).await;
    assert!(queue.try_get().is_none());
}

#[test]
fn batch_iterator_may_use_the_queue() {
    let queue = Queue::new();
    let own = queue.clone();
    queue.add_batch((0..300).inspect(|&item| own.add(item + 1000)));
    assert_eq!(queue.len(), 600);
    queue.shut_down();
    own.add_batch(0..3000);
    assert_eq!(queue.len(), 600);
}

// === the rate limiter ===

#[tokio::test(start_paused = true)]
async fn failing_item_backs_off_and_starts_anew_when_it_is_forgotten() {
    let queue = queue_of([]);
    let mut waited = Vec::new();
    for round in 0..6 {
        if round == 4 {
            queue.forget(&"a");
            assert_eq!(queue.failures(&"a"), 0);
        }
        let start = Instant::now();
        queue.add_rate_limited("a");
        next(&queue).await;
        waited.push(start.elapsed().as_millis());
    }
    assert_eq!(waited, [5, 10, 20, 40, 5, 10]);
    assert_eq!(queue.failures(&"a"), 2);
}

#[tokio::test(start_paused = true)]
async fn items_that_fail_together_come_back_one_by_one() {
    let queue = Queue::builder().rate_limiter(BucketRateLimiter::new(10.0, 2)).build();
    let start = Instant::now();
    // The paused clock stands still: a limiter that only admits or refuses would refuse four alike.
    for item in ["a", "b", "c", "d", "e", "f"] {
        queue.add_rate_limited(item);
    }
    let mut came = Vec::new();
    for _ in 0..6 {
        came.push((next(&queue).await, start.elapsed().as_millis()));
    }
    assert_eq!(came, [("a", 0), ("b", 0), ("c", 100), ("d", 200), ("e", 300), ("f", 400)]);
}

#[tokio::test(start_paused = true)]
async fn rate_limited_add_after_shut_down_is_not_counted() {
    let queue = queue_of([]);
    queue.shut_down();
    queue.add_rate_limited("a");
    assert_eq!(queue.failures(&"a"), 0);
    assert!(queue.drain(MINUTE).await.is_empty());
}

/// Adds to the very queue that asks it.
struct Meddler(Arc<std::sync::OnceLock<Queue<u8>>>);

impl RateLimiter<u8> for Meddler {
    fn when(&mut self, _item: &u8, _now: Instant) -> Duration {
        self.0.get().expect("set before use").add(7);
        Duration::ZERO
    }

    fn forget(&mut self, _item: &u8) {}

    fn failures(&self, _item: &u8) -> u32 {
        0
    }
}

#[test]
fn limiter_is_not_asked_under_the_queues_lock() {
    let own = Arc::new(std::sync::OnceLock::new());
    let queue = Queue::builder().name("meddling").rate_limiter(Meddler(Arc::clone(&own))).build();
    own.set(queue.clone()).expect("set once");
    queue.add_rate_limited(1);
    assert_eq!((queue.len(), queue.name()), (2, "meddling"));
}

/// Looks at the queue when it is dropped.
#[derive(Clone)]
struct Nosy(u8);

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

thread_local! {
    static NOSY: Queue<Nosy> = Queue::new();
}

impl Drop for Nosy {
    fn drop(&mut self) {
        // Would never return if the lock were held. While the thread ends, there is no queue.
        NOSY.try_with(Queue::is_shutting_down).unwrap_or_default();
    }
}

#[tokio::test(start_paused = true)]
async fn items_are_not_dropped_under_the_lock() {
    let queue = NOSY.with(Queue::clone);
    queue.add(Nosy(1));
    queue.add(Nosy(1)); // merged
    queue.add_after(Nosy(2), MINUTE);
    queue.add_after(Nosy(2), MINUTE * 2); // merged
    queue.add_after(Nosy(2), MINUTE / 2); // moved
    queue.add(Nosy(2)); // overtaken
    queue.try_get().expect("queued").done();
    queue.add_after(Nosy(3), MINUTE);
    sleep(MINUTE * 2).await;
    queue.add_after(Nosy(4), MINUTE);
    queue.add_after(Nosy(6), MINUTE);
    queue.add_batch([Nosy(6), Nosy(6)]); // overtaken, merged
    queue.try_get().expect("queued").done();
    queue.try_get().expect("queued").done();
    queue.add_after(Nosy(6), MINUTE);
    queue.cancel(&Nosy(6));
    queue.shut_down();
    queue.add(Nosy(5)); // refused
    queue.add_batch([Nosy(5)]); // refused
    queue.add_after(Nosy(5), MINUTE); // refused
    assert_eq!(queue.drain(Duration::ZERO).await.into_iter().count(), 2);
}
