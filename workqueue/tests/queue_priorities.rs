//! Hand-written schedules for priorities, ageing and fairness. They include one test for each known
//! bug of controller-runtime's priority queue, with the number of its issue.

use std::num::NonZeroU32;
use std::time::Duration;

use homeostat_workqueue::{LOW_PRIORITY, Priorities, Processing, Queue, QueueBuilder};
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};

const MINUTE: Duration = Duration::from_secs(60);

fn builder() -> QueueBuilder<&'static str> {
    Queue::builder()
}

/// Builds a queue without ageing, so that only priorities decide the order.
fn strict() -> Queue<&'static str> {
    builder().priorities(Priorities::default().strict()).build()
}

fn take<T>(queue: &Queue<T>) -> Processing<T>
where
    T: Eq + std::hash::Hash + Clone + Send + Sync + 'static,
{
    queue.try_get().expect("something is queued")
}

/// Takes and finishes all queued items and returns them in order.
fn take_all<T>(queue: &Queue<T>) -> Vec<T>
where
    T: Eq + std::hash::Hash + Clone + Send + Sync + 'static,
{
    let mut items = Vec::new();
    while let Some(item) = queue.try_get() {
        items.push(item.clone());
        item.done();
    }
    items
}

// === priorities ===

#[test]
fn higher_priorities_come_first_and_equal_ones_in_order() {
    let queue = strict();
    queue.add("a");
    queue.at_priority(LOW_PRIORITY).add_batch(["low", "low too"]);
    queue.at_priority(5).add("urgent");
    queue.add("b");
    assert_eq!(take_all(&queue), ["urgent", "a", "b", "low", "low too"]);
}

#[test]
fn priorities_are_ignored_by_default() {
    let queue = builder().build();
    queue.at_priority(LOW_PRIORITY).add("a");
    queue.at_priority(5).add("b");
    assert_eq!(take(&queue).priority(), 0);
    assert_eq!(take_all(&queue), ["b", "a"]);
}

#[test]
fn processing_returns_its_priority() {
    let queue = strict();
    queue.at_priority(7).add("a");
    let item = take(&queue);
    queue.at_priority(9).add("a");
    assert_eq!(item.priority(), 7);
    item.done();
    assert_eq!(take(&queue).priority(), 9);
}

#[test]
fn item_added_again_takes_the_higher_priority() {
    let queue = strict();
    queue.at_priority(3).add("a");
    queue.at_priority(1).add("a");
    queue.at_priority(2).add("b");
    assert_eq!(take_all(&queue), ["a", "b"]);
}

/// controller-runtime#3408
#[test]
fn item_whose_priority_rises_goes_to_the_end_of_its_new_priority() {
    let queue = strict();
    queue.at_priority(LOW_PRIORITY).add_batch(["raised", "low"]);
    queue.add_batch(["a", "b"]);
    queue.add("raised");
    queue.add("c");
    assert_eq!(take_all(&queue), ["a", "b", "raised", "c", "low"]);
}

#[test]
fn item_added_while_held_is_queued_at_the_highest_added_priority() {
    let queue = strict();
    queue.at_priority(9).add("a");
    queue.add_batch(["b", "c"]);
    let item = take(&queue);
    queue.at_priority(LOW_PRIORITY).add("a");
    queue.at_priority(-1).add("a");
    item.done();
    assert_eq!(
        take_all(&queue),
        ["b", "c", "a"],
        "the priority of the finished hand-out does not count"
    );
}

#[test]
fn item_dropped_without_done_keeps_its_priority() {
    let queue = strict();
    queue.at_priority(9).add("a");
    queue.add("b");
    let item = take(&queue);
    queue.at_priority(LOW_PRIORITY).add("a");
    drop(item);
    let item = take(&queue);
    assert_eq!((*item, item.priority()), ("a", 9));
}

/// controller-runtime#3330
#[tokio::test(start_paused = true)]
async fn delayed_item_that_falls_due_is_ordered_by_its_priority() {
    let queue = strict();
    queue.at_priority(LOW_PRIORITY).add_batch(["low", "low too"]);
    queue.at_priority(LOW_PRIORITY).add_after("early", MINUTE);
    queue.at_priority(1).add_after("late but urgent", MINUTE * 2);
    queue.at_priority(1).add_rate_limited("retry");
    sleep(MINUTE * 3).await;
    assert_eq!(take_all(&queue), ["retry", "late but urgent", "low", "low too", "early"]);
}

