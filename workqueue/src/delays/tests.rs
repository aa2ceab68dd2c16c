use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{Strategy, prop_oneof};
use tokio::time::Instant;

use super::{All, Delayed, Delays, Kind, SLOTS_KEPT, Waiting, deadline_after};
use crate::cause::Merge;
use crate::inspect::Operation;
use crate::order::Rank;
use crate::request::Request;
use crate::testing::{Schedules, Tally};

/// The hash of all keys: only `Eq` distinguishes them.
const HASH: u64 = 7;

fn insert<T: Eq>(
    delays: &mut Delays<T, ()>,
    hash: u64,
    item: T,
    request: Request<()>,
    due: Instant,
) -> Delayed<T> {
    delays.insert(
        Waiting { item, hash, kind: Kind::Delay, request },
        due,
        &mut Merge::new(|(), ()| ()),
    )
}

fn waiting(item: char, request: Request<()>) -> Waiting<char, ()> {
    Waiting { item, hash: HASH, kind: Kind::Delay, request }
}

/// Removes the entry of kind `Delay`.
fn remove<T: Eq>(delays: &mut Delays<T, ()>, hash: u64, item: &T) -> Option<(T, Request<()>)> {
    let slot = delays.find(hash, item, Kind::Delay)?;
    let Waiting { item, request, .. } = delays.remove_found(slot);
    Some((item, request))
}

fn items<T>(requests: Vec<(T, ())>) -> Vec<T> {
    requests.into_iter().map(|(item, ())| item).collect()
}

