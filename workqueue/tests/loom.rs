//! Runs the source of the queue under every interleaving of its locks and wake-ups, up to a maximum
//! number of preemptions. A lost wake-up is a deadlock, which loom reports.
//!
//! ```sh
//! RUSTFLAGS="--cfg homeostat_loom" \
//!     cargo test -p homeostat-workqueue --test loom --target-dir target/loom
//! ```
//!
//! loom does not support tokio tasks: the timer task does not run, and the tests call its step
//! (`end_delays`) directly. The clock is paused, so the timeout of a drain is either zero or
//! `Duration::MAX`.
#![cfg(homeostat_loom)]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{Processing, Queue};
use loom::future::block_on;
use loom::thread::{self, JoinHandle};
use tokio::time::Instant;

/// Runs the model under every interleaving with at most `bound` preemptions (blocking is not a
/// preemption) and asserts that there are at least `least` executions.
///
/// `LOOM_MAX_PREEMPTIONS` overrides the bound; with a higher one `least` must still be reached.
#[expect(clippy::print_stdout, reason = "prints the number of explored executions")]
fn explore(name: &str, bound: usize, least: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let _entered = runtime.enter();
    let executions = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    let explored = *builder.preemption_bound.get_or_insert(bound);
    let counter = Arc::clone(&executions);
    builder.check(move || {
        counter.fetch_add(1, SeqCst);
        model();
    });
    let executions = executions.load(SeqCst);
    println!("loom: {name}: {executions} executions, at most {explored} preemptions");
    assert!(executions >= least || explored < bound, "{name}: only {executions} executions");
}

/// The object of a key: its number of changes, the number that workers have seen, and a flag that
/// is set while a worker holds the key.
#[derive(Default)]
struct Subject {
    changes: AtomicUsize,
    seen: AtomicUsize,
    held: loom::sync::atomic::AtomicBool,
}

// === impl Subject ===

impl Subject {
    fn change(&self, queue: &Queue<u8>) {
        self.changes.fetch_add(1, SeqCst);
        queue.add(1);
    }

    /// Reads the object, as a worker does that holds the key.
    fn work(&self) {
        assert!(!self.held.swap(true, SeqCst), "one key, one worker");
        self.seen.store(self.changes.load(SeqCst), SeqCst);
        self.held.store(false, SeqCst);
    }

    fn assert_seen(&self) {
        assert_eq!(self.seen.load(SeqCst), self.changes.load(SeqCst), "a change went unseen");
    }
}

fn queue_of<const N: usize>(items: [u8; N]) -> Queue<u8> {
    let queue = Queue::new();
    for item in items {
        queue.add(item);
    }
    queue
}

/// Runs `body` in a new thread.
fn go<T: 'static>(
    queue: &Queue<u8>,
    body: impl FnOnce(&Queue<u8>) -> T + 'static,
) -> JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || body(&queue))
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("the thread does not panic");
    }
}

fn get(queue: &Queue<u8>) -> Processing<u8> {
    block_on(queue.get()).expect("the queue is not shut down")
}

/// Polls `try_get` until it returns an item, without a place in the wait list.
fn take(queue: &Queue<u8>) -> Processing<u8> {
    loop {
        match queue.try_get() {
            Some(item) => return item,
            None => thread::yield_now(),
        }
    }
}

/// Handles items until the queue is shut down and empty.
fn work(queue: &Queue<u8>, mut handle: impl FnMut(&u8)) {
    while let Some(item) = block_on(queue.get()) {
        handle(&item);
        item.done();
    }
}

/// Polls a future at most `polls` times, each time after a wake-up, and drops it.
fn poll_then_drop<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut left = polls;
    let mut future = pin!(future);
    block_on(poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(output) => Poll::Ready(Some(output)),
        }
    }))
}

fn count(counter: &AtomicUsize, by: u8) {
    counter.fetch_add(by.into(), SeqCst);
}

fn drain(queue: &Queue<u8>) {
    let unfinished = block_on(queue.drain(Duration::MAX));
    assert!(unfinished.is_empty(), "{unfinished:?}");
}

#[test]
fn getter_receives_the_items_of_two_adders() {
    explore("two adders, one getter", 3, 2_000, || {
        let queue = Queue::new();
        let adders = [1, 2].map(|item| go(&queue, move |queue| queue.add(item)));
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3, "each item is handed out once");
        first.done();
        second.done();
        join(adders);
        assert!(queue.is_empty());
    });
}

