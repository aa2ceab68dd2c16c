//! The queue's own files under every interleaving of their locks and wake-ups, up to a bound of
//! preemptions. A wake-up that is lost is a deadlock, which loom reports.
//!
//! ```sh
//! RUSTFLAGS="--cfg homeostat_loom" cargo test -p homeostat-workqueue --test loom --target-dir target/loom
//! ```
//!
//! loom knows no tokio: the timer's task does not run, its step is called by hand; a drain's deadline is
//! either never or now, under a paused clock.
#![cfg(homeostat_loom)]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{Processing, Queue};
use loom::future::block_on;
use loom::thread::{self, JoinHandle};
use tokio::time::Instant;

/// Runs the model under every interleaving with at most `bound` preemptions, beyond those at which a
/// thread waits anyway; there must be at least that many. `LOOM_MAX_PREEMPTIONS` overrides the bound.
#[expect(clippy::print_stdout, reason = "a model says what it has explored")]
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

/// What a key stands for: what has changed, what its workers have seen, and whether one has it.
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

    /// Looks, as a worker does that has been handed the key.
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
    items.into_iter().for_each(|item| queue.add(item));
    queue
}

fn go<T: 'static>(body: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    thread::spawn(body)
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("it does not panic")
}

fn get(queue: &Queue<u8>) -> Processing<u8> {
    block_on(queue.get()).expect("the queue is not shut down")
}

/// Handles one item after the other until the queue is shut down.
fn worker(queue: &Queue<u8>, mut handle: impl FnMut(Processing<u8>)) {
    while let Some(item) = block_on(queue.get()) {
        handle(item);
    }
}

/// Polls `get` so many times, one after the other or when it was woken, and drops it.
fn poll_then_drop(queue: &Queue<u8>, polls: usize) -> Option<Processing<u8>> {
    let mut left = polls;
    let mut get = pin!(queue.get());
    block_on(poll_fn(|context| {
        left -= 1;
        match get.as_mut().poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(item) => Poll::Ready(item),
        }
    }))
}

#[test]
fn two_adders_and_one_getter() {
    explore("two adders, one getter", 3, 100, || {
        let queue = Queue::new();
        let adders: Vec<_> = [1, 2]
            .map(|item| {
                let queue = queue.clone();
                go(move || queue.add(item))
            })
            .into();
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3, "each of the two once");
        first.done();
        second.done();
        adders.into_iter().for_each(join);
        assert!(queue.is_empty());
    });
}

#[test]
fn every_change_of_one_key_is_seen_by_one_worker_at_a_time() {
    explore("two adders of one key, two workers", 2, 20000, || {
        let (queue, subject) = (queue_of([]), Arc::new(Subject::default()));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (queue, subject) = (queue.clone(), Arc::clone(&subject));
                go(move || {
                    worker(&queue, |item| {
                        subject.work();
                        item.done();
                    });
                })
            })
            .collect();
        let adder = {
            let (queue, subject) = (queue.clone(), Arc::clone(&subject));
            go(move || subject.change(&queue))
        };
        subject.change(&queue);
        join(adder);
        queue.shut_down();
        threads.into_iter().for_each(join);
        // A worker may have left before the other one was done with a key that was added meanwhile.
        worker(&queue, |item| {
            subject.work();
            item.done();
        });
        subject.assert_seen();
    });
}

#[test]
fn item_dropped_without_done_goes_to_another_worker() {
    explore("dropped without done", 3, 100, || {
        let (queue, dropped) = (Queue::new(), Arc::new(AtomicBool::new(false)));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (queue, dropped) = (queue.clone(), Arc::clone(&dropped));
                go(move || {
                    let item = get(&queue);
                    if dropped.swap(true, SeqCst) {
                        item.done();
                    }
                })
            })
            .collect();
        queue.add(1);
        threads.into_iter().for_each(join);
        assert!(queue.try_get().is_none(), "the second one was done");
    });
}

/// One worker is cancelled after so many polls; the other one gets the item all the same.
fn cancelled_get(polls: usize, least: usize) {
    explore(&format!("get polled {polls} times, then dropped"), 3, least, move || {
        let queue = Queue::new();
        let cancelled = {
            let queue = queue.clone();
            go(move || drop(poll_then_drop(&queue, polls)))
        };
        let adder = {
            let queue = queue.clone();
            go(move || {
                queue.add(1);
                // Wakes the one that would otherwise wait for its second poll for ever.
                queue.add(2);
            })
        };
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3);
        queue.shut_down();
        first.done();
        second.done();
        join(cancelled);
        join(adder);
    });
}

#[test]
fn get_polled_once_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_get(1, 5_000);
}

#[test]
fn get_polled_twice_then_dropped_loses_neither_item_nor_wake_up() {
    cancelled_get(2, 20_000);
}

#[test]
fn get_that_leaves_the_line_takes_nobodys_place() {
    explore("cancel in the line", 3, 100, || {
        let queue = Queue::new();
        let waits = {
            let queue = queue.clone();
            go(move || get(&queue).done())
        };
        let cancelled = {
            let queue = queue.clone();
            go(move || drop(poll_then_drop(&queue, 1)))
        };
        queue.add(1);
        join(cancelled);
        join(waits);
        assert!(queue.is_empty());
    });
}