#[tokio::test(start_paused = true)]
async fn delayed_item_takes_the_highest_priority_and_the_earliest_time() {
    let queue = strict();
    let start = Instant::now();
    queue.at_priority(1).add_after("a", MINUTE);
    queue.at_priority(5).add_after("a", MINUTE * 2);
    queue.at_priority(3).add_after("a", MINUTE * 3);
    let item = queue.get().await.expect("not shut down");
    assert_eq!((start.elapsed(), item.priority()), (MINUTE, 5));
}

#[tokio::test(start_paused = true)]
async fn add_that_ends_a_delay_keeps_the_higher_priority() {
    let queue = strict();
    for (delayed, added) in [(5, 1), (1, 5)] {
        queue.at_priority(delayed).add_after("a", MINUTE);
        queue.at_priority(added).add("a");
        let item = take(&queue);
        assert_eq!(item.priority(), 5);
        item.done();
        queue.at_priority(delayed).add_after("a", MINUTE);
        queue.at_priority(added).add_batch(["a"]);
        assert_eq!(take(&queue).priority(), 5);
        take(&queue).done();
    }
}

#[tokio::test(start_paused = true)]
async fn delay_raises_the_priority_of_a_queued_item_when_it_ends() {
    let queue = strict();
    queue.add_batch(["b", "a"]);
    queue.at_priority(5).add_after("a", MINUTE);
    let first = take(&queue);
    assert_eq!(*first, "b", "the delay has not ended yet");
    drop(first);
    sleep(MINUTE * 2).await;
    assert_eq!(take_all(&queue), ["a", "b"]);
}

/// controller-runtime#3060: items that were not ready were counted, and the depth became negative.
#[tokio::test(start_paused = true)]
async fn only_ready_items_count_as_queued() {
    let queue = strict();
    queue.at_priority(5).add_after("a", MINUTE);
    queue.add_after("b", MINUTE);
    assert_eq!(queue.len(), 0);
    queue.add("a");
    queue.at_priority(9).add("a");
    assert_eq!(queue.len(), 1);
    let item = take(&queue);
    queue.at_priority(9).add("a");
    assert_eq!(queue.len(), 0, "the item is held");
    sleep(MINUTE * 2).await;
    assert_eq!(queue.len(), 1);
    item.done();
    assert_eq!(queue.len(), 2);
    assert_eq!(take_all(&queue), ["a", "b"]);
    assert_eq!(queue.len(), 0);
}

/// controller-runtime visits every held item that was added again on each hand-out.
#[test]
fn held_items_that_are_added_again_do_not_delay_others() {
    let queue = Queue::builder().priorities(Priorities::default()).build();
    queue.add_batch(0..1000);
    let held: Vec<_> = (0..1000).map(|_| take(&queue)).collect();
    queue.at_priority(5).add_batch(0..1000);
    assert!(queue.try_get().is_none(), "one key, one worker");
    queue.at_priority(LOW_PRIORITY).add(1000);
    assert_eq!(queue.len(), 1);
    let item = take(&queue);
    assert_eq!((*item, item.priority()), (1000, LOW_PRIORITY));
    drop(held);
    assert_eq!(queue.len(), 1000);
}

// === shut-down with priorities ===

/// controller-runtime#3538: the shut-down waited for consumers that had already returned.
#[test]
fn shut_down_does_not_wait_for_workers() {
    let queue = strict();
    let mut gone = task::spawn(queue.get());
    assert_pending!(gone.poll());
    queue.add("a");
    drop(gone);
    queue.shut_down();
    assert_eq!(take_all(&queue), ["a"]);
}

/// The second call panics in controller-runtime.
#[test]
fn second_shut_down_changes_nothing() {
    let queue = strict();
    queue.shut_down();
    queue.shut_down();
    assert!(queue.is_shutting_down());
}

/// controller-runtime drops queued items at shut-down; users of client-go rely on their hand-out
/// (submariner/admiral#1061).
#[test]
fn shut_down_hands_out_queued_items_by_priority() {
    let queue = strict();
    queue.add("a");
    queue.at_priority(5).add("b");
    queue.shut_down();
    queue.at_priority(9).add("refused");
    for expected in ["b", "a"] {
        let item = assert_ready!(task::spawn(queue.get()).poll())
            .expect("the item was queued before the shut-down");
        assert_eq!(*item, expected);
        item.done();
    }
    assert!(assert_ready!(task::spawn(queue.get()).poll()).is_none());
}