#[test]
fn every_change_of_one_key_is_seen_by_one_worker_at_a_time() {
    explore("two adders of one key, two workers", 2, 50_000, || {
        let (queue, subject) = (Queue::new(), Arc::new(Subject::default()));
        let workers = [(), ()].map(|()| {
            let subject = Arc::clone(&subject);
            go(&queue, move |queue| work(queue, |_| subject.work()))
        });
        let changed = Arc::clone(&subject);
        let adder = go(&queue, move |queue| changed.change(queue));
        subject.change(&queue);
        join([adder]);
        queue.shut_down();
        join(workers);
        // A worker may return while the other worker still holds a key that was added again.
        work(&queue, |_| subject.work());
        subject.assert_seen();
    });
}

fn drop_the_first(item: Processing<u8>, dropped: &AtomicBool) {
    if dropped.swap(true, SeqCst) {
        item.done();
    }
}

#[test]
fn item_dropped_without_done_goes_to_another_worker() {
    explore("dropped without done", 3, 1_000, || {
        let (queue, dropped) = (Queue::new(), Arc::new(AtomicBool::new(false)));
        let workers = [(), ()].map(|()| {
            let dropped = Arc::clone(&dropped);
            go(&queue, move |queue| drop_the_first(get(queue), &dropped))
        });
        queue.add(1);
        join(workers);
        assert!(queue.try_get().is_none(), "the second hand-out was finished");
    });
}

/// Cancels one worker after `polls` polls and asserts that the other worker gets both items.
fn cancelled_get(polls: usize, least: usize) {
    explore(&format!("get polled {polls} times, then dropped"), 3, least, move || {
        let queue = Queue::new();
        let cancelled = go(&queue, move |queue| drop(poll_then_drop(queue.get(), polls)));
        // With only one item the cancelled worker could wait forever for its second poll.
        let adder = go(&queue, |queue| [1, 2].into_iter().for_each(|item| queue.add(item)));
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3);
        queue.shut_down();
        first.done();
        second.done();
        join([cancelled, adder]);
    });
}

#[test]
fn get_polled_once_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_get(1, 8_000);
}

#[test]
fn get_polled_twice_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_get(2, 30_000);
}

#[test]
fn cancelled_get_leaves_the_wait_list() {
    explore("cancel in the wait list", 3, 500, || {
        let queue = Queue::new();
        let waits = go(&queue, |queue| get(queue).done());
        let cancelled = go(&queue, |queue| drop(poll_then_drop(queue.get(), 1)));
        queue.add(1);
        join([cancelled, waits]);
        assert!(queue.is_empty());
    });
}

#[test]
fn shut_down_ends_every_worker_and_loses_nothing() {
    explore("shut_down and get", 3, 8_000, || {
        let (queue, handled) = (Queue::new(), Arc::new(AtomicUsize::new(0)));
        let workers = [(), ()].map(|()| {
            let handled = Arc::clone(&handled);
            go(&queue, move |queue| work(queue, |_| count(&handled, 1)))
        });
        queue.add(1);
        queue.shut_down();
        queue.add(2);
        join(workers);
        assert_eq!(handled.load(SeqCst), 1, "only the item that was added before the shut-down");
    });
}

#[test]
fn drain_waits_for_queued_and_held_items_then_ends() {
    explore("drain, done and get", 3, 200, || {
        let (queue, handled) = (queue_of([1, 2]), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&handled);
        let worker = go(&queue, move |queue| work(queue, |_| count(&counter, 1)));
        drain(&queue);
        assert_eq!(handled.load(SeqCst), 2, "the drain ended before all items were finished");
        join([worker]);
    });
}

#[test]
fn drain_waits_for_an_item_that_is_given_back() {
    explore("drain, dropped without done", 3, 2_000, || {
        let (queue, handled) = (queue_of([1]), Arc::new(AtomicUsize::new(0)));
        let (held, counter) = (get(&queue), Arc::clone(&handled));
        let drops = go(&queue, move |_| drop(held));
        let worker = go(&queue, move |queue| {
            let item = take(queue);
            counter.fetch_add(1, SeqCst);
            item.done();
        });
        drain(&queue);
        assert_eq!(handled.load(SeqCst), 1);
        join([drops, worker]);
    });
}

