//! In the steady state a key goes through the queue without an allocation.

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

/// So many keys are in the queue together.
const KEYS: u8 = 100;

/// How often a round allocates when three went before: of three rounds the least, because what else runs
/// in this process may allocate, too.
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

/// Every way of a key through the queue, but for a batch, which has a list of its own.
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
    assert_none("waited for", &|| {
        for key in keys {
            let mut get = pin!(queue.get());
            let mut context = Context::from_waker(Waker::noop());
            assert!(get.as_mut().poll(&mut context).is_pending());
            queue.add(key.clone());
            let Poll::Ready(Some(item)) = get.poll(&mut context) else { panic!("it was added") };
            item.done();
        }
    });
    assert_none("delayed, cancelled, overtaken", &|| {
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

/// One test: what runs beside it would be counted.
#[tokio::test(start_paused = true)]
async fn key_that_goes_through_allocates_nothing() {
    check_all("u64", u64::from);
    check_all("Arc<str>", |number| Arc::<str>::from(format!("default/web-{number}")));
    // What is counted can be more than nothing: a `String` is cloned to be added, and to be handed out.
    let (queue, key) = (Queue::new(), "default/web".to_owned());
    let cycle = allocations(|| {
        queue.add(key.clone());
        finish_all(&queue);
    });
    assert_eq!(cycle, 2);
}
