use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::{Just, Strategy, prop_oneof};

use super::{Added, Held, Released, SLOTS_KEPT, SLOTS_PER_USED, State, Taken};
use crate::cause::Merge;
use crate::inspect::Operation;
use crate::order::Rank;
use crate::request::Request;
use crate::testing::{Schedules, Tally};

/// The hash of all keys: only `Eq` distinguishes them.
const HASH: u64 = 7;

fn no_causes() -> Merge<()> {
    Merge::new(|(), ()| ())
}

fn add<T: Eq>(state: &mut State<T, ()>, hash: u64, item: T) -> Added<T, ()> {
    let found = state.find(hash, &item);
    let (rank, operation) = (Rank::default(), Operation::Add);
    let request = Request { rank, operation, cause: (), given_back: 0 };
    state.add(found, item, request, &mut no_causes())
}

fn take(state: &mut State<u8, ()>) -> (Held, u8) {
    let Taken { held, item, .. } = state.take().expect("something is queued");
    (held, item)
}

#[test]
fn items_come_in_the_order_in_which_they_were_added() {
    let mut state = State::new(None);
    for (slot, item) in [3, 1, 2].into_iter().enumerate() {
        let slot = u32::try_from(slot).expect("small");
        assert_eq!(add(&mut state, HASH, item), Added::Queued(slot));
    }
    assert_eq!([take(&mut state).1, take(&mut state).1, take(&mut state).1], [3, 1, 2]);
    assert_eq!(state.take(), None);
}

#[test]
fn item_added_twice_is_handed_out_once() {
    let mut state = State::new(None);
    add(&mut state, HASH, 1);
    assert_eq!(add(&mut state, HASH, 1), Added::Merged(1));
    let (held, _) = take(&mut state);
    assert_eq!(state.take(), None);
    assert_eq!(state.done(held), Released::Gone(Some(1), None));
    assert!(state.is_idle());
}

#[test]
fn item_added_while_held_is_not_handed_out_before_it_is_done() {
    let mut state = State::new(None);
    add(&mut state, HASH, 1);
    let (held, _) = take(&mut state);
    assert_eq!(add(&mut state, HASH, 1), Added::Wanted(held.slot(), 1));
    assert_eq!(add(&mut state, HASH, 1), Added::Merged(1));
    assert_eq!(state.take(), None, "one key, one worker");
    assert_eq!(state.done(held), Released::Requeued { wanted: Some(0) });
    let (held, _) = take(&mut state);
    assert_eq!(
        state.done(held),
        Released::Gone(Some(1), None),
        "two adds while held cause one hand-out"
    );
}

#[test]
fn item_given_back_is_queued_behind_the_others() {
    let mut state = State::new(None);
    add(&mut state, HASH, 1);
    add(&mut state, HASH, 2);
    let (held, _) = take(&mut state);
    assert_eq!(state.give_back(held, (), &mut no_causes()), Released::Requeued { wanted: None });
    assert_eq!([take(&mut state).1, take(&mut state).1], [2, 1]);
}

#[test]
fn item_that_a_drain_returned_is_not_queued_again() {
    let mut state = State::new(None);
    add(&mut state, HASH, 1);
    add(&mut state, HASH, 2);
    let (first, _) = take(&mut state);
    let (second, _) = take(&mut state);
    add(&mut state, HASH, 2);
    assert_eq!(state.hand_back_held().0, [1, 2]);
    assert_eq!(state.hand_back_held().0, [0; 0], "not returned a second time");
    assert!(!state.is_idle(), "the workers still hold them");
    assert_eq!(state.give_back(first, (), &mut no_causes()), Released::Gone(Some(1), Some(())));
    assert_eq!(state.done(second), Released::Gone(Some(2), None));
    assert!(state.is_idle());
}

#[test]
fn slots_are_used_again() {
    let mut state = State::new(None);
    for round in 0..1000_u16 {
        add(&mut state, u64::from(round), round);
        let Taken { held, .. } = state.take().expect("just added");
        state.done(held);
    }
    assert_eq!(state.slots.len(), 1);
    assert_eq!(state.index.len(), 0);
}

#[test]
fn memory_of_a_burst_is_given_back_when_less_is_used() {
    let burst = SLOTS_KEPT + 1;
    let mut state = State::new(None);
    let mut run = |items: usize| {
        for item in 0..items {
            add(&mut state, item as u64, item);
        }
        while let Some(Taken { held, .. }) = state.take() {
            assert!(state.trim().is_none(), "not idle");
            state.done(held);
        }
        let trimmed = state.trim().map(|old| old.slots.len());
        (trimmed, state.slots.len())
    };
    assert_eq!(run(burst), (None, burst), "kept for a next burst");
    assert_eq!(run(burst), (None, burst), "the next burst reused it");
    assert_eq!(run(burst / SLOTS_PER_USED + 1), (None, burst), "more than an eighth is used");
    assert_eq!(run(burst / SLOTS_PER_USED), (Some(burst), 0));
    assert_eq!(run(SLOTS_KEPT), (None, SLOTS_KEPT));
    assert_eq!(run(1), (None, SLOTS_KEPT), "up to 1,024 slots are kept");
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Take,
    /// The n-th held item.
    Done(usize),
    GiveBack(usize),
    TakeQueued,
    HandBack,
}

