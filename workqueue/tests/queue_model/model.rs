//! What must be queued, held and delayed, as plainly as can be.

use std::collections::BTreeMap;

use homeostat_workqueue::Undone;
use tokio::time::Instant;

/// The options of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Whether priorities count.
    pub(crate) priorities: bool,
    /// Every so many-th hand-out is the oldest; 0 is never.
    pub(crate) oldest_every: u32,
    /// Whether odd and even items take turns.
    pub(crate) fair: bool,
}

pub(crate) struct Model {
    options: Options,
    /// In the order in which they were queued.
    queue: Vec<Queued>,
    /// Who takes turns at each priority, in their order.
    turns: BTreeMap<i32, Vec<u8>>,
    held: BTreeMap<u8, Held>,
    pub(crate) delayed: BTreeMap<u8, Delayed>,
    pub(crate) failures: BTreeMap<u8, u32>,
    pub(crate) shut_down: bool,
    arrivals: usize,
    hand_outs: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Queued {
    pub(crate) item: u8,
    pub(crate) priority: i32,
    /// When it came to this priority.
    arrival: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// That at which it was taken.
    priority: i32,
    /// The highest at which it was added since.
    wanted: Option<i32>,
    handed_back: bool,
}

/// Ordered as they come due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delayed {
    due: Instant,
    arrival: usize,
    priority: i32,
}

/// What became of an item that was returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Released {
    Queued,
    Gone,
    /// Gone, because a drain had handed it back.
    HandedBack,
}

/// What became of an item that was added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Added {
    Queued,
    Raised,
    Merged,
    /// It is held.
    Dirty,
}

// === impl Model ===

impl Model {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            queue: Vec::new(),
            turns: BTreeMap::new(),
            held: BTreeMap::new(),
            delayed: BTreeMap::new(),
            failures: BTreeMap::new(),
            shut_down: false,
            arrivals: 0,
            hand_outs: 0,
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.held.is_empty()
    }

    /// Adds now: at no lower priority than its delay had, which ends. Returns whether there was one.
    pub(crate) fn add(&mut self, item: u8, priority: i32) -> (Added, bool) {
        let delayed = self.delayed.remove(&item);
        let asked = delayed.map_or(priority, |delayed| delayed.priority.max(priority));
        (self.enqueue(item, if self.options.priorities { asked } else { 0 }), delayed.is_some())
    }

    fn enqueue(&mut self, item: u8, priority: i32) -> Added {
        if let Some(held) = self.held.get_mut(&item) {
            held.wanted = held.wanted.max(Some(priority));
            return Added::Dirty;
        }
        let Some(place) = self.queue.iter().position(|queued| queued.item == item) else {
            let queued = self.join(item, priority);
            self.queue.push(queued);
            return Added::Queued;
        };
        if self.queue[place].priority >= priority {
            return Added::Merged;
        }
        self.leave(place, false);
        let queued = self.join(item, priority);
        self.queue.insert(place, queued);
        Added::Raised
    }

    fn dimension(&self, item: u8) -> u8 {
        if self.options.fair { item % 2 } else { 0 }
    }

    fn join(&mut self, item: u8, priority: i32) -> Queued {
        self.arrivals += 1;
        let dimension = self.dimension(item);
        let turns = self.turns.entry(priority).or_default();
        if !turns.contains(&dimension) {
            turns.push(dimension);
        }
        Queued { item, priority, arrival: self.arrivals }
    }

    fn leave(&mut self, place: usize, served: bool) -> Queued {
        let left = self.queue.remove(place);
        let mine = self.dimension(left.item);
        let is_same =
            |other: &Queued| other.priority == left.priority && self.dimension(other.item) == mine;
        let others = self.queue.iter().any(is_same);
        let turns = self.turns.get_mut(&left.priority).expect("it was queued there");
        if !others || served {
            turns.retain(|&other| other != mine);
        }
        if others && served {
            turns.push(mine);
        }
        left
    }

    /// Returns whether this is earlier than the item was due.
    pub(crate) fn delay(&mut self, item: u8, priority: i32, due: Instant) -> bool {
        if self.shut_down {
            return false;
        }
        self.arrivals += 1;
        let new = Delayed { due, arrival: self.arrivals, priority };
        let known = self.delayed.entry(item).or_insert(new);
        let earlier = due < known.due;
        known.due = known.due.min(due);
        known.priority = known.priority.max(priority);
        earlier
    }

    /// Whether the next hand-out is the turn of the oldest.
    pub(crate) fn is_turn_of_oldest(&self) -> bool {
        let every = self.options.oldest_every;
        self.options.priorities && every > 0 && (self.hand_outs + 1).is_multiple_of(every)
    }

    pub(crate) fn take(&mut self) -> Option<Queued> {
        let place = if self.queue.is_empty() {
            return None;
        } else if self.is_turn_of_oldest() {
            0
        } else {
            let top = self.queue.iter().map(|queued| queued.priority).max()?;
            let turn = self.turns[&top][0];
            let mine = self.queue.iter().enumerate().filter(|(_, queued)| {
                queued.priority == top && self.dimension(queued.item) == turn
            });
            mine.min_by_key(|(_, queued)| queued.arrival)?.0
        };
        self.hand_outs += 1;
        let taken = self.leave(place, true);
        let held = Held { priority: taken.priority, wanted: None, handed_back: false };
        self.held.insert(taken.item, held);
        Some(taken)
    }

    pub(crate) fn release(&mut self, item: u8, unfinished: bool) -> Released {
        let held = self.held.remove(&item).expect("it is held");
        if held.handed_back {
            return Released::HandedBack;
        }
        let Some(priority) = held.wanted.max(unfinished.then_some(held.priority)) else {
            return Released::Gone;
        };
        let queued = self.join(item, priority);
        self.queue.push(queued);
        Released::Queued
    }

    /// Queues what is due, in order, and returns how many that were.
    pub(crate) fn come_due(&mut self, now: Instant) -> usize {
        if self.shut_down {
            return 0;
        }
        let due = self.delayed().into_iter().take_while(|item| self.delayed[item].due <= now);
        let due: Vec<u8> = due.collect();
        for item in &due {
            self.add(*item, i32::MIN);
        }
        due.len()
    }

    /// Those that are delayed, the first due first.
    fn delayed(&self) -> Vec<u8> {
        let mut delayed: Vec<u8> = self.delayed.keys().copied().collect();
        delayed.sort_by_key(|item| self.delayed[item]);
        delayed
    }

    pub(crate) fn hand_back(&mut self) -> Undone<u8> {
        let held = self.held.iter_mut().filter(|(_, held)| !held.handed_back);
        let held = held.map(|(item, held)| {
            held.handed_back = true;
            *item
        });
        let held = held.collect();
        let delayed = self.delayed();
        self.delayed.clear();
        let mut queued = Vec::new();
        while let Some(taken) = self.take() {
            self.held.remove(&taken.item);
            queued.push(taken.item);
        }
        Undone { held, queued, delayed }
    }
}