#[test]
fn last_finished_item_wakes_two_drains_and_a_waiting_worker() {
    explore("two drains", 2, 15_000, || {
        let queue = queue_of([1]);
        let held = get(&queue);
        let waits = go(&queue, |queue| work(queue, |_| ()));
        let drains = go(&queue, drain);
        let done = go(&queue, move |_| held.done());
        drain(&queue);
        join([waits, drains, done]);
    });
}

#[test]
fn cancelled_drain_takes_no_wake_up_and_hands_nothing_back() {
    explore("cancelled drain", 3, 2_000, || {
        let queue = queue_of([1]);
        let held = get(&queue);
        let cancelled = go(&queue, |queue| drop(poll_then_drop(queue.drain(Duration::MAX), 1)));
        let done = go(&queue, move |_| held.done());
        drain(&queue);
        join([cancelled, done]);
    });
}

#[test]
fn drain_that_hands_back_queued_items_ends_the_other_drain() {
    explore("two drains, one with a timeout of zero", 3, 10, || {
        let queue = queue_of([1]);
        let waits = go(&queue, |queue| assert!(block_on(queue.drain(Duration::MAX)).len() < 2));
        drop(block_on(queue.drain(Duration::ZERO)));
        join([waits]);
    });
}

#[test]
fn drain_at_its_deadline_hands_back_unfinished_items() {
    explore("drain with a timeout of zero", 3, 1_000, || {
        let (queue, handled) = (queue_of([1, 2]), Arc::new(AtomicUsize::new(0)));
        let (held, counter) = (get(&queue), Arc::clone(&handled));
        let worker = go(&queue, move |queue| work(queue, |item| count(&counter, *item)));
        let drops = go(&queue, move |_| drop(held));
        let unfinished = block_on(queue.drain(Duration::ZERO));
        join([drops, worker]);
        // The worker may return before the first item is given back.
        work(&queue, |item| count(&handled, *item));
        let handled = handled.load(SeqCst);
        assert!(handled <= 3, "an item was handed out twice");
        let is_handled = |item: &u8| handled & usize::from(*item) != 0;
        assert!(
            !unfinished.queued.iter().any(is_handled),
            "an item was finished and also handed back as queued"
        );
        // An item that was handed back as held and then finished by its worker is in both sets.
        let handed_back = unfinished.into_iter().fold(0, |all, item| all | usize::from(item));
        assert_eq!(handed_back | handled, 3, "an item was lost");
    });
}

#[test]
fn delay_that_ends_or_is_overtaken_wakes_a_worker() {
    explore("delay, add and get", 3, 1_500, || {
        let queue = Queue::new();
        queue.add_after(1, Duration::from_secs(1));
        queue.add_after(2, Duration::from_secs(1));
        let soon = Instant::now() + Duration::from_secs(1);
        let timer = go(&queue, move |queue| queue.end_delays(soon));
        let adder = go(&queue, |queue| queue.add(1));
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3);
        first.done();
        second.done();
        join([timer, adder]);
        let again = queue.try_get().map(|item| *item);
        assert!(again.is_none_or(|item| item == 1), "only the added item can be handed out twice");
        queue.end_delays(soon + Duration::from_secs(9));
        assert!(queue.is_empty() || again.is_some(), "the delay was not removed");
    });
}

#[test]
fn batch_wakes_one_worker_for_each_item() {
    explore("batch and two waiting workers", 3, 1_500, || {
        let queue = Queue::new();
        let workers = [(), ()].map(|()| go(&queue, |queue| get(queue).done()));
        queue.add_batch([1, 2]);
        join(workers);
        assert!(queue.is_empty());
    });
}

#[test]
fn batch_whose_worker_is_cancelled_wakes_the_other_worker() {
    explore("batch, one of two workers cancelled", 3, 600, || {
        let queue = Queue::new();
        let cancelled = go(&queue, |queue| drop(poll_then_drop(queue.get(), 1)));
        let works = go(&queue, |queue| {
            let (first, second) = (get(queue), get(queue));
            assert_eq!(*first + *second, 3);
        });
        queue.add_batch([1, 2]);
        join([cancelled, works]);
    });
}

#[test]
fn delayed_item_is_either_cancelled_or_handed_out() {
    explore("cancel and the end of a delay", 3, 4, || {
        let queue = Queue::new();
        queue.add_after(1, Duration::from_secs(1));
        let soon = Instant::now() + Duration::from_secs(1);
        let timer = go(&queue, move |queue| queue.end_delays(soon));
        let cancelled = queue.cancel(&1);
        join([timer]);
        assert_ne!(cancelled, queue.try_get().is_some());
    });
}