/// A simple model: client-go's three sets.
#[derive(Default)]
struct Model {
    queue: VecDeque<u8>,
    dirty: BTreeSet<u8>,
    processing: BTreeMap<u8, Held>,
    handed_back: BTreeSet<u8>,
}

impl Model {
    fn release(&mut self, item: u8, again: bool) -> bool {
        self.processing.remove(&item);
        let dirty = self.dirty.contains(&item);
        let again = !self.handed_back.remove(&item) && (dirty || again);
        self.dirty.remove(&item);
        if again {
            self.dirty.insert(item);
            self.queue.push_back(item);
        }
        again
    }
}

#[test]
fn any_schedule_matches_three_sets() {
    let step = prop_oneof![
        30 => (0..6_u8).prop_map(Step::Add),
        20 => Just(Step::Take),
        12 => (0..6_usize).prop_map(Step::Done),
        6 => (0..6_usize).prop_map(Step::GiveBack),
        1 => Just(Step::TakeQueued),
        1 => Just(Step::HandBack),
    ];
    let least = &[
        ("handed out", 1_000),
        ("added while held", 500),
        ("dropped without done", 150),
        ("queued ones taken back", 50),
        ("held ones handed back", 50),
    ];
    Schedules { step, longest: 120, least }.check(run);
}

fn run(steps: &[Step], tally: &Tally) {
    let mut state = State::new(None);
    let mut model = Model::default();
    for step in steps {
        tally.record_step(|| format!("{step:?}"));
        apply(step, &mut state, &mut model, tally);
        assert_eq!(state.queued(), model.queue.len());
        assert_eq!(state.held(), model.processing.len());
        assert_eq!(state.index.len(), state.queued() + state.held());
        assert_eq!(state.slots.len(), state.index.len() + state.vacant.len());
    }
}

fn apply_add(item: u8, state: &mut State<u8, ()>, model: &mut Model, tally: &Tally) {
    let held = model.processing.get(&item).copied();
    let wanted = model.dirty.insert(item);
    tally.count("added while held", usize::from(held.is_some()));
    // Two hashes for six keys: some of them collide.
    match add(state, u64::from(item % 2), item) {
        Added::Queued(_) => {
            assert!(wanted && held.is_none());
            model.queue.push_back(item);
        }
        Added::Wanted(slot, known) => {
            let handed_back = model.handed_back.contains(&item);
            assert!(wanted && !handed_back, "only the first add while held");
            assert_eq!((Some(slot), known), (held.map(Held::slot), item));
        }
        Added::Merged(known) => {
            assert!(!wanted);
            assert_eq!(known, item);
        }
        Added::Ignored(known, ()) => {
            assert!(model.handed_back.contains(&item));
            assert_eq!(known, item);
        }
        Added::Raised { .. } => panic!("there are no priorities"),
    }
}

fn apply(step: &Step, state: &mut State<u8, ()>, model: &mut Model, tally: &Tally) {
    match *step {
        Step::Add(item) => apply_add(item, state, model, tally),
        Step::Take => {
            let taken = state.take();
            tally.record_outcome(|| format!("{taken:?}"));
            assert_eq!(taken.as_ref().map(|taken| taken.item), model.queue.pop_front());
            if let Some(Taken { held, item, .. }) = taken {
                model.dirty.remove(&item);
                assert!(model.processing.insert(item, held).is_none(), "one key, one worker");
                tally.count("handed out", 1);
            }
        }
        Step::Done(nth) | Step::GiveBack(nth) => {
            let Some((&item, &held)) = model.processing.iter().nth(nth) else { return };
            let back = matches!(step, Step::GiveBack(_));
            tally.count("dropped without done", usize::from(back));
            let released =
                if back { state.give_back(held, (), &mut no_causes()) } else { state.done(held) };
            let wanted = model.dirty.contains(&item).then_some(0);
            let again = model.release(item, back);
            let requeued = Released::Requeued { wanted };
            assert_eq!(
                released,
                if again { requeued } else { Released::Gone(Some(item), back.then_some(())) }
            );
        }
        Step::TakeQueued => {
            let queued: Vec<u8> = model.queue.drain(..).collect();
            model.dirty.retain(|item| !queued.contains(item));
            tally.count("queued ones taken back", queued.len());
            let items = state.take_queued().into_iter().map(|(item, ())| item);
            assert_eq!(items.collect::<Vec<_>>(), queued);
        }
        Step::HandBack => {
            let held: BTreeSet<u8> = model.processing.keys().copied().collect();
            let new: BTreeSet<u8> = held.difference(&model.handed_back).copied().collect();
            tally.count("held ones handed back", new.len());
            assert_eq!(state.hand_back_held().0.into_iter().collect::<BTreeSet<_>>(), new);
            model.handed_back.extend(new);
        }
    }
}