#[test]
fn shut_down_ends_every_worker_and_loses_nothing() {
    explore("shut_down and get", 3, 300, || {
        let (queue, handled) = (Queue::new(), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (queue, handled) = (queue.clone(), Arc::clone(&handled));
                go(move || {
                    worker(&queue, |item| {
                        handled.fetch_add(1, SeqCst);
                        item.done();
                    });
                })
            })
            .collect();
        queue.add(1);
        queue.shut_down();
        queue.add(2);
        threads.into_iter().for_each(join);
        assert_eq!(handled.load(SeqCst), 1, "what was added before, and only that");
    });
}

#[test]
fn drain_waits_for_what_is_queued_and_held_and_ends() {
    explore("drain, done and get", 3, 100, || {
        let (queue, handled) = (queue_of([1, 2]), Arc::new(AtomicUsize::new(0)));
        let works = {
            let (queue, handled) = (queue.clone(), Arc::clone(&handled));
            go(move || {
                worker(&queue, |item| {
                    handled.fetch_add(1, SeqCst);
                    item.done();
                });
            })
        };
        let undone = block_on(queue.drain(Duration::MAX));
        assert!(undone.is_empty(), "{undone:?}");
        assert_eq!(handled.load(SeqCst), 2, "it ended before all was done");
        join(works);
    });
}

#[test]
fn drain_waits_for_an_item_that_is_given_back() {
    explore("drain, dropped without done", 3, 30, || {
        let (queue, handled) = (queue_of([1]), Arc::new(AtomicUsize::new(0)));
        let held = get(&queue);
        let drops = go(move || drop(held));
        let works = {
            let (queue, handled) = (queue.clone(), Arc::clone(&handled));
            go(move || {
                // It may come before the item is given back: then it waits for that.
                loop {
                    if let Some(item) = queue.try_get() {
                        handled.fetch_add(1, SeqCst);
                        return item.done();
                    }
                    thread::yield_now();
                }
            })
        };
        let undone = block_on(queue.drain(Duration::MAX));
        assert!(undone.is_empty(), "{undone:?}");
        assert_eq!(handled.load(SeqCst), 1);
        join(drops);
        join(works);
    });
}

#[test]
fn two_drains_and_a_waiting_worker_all_hear_of_the_last_item() {
    explore("two drains", 2, 5000, || {
        let queue = queue_of([1]);
        let held = get(&queue);
        let waits = {
            let queue = queue.clone();
            go(move || worker(&queue, Processing::done))
        };
        let drains = {
            let queue = queue.clone();
            go(move || assert!(block_on(queue.drain(Duration::MAX)).is_empty()))
        };
        let done = go(move || held.done());
        assert!(block_on(queue.drain(Duration::MAX)).is_empty());
        [waits, drains, done].into_iter().for_each(join);
    });
}

#[test]
fn cancelled_drain_takes_no_wake_up_and_hands_nothing_back() {
    explore("cancelled drain", 3, 100, || {
        let queue = queue_of([1]);
        let held = get(&queue);
        let cancelled = {
            let queue = queue.clone();
            go(move || {
                let mut drain = pin!(queue.drain(Duration::MAX));
                block_on(poll_fn(|context| {
                    let _: () = drop(drain.as_mut().poll(context));
                    Poll::Ready(())
                }));
            })
        };
        let done = go(move || held.done());
        assert!(block_on(queue.drain(Duration::MAX)).is_empty());
        join(cancelled);
        join(done);
    });
}

#[test]
fn drain_at_its_deadline_hands_back_what_no_worker_will_do() {
    explore("drain at its deadline", 3, 300, || {
        let (queue, handled) = (queue_of([1, 2]), Arc::new(AtomicUsize::new(0)));
        let held = get(&queue);
        let works = {
            let (queue, handled) = (queue.clone(), Arc::clone(&handled));
            go(move || {
                worker(&queue, |item| {
                    handled.fetch_add(usize::from(*item), SeqCst);
                    item.done();
                });
            })
        };
        let drops = go(move || drop(held));
        let undone = block_on(queue.drain(Duration::ZERO));
        join(drops);
        join(works);
        // The worker may have left before the first item was given back.
        worker(&queue, |item| {
            handled.fetch_add(usize::from(*item), SeqCst);
            item.done();
        });
        let handled = handled.load(SeqCst);
        // A worker that has finished an item after it was handed back has done it twice, once for
        // whoever looks at `held`; what was queued or given back is either here or there.
        assert!(undone.queued.iter().all(|item| handled & usize::from(*item) == 0));
        let given = undone.into_iter().fold(0, |all, item| all | usize::from(item));
        assert_eq!(given | handled, 3, "an item was lost");
        assert!(handled <= 3, "an item was handed out twice");
    });
}

#[test]
fn delay_that_ends_or_is_overtaken_wakes_a_worker() {
    explore("delay, add and get", 3, 100, || {
        let queue = Queue::new();
        queue.add_after(1, Duration::from_secs(1));
        queue.add_after(2, Duration::from_secs(1));
        let timer = {
            let queue = queue.clone();
            go(move || queue.end_delays(Instant::now() + Duration::from_secs(1)))
        };
        let adder = {
            let queue = queue.clone();
            go(move || queue.add(1))
        };
        let (first, second) = (get(&queue), get(&queue));
        assert_eq!(*first + *second, 3);
        first.done();
        second.done();
        join(timer);
        join(adder);
        let again = queue.try_get().map(|item| *item);
        assert!(again.is_none_or(|item| item == 1), "only the one that was added, too");
        queue.end_delays(Instant::now() + Duration::from_secs(9));
        assert!(queue.is_empty() || again.is_some(), "the delay was left behind");
    });
}
