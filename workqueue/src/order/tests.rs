use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::{Just, Strategy, prop_oneof};

use super::{Order, Rank, Ranking};
use crate::testing::{Schedules, Tally};

fn ranked(oldest_every: u32, fair: bool) -> Order {
    let oldest_every = NonZeroU32::new(oldest_every);
    Order::new(Some(Ranking { by_priority: true, oldest_every, fair }))
}

fn at(priority: i32) -> Rank {
    Rank { priority, dimension: 0 }
}

fn of(dimension: u64) -> Rank {
    Rank { priority: 0, dimension }
}

/// Pushes slots with these ranks, numbered from 0.
fn filled(mut order: Order, ranks: &[Rank]) -> Order {
    for (slot, &rank) in (0..).zip(ranks) {
        order.push(slot, rank);
    }
    order
}

fn take_all(order: &mut Order) -> Vec<u32> {
    std::iter::from_fn(|| order.take_first()).collect()
}

#[test]
fn slots_without_a_ranking_come_first_in_first_out() {
    let mut order = filled(Order::new(None), &[at(1), at(9), at(3)]);
    assert_eq!(order.raise(0, 10), None);
    order.want(1, 10);
    assert_eq!((order.priority(1), order.len()), (0, 3));
    assert_eq!(take_all(&mut order), [0, 1, 2]);
}

#[test]
fn higher_priorities_come_first_and_equal_ones_in_order_of_arrival() {
    let ranks = [at(0), at(-100), at(7), at(0), at(7), at(i32::MIN), at(i32::MAX)];
    assert_eq!(take_all(&mut filled(ranked(0, false), &ranks)), [6, 2, 4, 0, 3, 1, 5]);
}

#[test]
fn raised_slot_goes_to_the_end_of_its_new_priority() {
    let mut order = filled(ranked(0, false), &[at(0), at(5), at(0), at(5)]);
    assert_eq!(order.raise(2, 5), Some(0));
    assert_eq!(order.raise(1, 5), None, "not higher: it keeps its place");
    assert_eq!(order.raise(1, 4), None);
    assert_eq!((order.priority(1), order.priority(2)), (5, 5));
    assert_eq!(take_all(&mut order), [1, 3, 2, 0]);
}

#[test]
fn slot_is_queued_again_at_the_highest_requested_priority() {
    let mut order = filled(ranked(0, false), &[at(5), at(3), at(2)]);
    assert_eq!(order.take_first(), Some(0));
    order.want(0, -1);
    order.want(0, 2);
    order.want(0, 1);
    assert_eq!(order.priority(0), 5, "the priority at which it was taken");
    order.push_again(0, false);
    assert_eq!(order.priority(0), 2, "the highest, not the last");
    assert_eq!(take_all(&mut order), [1, 2, 0], "its old priority does not count");
}

#[test]
fn unfinished_slot_keeps_at_least_its_priority() {
    for (wanted, priority) in [(None, 5), (Some(2), 5), (Some(9), 9)] {
        let mut order = filled(ranked(0, false), &[at(5)]);
        order.take_first();
        if let Some(wanted) = wanted {
            order.want(0, wanted);
        }
        order.push_again(0, true);
        assert_eq!(order.priority(0), priority);
    }
}

#[test]
fn every_nth_hand_out_is_the_oldest_slot() {
    let mut order = filled(ranked(3, false), &[at(-100), at(-100), at(0), at(0), at(0), at(0)]);
    assert_eq!(take_all(&mut order), [2, 3, 0, 4, 5, 1]);
    let mut order = filled(ranked(1, false), &[at(-1), at(0), at(1)]);
    assert_eq!(take_all(&mut order), [0, 1, 2], "always the oldest");
}

#[test]
fn raised_slot_keeps_its_age() {
    let mut order = filled(ranked(2, false), &[at(-100), at(-100), at(0)]);
    order.raise(0, 0);
    assert_eq!(take_all(&mut order), [2, 0, 1]);
}

#[test]
fn low_priority_does_not_starve_while_higher_ones_keep_coming() {
    const EVERY: u32 = 10;
    const BEFORE: u32 = 7;
    let mut order = ranked(EVERY, false);
    for slot in 0..BEFORE {
        order.push(slot, at(100));
    }
    order.push(BEFORE, at(i32::MIN));
    let hand_outs = (1..1000).find(|_| {
        let taken = order.take_first().expect("it is never empty");
        if taken != BEFORE {
            order.push_again(taken, true);
        }
        taken == BEFORE
    });
    // Each slot before it is taken and queued again with a new age: the first hand-out by age is
    // this slot.
    assert_eq!(hand_outs, Some(EVERY));

    // If the slots before it have a low priority too, the hand-outs by age serve them first: this
    // reaches the bound.
    let mut order = filled(ranked(EVERY, false), &[at(-5); BEFORE as usize]);
    order.push(BEFORE, at(-6));
    order.push(BEFORE + 1, at(0));
    let hand_outs = (1..1000).find(|_| {
        let taken = order.take_first().expect("it is never empty");
        if taken == BEFORE + 1 {
            order.push_again(taken, true);
        }
        taken == BEFORE
    });
    assert_eq!(hand_outs, Some(EVERY * (BEFORE + 1)));
}

