//! Cancel safety: each future of the queue is polled k times under a schedule of events and then
//! dropped, and no item and no wake-up is lost.
//!
//! A schedule is a list of `LENGTH` events. One event comes before each poll of the future under
//! test, the rest after the last poll. The tests try all schedules with every k from 0 to `LENGTH`.

use std::fmt::Debug;
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use homeostat_workqueue::{Processing, Queue};
use tokio_test::task::{self, Spawn};

/// Number of events of a schedule.
const LENGTH: usize = 5;

/// Polls a future at most `polls` times, with one event of the schedule before each poll and the
/// rest after the last, then drops it and its output. Returns true if the future was ready.
fn poll_then_drop<F: Future, E: Copy>(
    future: F,
    polls: usize,
    schedule: &[E],
    mut happen: impl FnMut(E),
) -> bool {
    let mut future = task::spawn(Box::pin(future));
    let mut output = None;
    for (turn, &event) in schedule.iter().enumerate() {
        happen(event);
        if turn < polls && output.is_none() {
            output = match future.poll() {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            };
        }
    }
    // A cancelled worker also drops the item that its future has returned.
    drop(future);
    output.is_some()
}

/// Tries every schedule of these events with every number of polls; returns the number of attempts.
fn try_all<E: Copy + Debug>(events: &[E], mut attempt: impl FnMut(usize, &[E])) -> usize {
    let number = u32::try_from(LENGTH).expect("the length fits");
    let mut attempts = 0;
    for code in 0..events.len().pow(number) {
        let digit = |place| code / events.len().pow(place) % events.len();
        let schedule: Vec<E> = (0..number).map(|place| events[digit(place)]).collect();
        for polls in 0..=LENGTH {
            attempt(polls, &schedule);
            attempts += 1;
        }
    }
    attempts
}

fn paused() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime")
}

/// Polls a waiting worker if it was woken; finishes its item and returns the key.
fn woken<F: Future<Output = Option<Processing<u8>>>>(waits: &mut Spawn<F>) -> Option<u8> {
    if !waits.is_woken() {
        return None;
    }
    match waits.poll() {
        Poll::Ready(item) => item.map(|item| {
            let key = *item;
            item.done();
            key
        }),
        Poll::Pending => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Nothing,
    Add,
    /// Another worker takes the item, if there is one, and drops it without `done`.
    Steal,
}

#[test]
fn get_polled_any_number_of_times_then_dropped_loses_no_item_or_wake_up() {
    let mut ready = 0;
    let attempts = try_all(&[Event::Nothing, Event::Add, Event::Steal], |polls, schedule| {
        let queue = Queue::new();
        // `gone` is in the wait list before `stays`, so its drop has to pass on the wake-up.
        let mut gone = Box::pin(queue.get());
        let first = task::spawn(&mut gone).poll();
        assert!(first.is_pending());
        let mut stays = task::spawn(queue.get());
        assert!(stays.poll().is_pending());
        let was_ready = poll_then_drop(gone, polls, schedule, |event| match event {
            Event::Nothing => {}
            Event::Add => queue.add(1),
            Event::Steal => drop(queue.try_get()),
        });
        ready += usize::from(was_ready);
        let expected = schedule.contains(&Event::Add).then_some(1);
        assert_eq!(woken(&mut stays), expected, "{polls} polls, {schedule:?}");
        drop(stays);
        assert!(queue.try_get().is_none(), "handed out twice: {polls} polls, {schedule:?}");
    });
    assert_eq!(attempts, 3_usize.pow(5) * 6);
    assert!(ready > 500, "only {ready} were ready when they were dropped");
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum DrainEvent {
    /// A worker takes an item and finishes it.
    Work,
    /// A worker takes an item and drops it without `done`.
    GiveBack,
    /// The worker that holds an item from the start finishes it.
    Finish,
}

#[test]
fn drain_polled_any_number_of_times_then_dropped_takes_nothing_from_another_drain() {
    let runtime = paused();
    let _entered = runtime.enter();
    let mut ready = 0;
    let events = [DrainEvent::Work, DrainEvent::GiveBack, DrainEvent::Finish];
    let attempts = try_all(&events, |polls, schedule| {
        let queue = Queue::new();
        queue.add_after(9, Duration::from_secs(1));
        queue.add_batch([1, 2]);
        let mut held = queue.try_get();
        let mut stays = task::spawn(queue.drain(Duration::MAX));
        assert!(stays.poll().is_pending());
        let was_ready = poll_then_drop(queue.drain(Duration::MAX), polls, schedule, |event| {
            let item = if event == DrainEvent::Finish { held.take() } else { queue.try_get() };
            match item {
                Some(item) if event != DrainEvent::GiveBack => item.done(),
                item => drop(item),
            }
        });
        // The remaining items are still handed out, and finishing them wakes the other drain.
        let queued = std::iter::from_fn(|| queue.try_get());
        queued.chain(held).for_each(Processing::done);
        assert!(stays.is_woken(), "{polls} polls, {schedule:?}");
        let Poll::Ready(unfinished) = stays.poll() else { panic!("the idle drain ends") };
        // Each item is handed back once: the delayed item by the drain that was ready first.
        let delayed = if was_ready { vec![] } else { vec![9] };
        assert_eq!(
            unfinished.into_iter().collect::<Vec<_>>(),
            delayed,
            "{polls} polls, {schedule:?}"
        );
        ready += usize::from(was_ready);
    });
    assert_eq!(attempts, 3_usize.pow(5) * 6);
    assert!(ready > 100, "only {ready} were ready when they were dropped");
}

#[test]
fn drain_dropped_at_its_deadline_hands_back_at_most_once() {
    let runtime = paused();
    let _entered = runtime.enter();
    for polls in 0..3 {
        let queue = Queue::new();
        queue.add_batch([1, 2]);
        let held = queue.try_get().expect("an item was added");
        let handed_back =
            poll_then_drop(queue.drain(Duration::ZERO), polls, &[(); LENGTH], |()| {});
        drop(held);
        let left = std::iter::from_fn(|| queue.try_get()).map(|item| {
            let key = *item;
            item.done();
            key
        });
        let left: Vec<u8> = left.collect();
        assert_eq!(left, if handed_back { vec![] } else { vec![2, 1] }, "{polls} polls");
        assert_eq!(handed_back, polls > 0);
    }
}
