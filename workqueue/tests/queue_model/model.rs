//! A simple model of the queue: the items that must be queued, held and delayed.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_workqueue::Unfinished;
use tokio::time::Instant;

/// The options of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Enables priorities.
    pub(crate) priorities: bool,
    /// Every n-th hand-out is the oldest item; 0 disables ageing.
    pub(crate) oldest_every: u32,
    /// Enables fairness between odd and even items.
    pub(crate) fair: bool,
}

pub(crate) struct Model {
    options: Options,
    /// Queued items, in the order in which they were queued.
    queue: Vec<Queued>,
    /// Dimensions that take turns at each priority, in order.
    turns: BTreeMap<i32, Vec<u8>>,
    held: BTreeMap<u8, Held>,
    /// Delays by item and kind; an item has at most one of each kind.
    pub(crate) delayed: BTreeMap<(u8, Kind), Delayed>,
    /// Number of times that each item was given back since it was last done.
    given_back: BTreeMap<u8, u32>,
    pub(crate) failures: BTreeMap<u8, u32>,
    pub(crate) shut_down: bool,
    arrivals: usize,
    hand_outs: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Queued {
    pub(crate) item: u8,
    pub(crate) priority: i32,
    /// Sequence number of its arrival at this priority.
    arrival: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// Priority at which the item was taken.
    priority: i32,
    /// Highest priority at which the item was added while held.
    wanted: Option<i32>,
    handed_back: bool,
}

/// The kinds of delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Ended by an add or a cancel.
    Delay,
    /// Ended by a cancel.
    Schedule,
    /// The item was given back repeatedly. Ended by an add.
    Rest,
}

/// A delayed item, ordered by due time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delayed {
    due: Instant,
    arrival: usize,
    priority: i32,
}

/// State of an item after it was finished or given back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Released {
    Queued,
    /// Delayed, because it was given back repeatedly.
    Resting,
    Gone,
    /// Gone, because a drain has already handed it back.
    HandedBack,
}

/// Effect of an add.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Added {
    Queued,
    Raised,
    Merged,
    /// The item is held; it is queued when it is returned.
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
            given_back: BTreeMap::new(),
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

    /// Adds an item and ends its delay, at the higher of both priorities. Returns true as second
    /// field if there was a delay.
    pub(crate) fn add(&mut self, item: u8, priority: i32) -> (Added, bool) {
        let ended = [Kind::Delay, Kind::Rest].map(|kind| self.delayed.remove(&(item, kind)));
        let ended: Vec<Delayed> = ended.into_iter().flatten().collect();
        let wanted = ended.iter().fold(priority, |most, delayed| most.max(delayed.priority));
        (self.enqueue(item, if self.options.priorities { wanted } else { 0 }), !ended.is_empty())
    }

    /// Ends the delays that a cancel ends. Returns true if there was one.
    pub(crate) fn cancel(&mut self, item: u8) -> bool {
        let ended = [Kind::Delay, Kind::Schedule].map(|kind| self.delayed.remove(&(item, kind)));
        ended.iter().any(Option::is_some)
    }

    /// Returns true if the item has a deadline that an add leaves in place.
    pub(crate) fn is_scheduled(&self, item: u8) -> bool {
        self.delayed.contains_key(&(item, Kind::Schedule))
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

    /// Delays an item. Returns true if this moves an existing delay to an earlier time.
    pub(crate) fn delay(&mut self, item: u8, kind: Kind, priority: i32, due: Instant) -> bool {
        if self.shut_down {
            return false;
        }
        self.arrivals += 1;
        let new = Delayed { due, arrival: self.arrivals, priority };
        let known = self.delayed.entry((item, kind)).or_insert(new);
        let earlier = due < known.due;
        known.due = known.due.min(due);
        known.priority = known.priority.max(priority);
        earlier
    }

    /// Returns true if the next hand-out must be the oldest item.
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

    pub(crate) fn release(&mut self, item: u8, unfinished: bool, now: Instant) -> Released {
        let held = self.held.remove(&item).expect("it is held");
        if held.handed_back {
            return Released::HandedBack;
        }
        let before = self.given_back.insert(item, 0).unwrap_or(0);
        if unfinished {
            self.given_back.insert(item, before + 1);
        }
        if unfinished && before > 0 && held.wanted.is_none() && !self.shut_down {
            let rest = Duration::from_millis(5) * 2_u32.pow((before - 1).min(18));
            self.delay(item, Kind::Rest, held.priority, now + rest.min(Duration::from_secs(1000)));
            return Released::Resting;
        }
        let Some(priority) = held.wanted.max(unfinished.then_some(held.priority)) else {
            return Released::Gone;
        };
        let queued = self.join(item, priority);
        self.queue.push(queued);
        Released::Queued
    }

    /// Queues the due items in order and returns their number.
    pub(crate) fn come_due(&mut self, now: Instant) -> usize {
        if self.shut_down {
            return 0;
        }
        let due = self.delayed().into_iter().take_while(|key| self.delayed[key].due <= now);
        let due: Vec<(u8, Kind)> = due.collect();
        for key in &due {
            let delayed = self.delayed.remove(key).expect("it is delayed");
            self.enqueue(key.0, if self.options.priorities { delayed.priority } else { 0 });
        }
        due.len()
    }

    /// Returns the delays, ordered by due time.
    fn delayed(&self) -> Vec<(u8, Kind)> {
        let mut delayed: Vec<(u8, Kind)> = self.delayed.keys().copied().collect();
        delayed.sort_by_key(|key| self.delayed[key]);
        delayed
    }

    pub(crate) fn hand_back(&mut self) -> Unfinished<u8> {
        let held = self.held.iter_mut().filter(|(_, held)| !held.handed_back);
        let held = held.map(|(item, held)| {
            held.handed_back = true;
            *item
        });
        let held = held.collect();
        let mut delayed: Vec<u8> = Vec::new();
        for (item, _) in self.delayed() {
            if !delayed.contains(&item) {
                delayed.push(item);
            }
        }
        self.delayed.clear();
        let mut queued = Vec::new();
        while let Some(taken) = self.take() {
            self.held.remove(&taken.item);
            queued.push(taken.item);
        }
        Unfinished { held, queued, delayed }
    }
}
