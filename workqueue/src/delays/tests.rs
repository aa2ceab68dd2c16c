use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{Strategy, prop_oneof};
use tokio::time::Instant;

use super::{Delayed, Delays, SLOTS_KEPT, deadline_after};
use crate::order::Rank;
use crate::request::{Reason, Request};
use crate::testing::{Schedules, Tally};

/// All keys collide: what tells them apart must be `Eq`.
const HASH: u64 = 7;

fn request(priority: i32) -> Request {
    Request { rank: Rank { priority, dimension: 7 }, reason: Reason::Delayed }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn items_come_when_they_are_due_the_first_due_first() {
    let now = Instant::now();
    let mut delays = Delays::new();
    assert_eq!(delays.insert(HASH, 'b', request(0), now + seconds(2)), Delayed::Next(None));
    assert_eq!(delays.insert(HASH, 'c', request(0), now + seconds(3)), Delayed::Later(None));
    assert_eq!(delays.insert(HASH, 'a', request(0), now + seconds(1)), Delayed::Next(None));
    assert_eq!(delays.take_due(now), None);
    assert_eq!(delays.next_deadline(), Some(now + seconds(1)));
    let later = now + seconds(2);
    assert_eq!(delays.take_due(later), Some((HASH, 'a', request(0))));
    assert_eq!(
        delays.take_due(later),
        Some((HASH, 'b', request(0))),
        "due means now, not only before"
    );
    assert_eq!(delays.take_due(later), None);
    assert_eq!(delays.take_all(), ['c']);
    assert!(delays.is_empty());
}

#[test]
fn the_earliest_time_for_an_item_counts() {
    let now = Instant::now();
    let mut delays = Delays::new();
    delays.insert(HASH, 'a', request(0), now + seconds(5));
    assert_eq!(delays.insert(HASH, 'a', request(0), now + seconds(9)), Delayed::Later(Some('a')));
    assert_eq!(delays.next_deadline(), Some(now + seconds(5)));
    assert_eq!(delays.insert(HASH, 'a', request(0), now + seconds(3)), Delayed::Next(Some('a')));
    assert_eq!(delays.next_deadline(), Some(now + seconds(3)));
    assert_eq!(delays.len(), 1);
}

#[test]
fn items_due_at_the_same_time_come_in_the_order_in_which_they_were_delayed() {
    let due = Instant::now();
    let mut delays = Delays::new();
    for item in 0..100 {
        delays.insert(HASH, item, request(0), due);
    }
    assert_eq!(delays.take_all(), (0..100).collect::<Vec<_>>());
}

#[test]
fn the_highest_priority_for_an_item_counts() {
    let now = Instant::now();
    let mut delays = Delays::new();
    let at = request;
    delays.insert(HASH, 'a', at(1), now + seconds(5));
    delays.insert(HASH, 'a', at(3), now + seconds(9));
    delays.insert(HASH, 'a', at(2), now + seconds(3));
    assert_eq!(delays.take_due(now + seconds(3)), Some((HASH, 'a', at(3))));
}

#[test]
fn item_moved_to_an_earlier_time_again_and_again_takes_one_place() {
    let now = Instant::now();
    let mut delays = Delays::new();
    for second in (0..1000).rev() {
        delays.insert(HASH, 'a', request(0), now + seconds(second));
    }
    assert_eq!((delays.heap.len(), delays.slots.len()), (1, 1));
}

#[test]
fn memory_of_a_burst_is_given_back_when_the_last_item_goes() {
    let now = Instant::now();
    let mut delays = Delays::new();
    let mut run = |items: usize| {
        for item in 0..items {
            delays.insert(item as u64, item, request(0), now);
        }
        while delays.take_due(now).is_some() {}
        (delays.slots.len(), delays.heap.capacity(), delays.index.capacity())
    };
    assert_eq!(run(SLOTS_KEPT + 1), (0, 0, 0));
    assert_eq!(run(SLOTS_KEPT).0, SLOTS_KEPT, "little is kept");
}

#[test]
fn item_that_is_wanted_now_is_delayed_no_longer() {
    let now = Instant::now();
    let mut delays = Delays::new();
    assert_eq!(delays.remove(HASH, &'a'), None);
    delays.insert(HASH, 'a', request(0), now + seconds(1));
    delays.insert(HASH, 'b', request(0), now + seconds(2));
    assert_eq!(delays.remove(HASH, &'a'), Some(('a', 0)));
    assert_eq!(delays.remove(HASH, &'a'), None);
    assert_eq!(delays.next_deadline(), Some(now + seconds(2)));
}

#[test]
fn any_delay_has_a_deadline() {
    let now = Instant::now();
    assert_eq!(deadline_after(now, seconds(7)), now + seconds(7));
    let far = deadline_after(now, Duration::MAX);
    assert!(far > now + seconds(68 * 365 * 24 * 60 * 60));
    assert!(far.checked_add(Duration::from_millis(1)).is_some(), "tokio's timer rounds up");
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u8, u64, i32),
    Remove(u8),
    /// Let so many seconds pass and take what is due.
    Pass(u64),
}