#[test]
fn dimensions_take_turns() {
    let mut order = filled(ranked(0, true), &[of(1), of(1), of(1), of(2), of(3), of(2)]);
    assert_eq!(take_all(&mut order), [0, 3, 4, 1, 5, 2]);
}

#[test]
fn new_dimension_takes_its_turn_after_the_others() {
    let mut order = filled(ranked(0, true), &[of(1), of(1), of(2), of(2)]);
    assert_eq!(order.take_first(), Some(0));
    order.push(4, of(3));
    assert_eq!(take_all(&mut order), [2, 1, 4, 3]);
}

#[test]
fn dimensions_take_turns_only_within_a_priority() {
    let rank = |priority, dimension| Rank { priority, dimension };
    let ranks = [rank(0, 1), rank(0, 2), rank(5, 1), rank(5, 1), rank(5, 2)];
    assert_eq!(take_all(&mut filled(ranked(0, true), &ranks)), [2, 4, 3, 0, 1]);
}

#[test]
fn hand_outs_of_two_busy_dimensions_differ_by_no_more_than_one() {
    let mut order = ranked(0, true);
    let queued = |order: &mut Order, dimension: u64, number: u32| {
        let first = u32::try_from(dimension * 1000).expect("small");
        (first..first + number).for_each(|slot| order.push(slot, of(dimension)));
    };
    // Dimension 1 has queued 100 times as many slots as dimension 3, and before it.
    queued(&mut order, 1, 900);
    queued(&mut order, 2, 300);
    queued(&mut order, 3, 9);
    let mut taken = [0; 4];
    for _ in 0..27 {
        let slot = order.take_first().expect("all three are busy");
        taken[slot as usize / 1000] += 1;
        let (least, most) = (taken[1..].iter().min(), taken[1..].iter().max());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{taken:?}");
    }
    assert_eq!(taken, [0, 9, 9, 9]);
}

#[test]
fn steady_use_does_not_grow_memory() {
    let mut order = ranked(4, true);
    for round in 0..10_000_u32 {
        let rank = Rank { priority: (round % 5).cast_signed(), dimension: u64::from(round % 3) };
        order.push(round % 4, rank);
        if round >= 3 {
            order.take_first();
            if let Some(slot) = order.take_first() {
                order.push_again(slot, true);
            }
            order.take_first();
        }
        while order.len() > 2 {
            order.take_first();
        }
        if order.len() == 2 {
            take_all(&mut order);
        }
    }
    let Order::Ranked(ranked) = order else { panic!("it has a ranking") };
    assert!(ranked.memory() <= 8, "{}", ranked.memory());
}

#[derive(Debug, Clone)]
enum Step {
    Push(i32, u64),
    /// The n-th queued slot.
    Raise(usize, i32),
    Take,
    /// The n-th taken slot.
    Want(usize, i32),
    Again(usize, bool),
}

/// A simple model of the order: lists that it searches.
struct Model {
    ranking: Ranking,
    /// Longest queued first.
    queued: Vec<Entry>,
    taken: Vec<Entry>,
    /// The dimensions of each priority, next turn first.
    turns: BTreeMap<i32, Vec<u64>>,
    arrivals: usize,
    hand_outs: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u32,
    rank: Rank,
    wanted: Option<i32>,
    arrival: usize,
    /// The number of the last hand-out by which it must have its turn.
    bound: u32,
}

impl Model {
    fn turn(&self, rank: Rank) -> u64 {
        if self.ranking.fair { rank.dimension } else { 0 }
    }

    fn join(&mut self, mut entry: Entry) -> Entry {
        self.arrivals += 1;
        entry.arrival = self.arrivals;
        let turn = self.turn(entry.rank);
        let turns = self.turns.entry(entry.rank.priority).or_default();
        if !turns.contains(&turn) {
            turns.push(turn);
        }
        entry
    }

    fn push(&mut self, entry: Entry) {
        let mut entry = self.join(Entry { wanted: None, ..entry });
        let before = u32::try_from(self.queued.len()).expect("small");
        if let Some(every) = self.ranking.oldest_every {
            entry.bound = self.hand_outs + every.get() * (before + 1);
        }
        self.queued.push(entry);
    }

    fn leave(&mut self, place: usize, served: bool) -> Entry {
        let entry = self.queued.remove(place);
        let turn = self.turn(entry.rank);
        let same = |other: &Entry| {
            other.rank.priority == entry.rank.priority && self.turn(other.rank) == turn
        };
        let others = self.queued.iter().any(same);
        let turns = self.turns.get_mut(&entry.rank.priority).expect("it was queued there");
        if !others || served {
            turns.retain(|&other| other != turn);
        }
        if others && served {
            turns.push(turn);
        }
        entry
    }

