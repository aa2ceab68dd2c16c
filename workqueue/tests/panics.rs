//! An item whose own code panics costs the call in which it does, and nothing else.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use homeostat_workqueue::Queue;
use tokio::time::sleep;
use tokio_test::task;

const MINUTE: Duration = Duration::from_secs(60);

thread_local! {
    /// So many comparisons and clones from now on the next one panics.
    static PATIENCE: Cell<Option<u32>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct Touchy(u8);

fn touch() {
    PATIENCE.set(match PATIENCE.get() {
        Some(0) => panic!("that was too much"),
        patience => patience.map(|left| left - 1),
    });
}

/// Runs it until the comparison or clone after so many panics.
fn panics_after(patience: u32, run: impl FnOnce()) {
    PATIENCE.set(Some(patience));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    PATIENCE.set(None);
    assert!(outcome.is_err(), "nothing panicked: nothing was tested");
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

/// What is queued, in order.
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
    // It is compared with what is queued and with what is delayed.
    for comparisons in 0..2 {
        panics_after(comparisons, || queue.add(Touchy(1)));
        assert_eq!(queue.len(), 1);
        assert!(queue.cancel(&Touchy(1)), "it is still delayed");
        queue.add_after(Touchy(1), MINUTE);
    }
    assert_eq!(take_all(&queue), [1]);
}

#[test]
fn batch_that_panics_has_woken_a_worker_for_each_item_before() {
    let queue = Queue::new();
    let mut workers = [(); 3].map(|()| task::spawn(queue.get()));
    assert!(workers.iter_mut().all(|worker| worker.poll().is_pending()));
    panics_after(0, || queue.add_batch([Touchy(1), Touchy(2), Touchy(2), Touchy(3)]));
    let woken = [0, 1, 2].map(|nth: usize| workers[nth].is_woken());
    assert_eq!((queue.len(), woken), (2, [true, true, false]));
}

#[tokio::test(start_paused = true)]
async fn delay_whose_end_panics_has_not_ended() {
    let queue = Queue::new();
    queue.add(Touchy(1));
    queue.add_after(Touchy(1), MINUTE);
    PATIENCE.set(Some(0));
    sleep(MINUTE * 2).await;
    PATIENCE.set(None);
    assert_eq!(take_all(&queue), [1]);
    // That was its task's last step; the next delay starts another one.
    queue.add_after(Touchy(2), MINUTE);
    sleep(MINUTE * 2).await;
    assert_eq!(take_all(&queue), [1, 2]);
}

#[test]
fn get_that_panics_takes_nothing() {
    let queue = Queue::new();
    queue.add_batch([Touchy(1), Touchy(2)]);
    panics_after(0, || drop(queue.try_get()));
    assert_eq!(take_all(&queue), [1, 2]);
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
    let undone = queue.drain(Duration::ZERO).await;
    assert_eq!((undone.held.len(), undone.queued.len()), (2, 1));
    drop(held);
}