/// Item → when it is due, who came first if that is the same, and the priority.
#[derive(Default)]
struct Model(BTreeMap<u8, (Instant, usize, i32)>);

#[test]
fn any_schedule_is_that_of_a_sorted_list() {
    let step = prop_oneof![
        6 => (0..24_u8, 0..60_u64, 0..9).prop_map(|(item, delay, priority)| {
            Step::Insert(item, delay, priority)
        }),
        2 => (0..24_u8).prop_map(Step::Remove),
        1 => (0..20_u64).prop_map(Step::Pass),
    ];
    let least = &[("moved to an earlier time", 200), ("removed", 300), ("came due", 200)];
    Schedules { step, longest: 150, least }.check(run);
}

fn rank(item: u8, priority: i32) -> Request {
    let rank = Rank { priority, dimension: u64::from(item) };
    Request { rank, reason: Reason::Delayed }
}

fn run(steps: &[Step], tally: &Tally) {
    let mut now = Instant::now();
    let mut delays = Delays::new();
    let mut model = Model::default();
    for (arrival, step) in steps.iter().enumerate() {
        tally.tell(|| format!("{step:?}"));
        match *step {
            Step::Insert(item, delay, priority) => {
                let due = now + seconds(delay);
                let known = model.0.entry(item).or_insert((due, arrival, priority));
                tally.count("moved to an earlier time", usize::from(due < known.0));
                known.0 = known.0.min(due);
                known.2 = known.2.max(priority);
                delays.insert(u64::from(item % 5), item, rank(item, priority), due);
            }
            Step::Remove(item) => {
                let known = model.0.remove(&item).map(|(_, _, priority)| (item, priority));
                tally.count("removed", usize::from(known.is_some()));
                assert_eq!(delays.remove(u64::from(item % 5), &item), known);
            }
            Step::Pass(time) => {
                now += seconds(time);
                let taken = take_due(&mut delays, &mut model, now);
                tally.count("came due", taken);
            }
        }
        assert_eq!(delays.next_deadline(), model.0.values().map(|(due, ..)| *due).min());
        assert_eq!((delays.len(), delays.index.len()), (model.0.len(), model.0.len()));
        assert!(delays.slots.len() <= 24, "as many slots as there are keys");
    }
}

/// Takes what is due, in the order of the model; returns how many there were.
fn take_due(delays: &mut Delays<u8>, model: &mut Model, now: Instant) -> usize {
    let mut taken = 0;
    while let Some((hash, item, ranked)) = delays.take_due(now) {
        assert_eq!(hash, u64::from(item % 5));
        let first = model.0.iter().min_by_key(|(_, due)| **due);
        assert_eq!(first.map(|(item, _)| *item), Some(item));
        assert!(first.is_some_and(|(_, (due, ..))| *due <= now), "it was not due yet");
        let priority = model.0.remove(&item).map(|(_, _, priority)| rank(item, priority));
        assert_eq!(priority, Some(ranked));
        taken += 1;
    }
    assert!(model.0.values().all(|(due, ..)| *due > now), "all that is due was taken");
    taken
}