    fn take(&mut self, tally: &Tally) -> Option<u32> {
        if self.queued.is_empty() {
            return None;
        }
        self.hand_outs += 1;
        let every = self.ranking.oldest_every.map_or(u32::MAX, NonZeroU32::get);
        let place = if self.hand_outs.is_multiple_of(every) {
            0
        } else {
            let top = self.queued.iter().map(|entry| entry.rank.priority).max()?;
            let turn = self.turns[&top][0];
            tally.count("took turns", usize::from(self.turns[&top].len() > 1));
            let mine = |entry: &Entry| entry.rank.priority == top && self.turn(entry.rank) == turn;
            let places = (0..self.queued.len()).filter(|&place| mine(&self.queued[place]));
            places.min_by_key(|&place| self.queued[place].arrival)?
        };
        tally.count("oldest first", usize::from(self.hand_outs.is_multiple_of(every)));
        let entry = self.leave(place, true);
        assert!(self.hand_outs <= entry.bound, "it waited for longer than the bound");
        self.taken.push(entry);
        Some(entry.slot)
    }
}

fn apply(step: &Step, order: &mut Order, model: &mut Model, tally: &Tally) {
    match *step {
        Step::Push(priority, dimension) => {
            let used = |slot: &u32| {
                model.queued.iter().chain(&model.taken).any(|entry| entry.slot == *slot)
            };
            let slot =
                (0..1000).find(|slot| !used(slot)).expect("fewer than 1,000 slots are in use");
            let rank = Rank { priority, dimension };
            order.push(slot, rank);
            model.push(Entry { slot, rank, wanted: None, arrival: 0, bound: u32::MAX });
        }
        Step::Raise(nth, priority) if nth < model.queued.len() => {
            let Entry { slot, rank, .. } = model.queued[nth];
            let raised = priority > rank.priority;
            assert_eq!(order.raise(slot, priority), raised.then_some(rank.priority));
            tally.count("raised", usize::from(raised));
            if raised {
                let mut entry = model.leave(nth, false);
                entry.rank.priority = priority;
                let entry = model.join(entry);
                model.queued.insert(nth, entry);
            }
        }
        Step::Take => {
            let first = order.first();
            tally.record_outcome(|| format!("{first:?}"));
            assert_eq!(order.take_first(), first);
            assert_eq!(first, model.take(tally));
        }
        Step::Want(nth, priority) if nth < model.taken.len() => {
            let entry = &mut model.taken[nth];
            entry.wanted = entry.wanted.max(Some(priority));
            order.want(entry.slot, priority);
        }
        Step::Again(nth, unfinished) if nth < model.taken.len() => {
            let mut entry = model.taken.remove(nth);
            tally.count("queued again", usize::from(entry.wanted.is_some() || unfinished));
            if entry.wanted.is_some() || unfinished {
                let had = unfinished.then_some(entry.rank.priority);
                entry.rank.priority = entry.wanted.max(had).expect("`wanted` or `had` is set");
                order.push_again(entry.slot, unfinished);
                model.push(entry);
            }
        }
        Step::Raise(..) | Step::Want(..) | Step::Again(..) => {}
    }
}

/// Runs a schedule under one ranking.
fn run(ranking: Ranking, steps: &[Step], tally: &Tally) {
    tally.record_step(|| format!("{ranking:?}"));
    let mut order = Order::new(Some(ranking));
    let (queued, taken, turns) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut model = Model { ranking, queued, taken, turns, arrivals: 0, hand_outs: 0 };
    for step in steps {
        tally.record_step(|| format!("{step:?}"));
        apply(step, &mut order, &mut model, tally);
        let queued = model.queued.len();
        assert_eq!((order.len(), order.is_empty()), (queued, queued == 0));
        for entry in model.queued.iter().chain(&model.taken) {
            assert_eq!(order.priority(entry.slot), entry.rank.priority);
        }
    }
}

#[test]
fn any_schedule_matches_searched_lists() {
    let step = prop_oneof![
        12 => (-1..2, 0..3_u64).prop_map(|(priority, of)| Step::Push(priority, of)),
        3 => (0..12_usize, -2..4).prop_map(|(nth, priority)| Step::Raise(nth, priority)),
        10 => Just(Step::Take),
        3 => (0..4_usize, -3..4).prop_map(|(nth, priority)| Step::Want(nth, priority)),
        4 => (0..4_usize, 0..2_u8).prop_map(|(nth, again)| Step::Again(nth, again == 1)),
    ];
    // Each schedule runs under each ranking.
    let least = &[
        ("raised", 1_000),
        ("oldest first", 3_000),
        ("took turns", 1_000),
        ("queued again", 3_000),
    ];
    Schedules { step, longest: 150, least }.check(|steps, tally| {
        for (oldest_every, fair) in (0..4).flat_map(|every| [(every, false), (every, true)]) {
            let oldest_every = NonZeroU32::new(oldest_every);
            run(Ranking { by_priority: true, oldest_every, fair }, steps, tally);
        }
    });
}
