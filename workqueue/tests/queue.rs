//! One hand-written schedule for each promise of the queue: a fixed order of calls and polls, and
//! the result that must follow.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use homeostat_workqueue::{BucketRateLimiter, Processing, Queue, RateLimiter, Unfinished};
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

fn unfinished<T>(held: Vec<T>, queued: Vec<T>, delayed: Vec<T>) -> Unfinished<T> {
    Unfinished { held, queued, delayed }
}

// === each key has at most one worker; no request is lost ===

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
    assert_eq!(*assert_ready!(second.poll()).expect("the item was added while it was held"), "a");
}

#[test]
fn repeated_adds_are_handed_out_once() {
    let queue = queue_of(["a", "b", "a", "a"]);
    assert_eq!(queue.len(), 2);
    take(&queue).done();
    take(&queue).done();
    assert!(queue.try_get().is_none());
    assert!(queue.is_empty());
}

#[test]
fn finished_item_is_not_handed_out_again() {
    let queue = queue_of(["a"]);
    let mut other = task::spawn(queue.get());
    let item = take(&queue);
    assert_pending!(other.poll());
    item.done();
    assert!(!other.is_woken());
    assert_pending!(other.poll());
}

/// A waker that takes an item inside `wake`, as the fastest possible worker would.
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
fn item_taken_during_done_of_another_worker_stays_with_its_taker() {
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
    assert_eq!(*assert_ready!(other.poll()).expect("the item was not finished"), "a");
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

// === get: wake-up order and cancellation ===

#[test]
fn item_wakes_the_longest_waiting_worker() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("a");
    assert_eq!((first.is_woken(), second.is_woken()), (true, false));
    queue.add("b");
    assert!(!second.is_woken(), "the woken worker wakes it");
    let first = assert_ready!(first.poll()).expect("not shut down");
    assert!(second.is_woken());
    let second = assert_ready!(second.poll()).expect("not shut down");
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
    assert!(second.is_woken(), "the item is still queued and no other worker was woken");
    assert_eq!(*assert_ready!(second.poll()).expect("not shut down"), "a");
}

#[test]
fn get_cancelled_before_wake_up_leaves_the_wait_list() {
    let queue = queue_of([]);
    let mut gone = task::spawn(queue.get());
    let mut stays = task::spawn(queue.get());
    assert_pending!(gone.poll());
    assert_pending!(stays.poll());
    drop(gone);
    assert!(!stays.is_woken(), "there is no wake-up to pass on");
    queue.add("a");
    assert!(stays.is_woken());
}

#[test]
fn worker_that_finds_its_item_taken_waits_again() {
    let queue = queue_of([]);
    let mut late = task::spawn(queue.get());
    assert_pending!(late.poll());
    queue.add("a");
    let item = take(&queue); // before the woken worker polls
    assert!(late.is_woken());
    assert_pending!(late.poll());
    item.done();
    queue.add("b");
    assert!(late.is_woken());
    assert_eq!(*assert_ready!(late.poll()).expect("not shut down"), "b");
}

#[test]
fn worker_that_takes_an_item_without_wake_up_leaves_the_wait_list() {
    let queue = queue_of([]);
    let mut first = task::spawn(queue.get());
    let mut second = task::spawn(queue.get());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    queue.add("a"); // wakes the first worker
    let taken = assert_ready!(second.poll()).expect("not shut down");
    assert_pending!(first.poll());
    drop(second);
    queue.add("b");
    assert!(first.is_woken(), "the wake-up goes to the worker that still waits");
    assert_eq!(*taken, "a");
}