/// Takes all queued items and adds their causes to `seen`.
fn see(queue: &Queue<u8, Vec<u8>>, seen: &AtomicUsize) {
    while let Some(item) = queue.try_get() {
        for cause in item.cause() {
            let bit = 1 << cause;
            assert_eq!(seen.fetch_or(bit, SeqCst) & bit, 0, "a cause was delivered twice");
        }
        item.done();
    }
}

#[test]
fn each_cause_reaches_one_worker() {
    explore("causes of one key, added, delayed and given back", 3, 90, || {
        let merge = |earlier: &mut Vec<u8>, later: Vec<u8>| earlier.extend(later);
        let queue = Queue::builder().causes(merge).build();
        let seen = Arc::new(AtomicUsize::new(0));
        queue.because(vec![0]).add(1);
        let held = queue.try_get().expect("just added");
        queue.because(vec![1]).add_after(1, Duration::from_secs(1));
        let soon = Instant::now() + Duration::from_secs(1);
        let timer = queue.clone();
        let timer = thread::spawn(move || timer.end_delays(soon));
        let adder = queue.clone();
        let adder = thread::spawn(move || adder.because(vec![2]).add(1));
        drop(held); // given back
        see(&queue, &seen);
        join([timer, adder]);
        see(&queue, &seen);
        assert_eq!(seen.load(SeqCst), 0b111, "a cause was lost");
    });
}

/// Handles items that are lent, up to `most` at a time, until the queue is shut down and empty.
fn work_lent(queue: &Queue<u8>, most: usize, mut handle: impl FnMut(&u8)) {
    let mut worker = queue.worker();
    while let Some(batch) = block_on(worker.next_batch(most)) {
        batch.items().for_each(&mut handle);
    }
}

#[test]
fn every_change_is_seen_by_one_of_two_workers_that_lend() {
    explore("two adders of one key, two workers that lend", 2, 10_000, || {
        let (queue, subject) = (Queue::new(), Arc::new(Subject::default()));
        let workers = [(), ()].map(|()| {
            let subject = Arc::clone(&subject);
            go(&queue, move |queue| work_lent(queue, 1, |_| subject.work()))
        });
        let changed = Arc::clone(&subject);
        let adder = go(&queue, move |queue| changed.change(queue));
        subject.change(&queue);
        join([adder]);
        queue.shut_down();
        join(workers);
        // A worker may return while the other one still holds a key that was added again.
        work(&queue, |_| subject.work());
        subject.assert_seen();
    });
}

#[test]
fn items_of_one_wake_up_reach_two_waiting_workers() {
    explore("batch and two waiting workers that lend", 3, 500, || {
        let queue = Queue::new();
        let workers = [(), ()].map(|()| {
            go(&queue, |queue| {
                let mut worker = queue.worker();
                let item = block_on(worker.next()).expect("the queue is not shut down");
                item.done();
            })
        });
        queue.add_batch([1, 2]);
        join(workers);
        assert!(queue.is_empty());
    });
}

/// Cancels one worker that lends after `polls` polls.
fn cancelled_next(polls: usize, least: usize) {
    explore(&format!("next polled {polls} times, then dropped"), 3, least, move || {
        let queue = Queue::new();
        let cancelled = go(&queue, move |queue| {
            let mut worker = queue.worker();
            let _item = poll_then_drop(worker.next(), polls).map(|item| item.is_some());
        });
        let adder = go(&queue, |queue| [1, 2].into_iter().for_each(|item| queue.add(item)));
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3);
        queue.shut_down();
        first.done();
        second.done();
        join([cancelled, adder]);
    });
}

#[test]
fn next_polled_once_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_next(1, 2_000);
}

#[test]
fn next_polled_twice_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_next(2, 5_000);
}

#[test]
fn drain_ends_when_a_worker_asks_for_the_next_item() {
    explore("drain and a worker that lends", 3, 100, || {
        let (queue, handled) = (queue_of([1, 2, 3]), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&handled);
        let worker = go(&queue, move |queue| work_lent(queue, 2, |_| count(&counter, 1)));
        drain(&queue);
        assert_eq!(handled.load(SeqCst), 3, "the drain ended before all items were finished");
        join([worker]);
    });
}