/// controller-runtime treats a drain as a plain shut-down.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_all_priorities_and_hands_back_in_order() {
    let queue = strict();
    queue.at_priority(LOW_PRIORITY).add("low");
    queue.add("a");
    queue.at_priority(1).add("held");
    let held = take(&queue);
    let mut drain = task::spawn(queue.drain(MINUTE));
    assert_pending!(drain.poll());
    held.done();
    assert_pending!(drain.poll(), "two items are queued");
    sleep(MINUTE * 2).await;
    let left = assert_ready!(drain.poll());
    assert_eq!(left.queued, ["a", "low"]);
}

// === ageing ===

/// controller-runtime#3496
#[test]
fn items_of_the_initial_list_do_not_starve_in_a_busy_controller() {
    const LISTED: usize = 50;
    let queue = Queue::builder().priorities(Priorities::default()).build();
    queue.at_priority(LOW_PRIORITY).add_batch(0..LISTED);
    let mut seen = 0;
    for hand_outs in 1..=10 * LISTED {
        // New changes by users are always queued.
        queue.add_batch([1000 + hand_outs, 2000 + hand_outs]);
        let item = take(&queue);
        if *item < LISTED {
            // Items come in their order, each within the bound that the documentation states.
            assert_eq!(*item, seen);
            assert!(hand_outs <= 10 * (*item + 1), "item {} came at hand-out {hand_outs}", *item);
            seen += 1;
        }
        item.done();
    }
    assert_eq!(seen, LISTED);
}

#[test]
fn strict_priorities_starve_low_priority_items() {
    let queue = strict();
    queue.at_priority(LOW_PRIORITY).add("low");
    for _ in 0..1000 {
        queue.add("busy");
        let item = take(&queue);
        assert_eq!(*item, "busy");
        item.done();
    }
    assert_eq!(take_all(&queue), ["low"]);
}

#[test]
fn oldest_every_sets_the_share_of_the_oldest_item() {
    let every = NonZeroU32::new(2).expect("not zero");
    let queue = builder().priorities(Priorities::default().oldest_every(every)).build();
    queue.at_priority(LOW_PRIORITY).add_batch(["low", "low too"]);
    queue.add_batch(["a", "b", "c"]);
    assert_eq!(take_all(&queue), ["a", "low", "b", "low too", "c"]);
}

// === fairness ===

type TenantKey = (&'static str, u32);

fn by_tenant() -> QueueBuilder<TenantKey> {
    Queue::builder().fair_by(|&(tenant, _): &TenantKey| tenant)
}

#[test]
fn busy_tenant_does_not_delay_a_quiet_tenant() {
    let queue = by_tenant().build();
    queue.add_batch((0..1000).map(|number| ("busy", number)));
    queue.add(("quiet", 0));
    let order = [(); 3].map(|()| *take(&queue));
    assert_eq!(order, [("busy", 0), ("quiet", 0), ("busy", 1)]);
}

#[test]
fn tenants_take_turns_within_a_priority() {
    let queue = by_tenant().priorities(Priorities::default().strict()).build();
    queue.add_batch([("a", 1), ("a", 2), ("b", 1)]);
    queue.at_priority(5).add_batch([("a", 3), ("a", 4), ("b", 2)]);
    let expected = [("a", 3), ("b", 2), ("a", 4), ("a", 1), ("b", 1), ("a", 2)];
    assert_eq!(take_all(&queue), expected);
}

#[test]
fn fairness_alone_ignores_priorities() {
    let queue = by_tenant().build();
    queue.add_batch([("a", 1), ("b", 1)]);
    queue.at_priority(5).add(("b", 2));
    assert_eq!(take_all(&queue), [("a", 1), ("b", 1), ("b", 2)]);
}

#[tokio::test(start_paused = true)]
async fn delayed_and_returned_items_take_the_turns_of_their_tenant() {
    let queue = by_tenant().build();
    queue.add_after(("b", 1), MINUTE);
    queue.add_batch([("a", 1), ("a", 2), ("a", 3)]);
    let (first, second) = (take(&queue), take(&queue));
    sleep(MINUTE * 2).await;
    drop(first);
    second.done();
    assert_eq!(take_all(&queue), [("a", 3), ("b", 1), ("a", 1)]);
}

#[test]
fn fair_by_function_is_called_without_the_queue_lock() {
    let own = std::sync::Arc::new(std::sync::OnceLock::<Queue<u8>>::new());
    let nosy = std::sync::Arc::clone(&own);
    let dimension = move |_: &u8| nosy.get().map(Queue::len);
    let queue = Queue::builder().fair_by(dimension).build();
    own.set(queue.clone()).expect("set once");
    queue.add(1);
    queue.add_batch([2, 3]);
    assert_eq!(queue.len(), 3);
}
