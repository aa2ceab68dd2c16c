//! Counts allocations: in the steady state a key passes through the queue without one.

use std::alloc::System;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HOUR: Duration = Duration::from_secs(3600);

/// Number of keys that are in the queue at the same time.
const KEYS: u8 = 100;

/// Returns the number of allocations of one round, after three warm-up rounds.
///
/// It is the minimum of three measured rounds, because other threads of this process may allocate
/// at the same time.
fn allocations(mut round: impl FnMut()) -> usize {
    (0..3).for_each(|_| round());
    let measured = (0..3).map(|_| {
        let region = Region::new(ALLOCATOR);
        round();
        let change = region.change();
        change.allocations + change.reallocations
    });
    measured.min().expect("three rounds")
}

fn finish_all<T>(queue: &Queue<T>)
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    while let Some(item) = queue.try_get() {
        item.done();
    }
}

/// Checks each path of a key through the queue, except a batch, which allocates its own list.
fn check<T>(name: &str, queue: &Queue<T>, keys: &[T])
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    let assert_none = |what: &str, round: &dyn Fn()| {
        assert_eq!(allocations(round), 0, "{name}: {what}");
        assert!(queue.is_empty());
    };
    assert_none("added at two priorities, handed out, done", &|| {
        for (key, priority) in keys.iter().zip([0, LOW_PRIORITY].into_iter().cycle()) {
            queue.at_priority(priority).add(key.clone());
            queue.add(key.clone());
        }
        finish_all(queue);
    });
    assert_none("added while held, and dropped", &|| {
        for key in keys {
            queue.add(key.clone());
            let item = queue.try_get();
            queue.add(key.clone());
            drop(item);
            finish_all(queue);
        }
    });
    assert_none("added while a worker waits", &|| {
        for key in keys {
            let mut get = pin!(queue.get());
            let mut context = Context::from_waker(Waker::noop());
            assert!(get.as_mut().poll(&mut context).is_pending());
            queue.add(key.clone());
            let Poll::Ready(Some(item)) = get.poll(&mut context) else { panic!("it was added") };
            item.done();
        }
    });
    assert_none("delayed, then cancelled or added", &|| {
        for key in keys {
            queue.add_after(key.clone(), HOUR);
        }
        for (nth, key) in keys.iter().enumerate() {
            assert!(nth % 2 == 0 || queue.cancel(key));
            queue.add(key.clone());
        }
        finish_all(queue);
    });
    assert_none("failed, forgotten", &|| {
        for key in keys {
            queue.add_rate_limited(key.clone());
        }
        for key in keys {
            queue.forget(key);
            queue.add(key.clone());
        }
        finish_all(queue);
    });
}

fn check_all<T>(kind: &str, make: fn(u8) -> T)
where
    T: Eq + Hash + Clone + Send + Sync + 'static,
{
    let keys: Vec<T> = (0..KEYS).map(make).collect();
    let dimension = keys.clone();
    let by_priority = || Queue::builder().priorities(Priorities::default());
    let by_turns = by_priority()
        .fair_by(move |key| dimension.iter().position(|it| it == key).map(|nth| nth % 3));
    check(&format!("{kind}, in order"), &Queue::new(), &keys);
    check(&format!("{kind}, by priority"), &by_priority().build(), &keys);
    check(&format!("{kind}, by priority and turns"), &by_turns.build(), &keys);
    check(&format!("{kind}, inspected"), &Queue::builder().inspect().build(), &keys);
}

/// The only test of this file, because the allocations of a concurrent test would be counted.
#[tokio::test(start_paused = true)]
async fn key_passes_through_the_queue_without_allocation() {
    check_all("u64", u64::from);
    check_all("Arc<str>", |number| Arc::<str>::from(format!("default/web-{number}")));
    // Proves that the counter works: a `String` is cloned once by the add and once by the hand-out.
    let (queue, key) = (Queue::new(), "default/web".to_owned());
    let cycle = allocations(|| {
        queue.add(key.clone());
        finish_all(&queue);
    });
    assert_eq!(cycle, 2);
}