fn request(priority: i32) -> Request<()> {
    let rank = Rank { priority, dimension: 7 };
    Request { rank, operation: Operation::AddAfter, cause: (), given_back: 0 }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn items_come_in_the_order_of_their_deadlines() {
    let now = Instant::now();
    let mut delays = Delays::new();
    assert_eq!(insert(&mut delays, HASH, 'b', request(0), now + seconds(2)), Delayed::Next(None));
    assert_eq!(insert(&mut delays, HASH, 'c', request(0), now + seconds(3)), Delayed::Later(None));
    assert_eq!(insert(&mut delays, HASH, 'a', request(0), now + seconds(1)), Delayed::Next(None));
    assert_eq!(delays.take_due(now), None);
    assert_eq!(delays.next_deadline(), Some(now + seconds(1)));
    let later = now + seconds(2);
    assert_eq!(delays.take_due(later), Some(waiting('a', request(0))));
    assert_eq!(
        delays.take_due(later),
        Some(waiting('b', request(0))),
        "an item is due at its deadline, not after it"
    );
    assert_eq!(delays.take_due(later), None);
    assert_eq!(items(delays.take_all(&delays.entries_by_slot()).items), ['c']);
    assert!(delays.is_empty());
}

#[test]
fn earliest_deadline_of_an_item_applies() {
    let now = Instant::now();
    let mut delays = Delays::new();
    insert(&mut delays, HASH, 'a', request(0), now + seconds(5));
    assert_eq!(
        insert(&mut delays, HASH, 'a', request(0), now + seconds(9)),
        Delayed::Later(Some('a'))
    );
    assert_eq!(delays.next_deadline(), Some(now + seconds(5)));
    assert_eq!(
        insert(&mut delays, HASH, 'a', request(0), now + seconds(3)),
        Delayed::Next(Some('a'))
    );
    assert_eq!(delays.next_deadline(), Some(now + seconds(3)));
    assert_eq!(delays.len(), 1);
}

#[test]
fn items_due_at_the_same_time_come_in_the_order_in_which_they_were_delayed() {
    let due = Instant::now();
    let mut delays = Delays::new();
    for item in 0..100 {
        insert(&mut delays, HASH, item, request(0), due);
    }
    assert_eq!(
        items(delays.take_all(&delays.entries_by_slot()).items),
        (0..100).collect::<Vec<_>>()
    );
}

#[test]
fn highest_priority_of_an_item_applies() {
    let now = Instant::now();
    let mut delays = Delays::new();
    let at = request;
    insert(&mut delays, HASH, 'a', at(1), now + seconds(5));
    insert(&mut delays, HASH, 'a', at(3), now + seconds(9));
    insert(&mut delays, HASH, 'a', at(2), now + seconds(3));
    assert_eq!(delays.take_due(now + seconds(3)), Some(waiting('a', at(3))));
}

#[test]
fn item_moved_to_an_earlier_time_1000_times_takes_one_place() {
    let now = Instant::now();
    let mut delays = Delays::new();
    for second in (0..1000).rev() {
        insert(&mut delays, HASH, 'a', request(0), now + seconds(second));
    }
    assert_eq!((delays.heap.len(), delays.slots.len()), (1, 1));
}

#[test]
fn memory_of_a_burst_is_given_back_when_the_last_item_goes() {
    let now = Instant::now();
    let mut delays = Delays::new();
    let mut run = |items: usize| {
        for item in 0..items {
            insert(&mut delays, item as u64, item, request(0), now);
        }
        while delays.take_due(now).is_some() {}
        (delays.slots.len(), delays.heap.capacity(), delays.index.capacity())
    };
    assert_eq!(run(SLOTS_KEPT + 1), (0, 0, 0));
    assert_eq!(run(SLOTS_KEPT).0, SLOTS_KEPT, "up to 1,024 slots are kept");
}

#[test]
fn removed_item_is_no_longer_delayed() {
    let now = Instant::now();
    let mut delays = Delays::new();
    assert_eq!(remove(&mut delays, HASH, &'a'), None);
    insert(&mut delays, HASH, 'a', request(0), now + seconds(1));
    insert(&mut delays, HASH, 'b', request(0), now + seconds(2));
    assert_eq!(remove(&mut delays, HASH, &'a'), Some(('a', request(0))));
    assert_eq!(remove(&mut delays, HASH, &'a'), None);
    assert_eq!(delays.next_deadline(), Some(now + seconds(2)));
}

#[test]
fn entries_of_different_kinds_have_their_own_deadlines() {
    let now = Instant::now();
    let mut delays = Delays::new();
    for (kind, after) in [(Kind::Delay, 3), (Kind::Schedule, 1), (Kind::Rest, 2)] {
        let waiting = Waiting { kind, ..waiting('a', request(0)) };
        delays.insert(waiting, now + seconds(after), &mut Merge::new(|(), ()| ()));
    }
    insert(&mut delays, HASH, 'b', request(0), now + seconds(4));
    assert_eq!(delays.len(), 4);
    let rest = delays.find(HASH, &'a', Kind::Rest).expect("it rests");
    assert_eq!(delays.remove_found(rest).kind, Kind::Rest);
    assert_eq!(delays.next_deadline(), Some(now + seconds(1)));
    let All { items: first, later } = delays.take_all(&delays.entries_by_slot());
    assert_eq!(items(first), ['a', 'b'], "each item once");
    assert_eq!(later, [waiting('a', request(0))], "the entry with the later deadline");
    assert!(delays.is_empty());
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
    /// Lets this number of seconds pass and takes the due items.
    Pass(u64),
}

/// Maps an item to its deadline, its arrival number and its priority.
#[derive(Default)]
struct Model(BTreeMap<u8, (Instant, usize, i32)>);

#[test]
fn any_schedule_matches_a_sorted_list() {
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

fn rank(item: u8, priority: i32) -> Request<()> {
    let rank = Rank { priority, dimension: u64::from(item) };
    Request { rank, operation: Operation::AddAfter, cause: (), given_back: 0 }
}

fn run(steps: &[Step], tally: &Tally) {
    let mut now = Instant::now();
    let mut delays = Delays::new();
    let mut model = Model::default();
    for (arrival, step) in steps.iter().enumerate() {
        tally.record_step(|| format!("{step:?}"));
        match *step {
            Step::Insert(item, delay, priority) => {
                let due = now + seconds(delay);
                let known = model.0.entry(item).or_insert((due, arrival, priority));
                tally.count("moved to an earlier time", usize::from(due < known.0));
                known.0 = known.0.min(due);
                known.2 = known.2.max(priority);
                insert(&mut delays, u64::from(item % 5), item, rank(item, priority), due);
            }
            Step::Remove(item) => {
                let known =
                    model.0.remove(&item).map(|(_, _, priority)| (item, rank(item, priority)));
                tally.count("removed", usize::from(known.is_some()));
                assert_eq!(remove(&mut delays, u64::from(item % 5), &item), known);
            }
            Step::Pass(time) => {
                now += seconds(time);
                let taken = take_due(&mut delays, &mut model, now);
                tally.count("came due", taken);
            }
        }
        assert_eq!(delays.next_deadline(), model.0.values().map(|(due, ..)| *due).min());
        assert_eq!((delays.len(), delays.index.len()), (model.0.len(), model.0.len()));
        assert!(delays.slots.len() <= 24, "at most one slot per key");
    }
}

/// Takes the due items, in the order of the model. Returns their number.
fn take_due(delays: &mut Delays<u8, ()>, model: &mut Model, now: Instant) -> usize {
    let mut taken = 0;
    while let Some(Waiting { hash, item, request, .. }) = delays.take_due(now) {
        assert_eq!(hash, u64::from(item % 5));
        let first = model.0.iter().min_by_key(|(_, due)| **due);
        assert_eq!(first.map(|(item, _)| *item), Some(item));
        assert!(
            first.is_some_and(|(_, (due, ..))| *due <= now),
            "it was taken before its deadline"
        );
        let priority = model.0.remove(&item).map(|(_, _, priority)| rank(item, priority));
        assert_eq!(priority, Some(request));
        taken += 1;
    }
    assert!(model.0.values().all(|(due, ..)| *due > now), "all due items were taken");
    taken
}