#[test]
fn worker_polled_twice_has_one_place_in_the_wait_list() {
    let queue = queue_of([]);
    let mut get = Box::pin(queue.get());
    assert_pending!(get.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    let mut first = task::spawn(get);
    let mut second = task::spawn(queue.get());
    for _ in 0..3 {
        assert_pending!(first.poll());
    }
    assert_pending!(second.poll());
    queue.add("a");
    assert!(first.is_woken(), "the place has the last waker");
    queue.add("b");
    let _first = assert_ready!(first.poll());
    assert!(second.is_woken());
}

// === shut-down and drain ===

#[test]
fn shut_down_hands_out_queued_items_then_none() {
    let queue = queue_of(["a"]);
    queue.shut_down();
    queue.add("b");
    assert!(queue.is_shutting_down());
    let mut get = task::spawn(queue.get());
    let item = assert_ready!(get.poll()).expect("the item was queued before the shut-down");
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
fn item_held_at_shut_down_is_requeued_if_dropped_or_added_again() {
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
async fn drain_waits_for_queued_and_held_items() {
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

/// client-go's `ShutDownWithDrain` waits only for held items: it would return at once here.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_queued_item_that_no_worker_holds() {
    let queue = queue_of(["a"]);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    let item = take(&queue);
    assert_pending!(drain.poll());
    item.done();
    assert!(assert_ready!(drain.poll()).is_empty());
}

/// client-go's `ShutDownWithDrain` ends after any wake-up, even one that was meant for a worker.
#[tokio::test(start_paused = true)]
async fn drain_polled_without_wake_up_keeps_waiting() {
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

/// client-go's `Signal` wakes one waiter, which may be a worker or a drain.
#[tokio::test(start_paused = true)]
async fn drain_does_not_take_the_wake_up_of_a_worker() {
    let queue = queue_of(["a"]);
    let item = take(&queue);
    queue.add("a");
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    // The item is queued again; if the drain took the wake-up, no worker would take the item.
    item.done();
    assert!(!drain.is_woken());
    assert_pending!(drain.poll());
    take(&queue).done();
    assert!(drain.is_woken());
    assert!(assert_ready!(drain.poll()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_dropped_item_that_is_queued_again() {
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
async fn drain_hands_back_remaining_items_at_its_deadline() {
    let queue = queue_of(["held", "queued"]);
    queue.add_after("later", MINUTE * 9);
    queue.add_after("soon", MINUTE * 2);
    let held = take(&queue);
    let start = Instant::now();
    let left = queue.drain(MINUTE).await;
    assert_eq!(start.elapsed(), MINUTE);
    assert_eq!(left.len(), 4);
    assert_eq!(left, unfinished(vec!["held"], vec!["queued"], vec!["soon", "later"]));

    // The held item was handed back, so dropping its guard does not queue it again.
    drop(held);
    assert!(queue.is_empty());
    assert!(queue.get().await.is_none());
    assert!(queue.drain(MINUTE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn drain_hands_back_delayed_items_at_once() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE / 2);
    let start = Instant::now();
    assert_eq!(queue.drain(MINUTE).await, unfinished(vec![], vec![], vec!["a"]));
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
async fn drain_accepts_zero_and_unlimited_timeouts() {
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
    assert_eq!(first, unfinished(vec!["held"], vec!["queued"], vec![]));
    assert!(second.is_empty());
    held.done();
}

#[tokio::test(start_paused = true)]
async fn last_finished_item_wakes_both_drains() {
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
async fn drain_that_hands_back_queued_items_ends_the_other_drain() {
    let (queue, start) = (queue_of(["a"]), Instant::now());
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(9));
    let (first, second) = tokio::join!(queue.drain(short), queue.drain(long));
    assert_eq!(first, unfinished(vec![], vec!["a"], vec![]));
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
async fn delayed_item_is_handed_out_when_due() {
    let queue = queue_of([]);
    let start = Instant::now();
    queue.add_after("b", MINUTE * 2);
    queue.add_after("a", MINUTE);
    for (item, due) in [("a", MINUTE), ("b", MINUTE * 2)] {
        assert_eq!((next(&queue).await, start.elapsed()), (item, due));
    }
}

#[tokio::test(start_paused = true)]
async fn earliest_of_several_delays_applies() {
    let queue = queue_of([]);
    let start = Instant::now();
    for minutes in [5, 2, 7] {
        queue.add_after("a", MINUTE * minutes);
        tokio::task::yield_now().await;
    }
    next(&queue).await;
    assert_eq!(start.elapsed(), MINUTE * 2);
    sleep(MINUTE * 60).await;
    assert!(queue.try_get().is_none(), "the later delays are removed");
}

#[tokio::test(start_paused = true)]
async fn delayed_item_that_is_added_is_handed_out_once() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.add("a");
    take(&queue).done();
    sleep(MINUTE * 2).await;
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn delay_of_queued_or_held_item_stays_scheduled() {
    let queue = queue_of(["a"]);
    queue.add_after("a", MINUTE);
    let item = take(&queue);
    sleep(MINUTE * 2).await;
    assert!(queue.try_get().is_none(), "the item is due but held");
    item.done();
    assert_eq!(*take(&queue), "a");
}

#[tokio::test(start_paused = true)]
async fn item_is_due_when_its_earliest_delay_ends() {
    let queue = Queue::new();
    queue.add_after("delayed", MINUTE);
    queue.schedule("delayed", MINUTE / 2);
    queue.add("queued");
    queue.add_after("queued", MINUTE);
    sleep(MINUTE / 4).await;
    let due = |item| queue.time_until_due(&item);
    assert_eq!(due("delayed"), Some(MINUTE / 4));
    assert_eq!(due("queued"), Some(Duration::ZERO));
    assert_eq!(due("other"), None);
    let held = take(&queue);
    assert_eq!(due("queued"), Some(Duration::ZERO), "a worker holds it");
    held.done();
    assert_eq!(due("queued"), Some(3 * MINUTE / 4));
    assert!(queue.cancel(&"queued"));
    assert_eq!(due("queued"), None);
}

#[tokio::test(start_paused = true)]
async fn queued_item_and_item_added_while_held_are_requested() {
    let queue = queue_of(["a"]);
    queue.add_after("delayed", MINUTE);
    let requested = |item| queue.is_requested(&item);
    assert!(requested("a") && !requested("delayed") && !requested("other"));
    let held = take(&queue);
    assert!(!requested("a"), "its worker has the only request");
    queue.add_after("a", MINUTE);
    assert!(!requested("a"), "the delay is not over");
    sleep(MINUTE * 2).await;
    assert!(requested("a") && requested("delayed"));
    held.done();
    assert!(requested("a"), "it is queued again");
}

#[tokio::test(start_paused = true)]
async fn zero_delay_adds_at_once() {
    let queue = queue_of([]);
    queue.add_after("a", Duration::ZERO);
    assert_eq!(*take(&queue), "a");
}

#[tokio::test(start_paused = true)]
async fn very_long_delays_are_accepted() {
    let queue = queue_of([]);
    queue.add_after("forever", Duration::MAX);
    queue.add_after("68 years", Duration::from_secs(68 * 365 * 24 * 60 * 60));
    // The limit of tokio's timer wheel, at which tokio_util's `DelayQueue` panics.
    queue.add_after("2 years", Duration::from_millis(1 << 36));
    queue.add_after("a", MINUTE);
    assert_eq!(next(&queue).await, "a");
    let start = Instant::now();
    assert_eq!(next(&queue).await, "2 years");
    assert!(start.elapsed() >= Duration::from_secs(2 * 365 * 24 * 60 * 60));
    assert_eq!(queue.drain(Duration::ZERO).await.delayed, ["68 years", "forever"]);
}

#[tokio::test(start_paused = true)]
async fn thousand_items_due_at_once_are_all_handed_out() {
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
fn first_delay_panics_without_runtime_but_new_does_not() {
    let queue = queue_of(["a"]);
    let delayed = queue.clone();
    let panic = std::thread::spawn(move || delayed.add_after("b", MINUTE)).join();
    let panic = panic.expect_err("there is no runtime");
    let message = panic.downcast_ref::<&str>().expect("a message");
    assert!(message.contains("tokio runtime"), "{message}");
    // The queue still works after the panic.
    assert_eq!(*take(&queue), "a");
}

#[test]
fn timer_restarts_after_its_runtime_has_ended() {
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
    assert_eq!(tasks(), 1, "a `Processing` guard is a handle, too");
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
async fn cancelled_delay_never_queues_its_item() {
    let queue = queue_of([]);
    queue.add_after("a", MINUTE);
    queue.add_after("b", MINUTE * 2);
    assert!(queue.cancel(&"a"));
    assert!(!queue.cancel(&"a"), "the delay is already cancelled");
    let start = Instant::now();
    assert_eq!((next(&queue).await, start.elapsed()), ("b", MINUTE * 2));
    assert!(queue.drain(MINUTE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancel_leaves_queued_and_held_items() {
    let queue = queue_of(["a"]);
    assert!(!queue.cancel(&"a"));
    queue.add_after("a", MINUTE);
    assert!(queue.cancel(&"a"), "a queued item can also have a delay");
    let item = take(&queue);
    queue.add_after("a", MINUTE);
    assert!(queue.cancel(&"a"));
    item.done();
    sleep(MINUTE * 2).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelled_retry_still_counts_as_failure() {
    let queue = queue_of([]);
    queue.add_rate_limited("a");
    assert!(queue.cancel(&"a"));
    assert_eq!(queue.failures(&"a"), 1);
}

// === batches ===

#[test]
fn batch_queues_each_item_once_in_order() {
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

#[tokio::test(start_paused = true)]
async fn batch_ends_delays_like_add() {
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
async fn failing_item_backs_off_and_forget_resets_it() {
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
async fn items_that_fail_together_are_retried_at_the_bucket_rate() {
    let queue = Queue::builder().rate_limiter(BucketRateLimiter::new(10.0, 2)).build();
    let start = Instant::now();
    // The paused clock does not advance between the adds, so each add has to reserve its own slot.
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

/// A rate limiter that adds to the queue that calls it.
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
fn limiter_is_called_without_the_queue_lock() {
    let own = Arc::new(std::sync::OnceLock::new());
    let queue = Queue::builder().name("meddling").rate_limiter(Meddler(Arc::clone(&own))).build();
    own.set(queue.clone()).expect("set once");
    queue.add_rate_limited(1);
    assert_eq!((queue.len(), queue.name()), (2, "meddling"));
}

/// An item whose `Drop` calls the queue.
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
        // Would deadlock under the lock. When the thread ends, the thread-local is already gone.
        NOSY.try_with(Queue::is_shutting_down).unwrap_or_default();
    }
}

#[tokio::test(start_paused = true)]
async fn items_are_dropped_without_the_queue_lock() {
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
