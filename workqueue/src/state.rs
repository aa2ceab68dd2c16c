//! Which item is where: queued, held, or held and wanted again. Pure: no lock, no clock, no waker.
//!
//! An item lives in one slot from its first `add` until it is done, and is hashed once for that whole
//! cycle: the order of queued items and the guards that workers hold name the slot, not the item. The
//! caller computes the hash, so that this can happen outside of its lock.

use std::mem;

use hashbrown::HashTable;

use crate::order::{Order, Rank, Ranking};

/// Names the slot of an item that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held(u32);

/// The slot of an item that was searched, if it has one, and its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    hash: u64,
    slot: Option<u32>,
}

/// An item that was taken, to be worked on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken<T> {
    pub(crate) held: Held,
    pub(crate) item: T,
    /// That at which it was queued.
    pub(crate) priority: i32,
}

/// What became of an item that was added.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added<T> {
    /// It can be taken now, from this slot: one worker is worth waking.
    Queued(u32),
    /// It is held in this slot, and was not asked for since. As in all that follow, the item is returned
    /// so that it can be dropped outside of a lock.
    Wanted(u32, T),
    /// It was asked for already, at a lower priority, and is now at this one, or is when it is returned.
    Raised { from: i32, item: T },
    /// It was asked for already.
    Merged(T),
}

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queued,
    Held {
        /// Whether it is queued when it is done.
        again: bool,
    },
}

/// What became of an item that its worker returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released<T> {
    /// It can be taken again: one worker is worth waking. If it was asked for while it was held, this is
    /// at which priority.
    Requeued { wanted: Option<i32> },
    /// It is gone; the item is returned so that it can be dropped outside of a lock.
    Gone(Option<T>),
}

/// The queue itself: every item at most once queued and at most once held, never both.
pub(crate) struct State<T> {
    /// Item → slot, for every slot in use. Never names a vacant slot.
    index: HashTable<u32>,
    /// Slots by number. A slot keeps its number as long as it is in use.
    slots: Vec<Slot<T>>,
    /// The vacant slots, each once.
    vacant: Vec<u32>,
    /// The slots in phase `Queued`, each once.
    order: Order,
    /// How many slots are held: `Processing`, `Dirty` or `HandedBack`.
    held: usize,
    /// The most slots that were in use at once since the last `trim`.
    peak: usize,
}

/// So many slots are kept however few are used: their memory is not worth the trouble.
const SLOTS_KEPT: usize = 1024;

/// A burst's memory goes when fewer than one in so many slots were used since.
const SLOTS_PER_USED: usize = 8;

/// The phase stands beside the item, so that the item stays where it is while the phase changes.
struct Slot<T> {
    hash: u64,
    /// `None` only in a vacant slot.
    item: Option<T>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// In `vacant`. Left by `add`.
    Vacant,
    /// In `order`. Left by `take` (→ `Processing`) and `take_queued` (→ `Vacant`).
    Queued,
    /// A worker holds it. Left by `add` (→ `Dirty`), `done` (→ `Vacant`), `give_back` (→ `Queued`)
    /// and `hand_back_held` (→ `HandedBack`).
    Processing,
    /// A worker holds it and it was added since. Left by `done` and `give_back` (→ `Queued`) and
    /// `hand_back_held` (→ `HandedBack`).
    Dirty,
    /// A worker holds it, but a drain gave up on it. Left by `done` and `give_back` (→ `Vacant`).
    HandedBack,
}

// === impl Held ===

impl Held {
    pub(crate) fn slot(self) -> u32 {
        self.0
    }
}

// === impl Phase ===

impl Phase {
    /// Where an item in this phase is, unless it counts no longer.
    fn place(self) -> Option<Place> {
        match self {
            Self::Vacant | Self::HandedBack => None,
            Self::Queued => Some(Place::Queued),
            Self::Processing => Some(Place::Held { again: false }),
            Self::Dirty => Some(Place::Held { again: true }),
        }
    }
}

// === impl State ===

impl<T> State<T> {
    /// Makes an empty one: without a ranking, first come is first served.
    pub(crate) fn new(ranking: Option<Ranking>) -> Self {
        Self::with(Order::new(ranking))
    }

    fn with(order: Order) -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            order,
            held: 0,
            peak: 0,
        }
    }

    /// How many items wait to be taken.
    pub(crate) fn queued(&self) -> usize {
        self.order.len()
    }

    /// How many items were taken and not yet returned.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Whether nothing waits and nothing is held.
    pub(crate) fn is_idle(&self) -> bool {
        self.order.is_empty() && self.held == 0
    }

    /// The priority at which what is in this slot is queued or was taken.
    pub(crate) fn priority(&self, slot: u32) -> i32 {
        self.order.priority(slot)
    }

    /// The priority of each request that no worker has taken yet: what is queued, and what is to be queued
    /// when its worker is done.
    pub(crate) fn requests(&self) -> impl Iterator<Item = i32> {
        self.items().filter_map(|(slot, place, _)| match place {
            Place::Queued => Some(self.order.priority(slot)),
            Place::Held { again } => again.then(|| self.order.wanted(slot)),
        })
    }

    /// All items and their slots, but for those that were handed back; in no order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (u32, Place, &T)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(number, slot)| Some((number, slot.phase.place()?, slot.item.as_ref()?)))
    }

    /// Gives up the memory of a burst, if this is idle: to be called whenever it is.
    ///
    /// What is returned is to be dropped outside of a lock: that takes a while. The first idle moment
    /// after a burst keeps its memory, so that bursts which follow each other need no new one.
    pub(crate) fn trim(&mut self) -> Option<Self> {
        if !self.is_idle() {
            return None;
        }
        let peak = mem::take(&mut self.peak);
        let kept = SLOTS_KEPT.max(peak.saturating_mul(SLOTS_PER_USED));
        (self.slots.len() > kept).then(|| mem::replace(self, Self::with(self.order.fresh())))
    }

    /// The worker has finished: the item goes, or is queued again if it was added meanwhile.
    #[inline]
    pub(crate) fn done(&mut self, held: Held) -> Released<T> {
        self.release(held, false)
    }

    /// The worker has not finished: the item is queued again, unless a drain has handed it back.
    pub(crate) fn give_back(&mut self, held: Held) -> Released<T> {
        self.release(held, true)
    }

    #[inline]
    fn release(&mut self, Held(number): Held, unfinished: bool) -> Released<T> {
        let slot = &mut self.slots[number as usize];
        let (again, wanted) = match slot.phase {
            Phase::Processing => (unfinished, None),
            Phase::Dirty => (true, Some(self.order.wanted(number))),
            Phase::HandedBack => (false, None),
            // Cannot be: a `Held` exists once for each slot that is held. No assertion, because this
            // runs in a `Drop`, and a panic while another one unwinds would hide that by an abort.
            Phase::Vacant | Phase::Queued => return Released::Requeued { wanted: None },
        };
        self.held -= 1;
        if again {
            slot.phase = Phase::Queued;
            self.order.push_again(number, unfinished);
            Released::Requeued { wanted }
        } else {
            Released::Gone(self.vacate(number))
        }
    }

    /// Forgets a slot, and returns its item.
    #[inline]
    fn vacate(&mut self, number: u32) -> Option<T> {
        let slot = &mut self.slots[number as usize];
        slot.phase = Phase::Vacant;
        let item = slot.item.take();
        if let Ok(entry) = self.index.find_entry(slot.hash, |&other| other == number) {
            entry.remove();
        }
        self.vacant.push(number);
        item
    }

    /// Takes out all that is queued, in the order in which it would have been handed out.
    pub(crate) fn take_queued(&mut self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.order.len());
        while let Some(number) = self.order.take_first() {
            items.extend(self.vacate(number));
        }
        items
    }
}

impl<T: Clone> State<T> {
    /// Hands out the item whose turn it is.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Taken<T>> {
        let number = self.order.first()?;
        let slot = &mut self.slots[number as usize];
        // A clone, because adds compare with what is here while a worker has it. One shared cell per slot
        // that is held (reused, so that nothing is allocated) took four atomic steps, twice as long as to
        // clone a `String` of 40 bytes, and for an `Arc<str>` a clone allocates nothing either.
        // Cloned before anything changes: a `Clone` that panics costs nothing but this call.
        let item = slot.item.clone().expect("the order names queued slots");
        slot.phase = Phase::Processing;
        self.order.take_first();
        self.held += 1;
        let priority = self.order.priority(number);
        Some(Taken { held: Held(number), item, priority })
    }

    /// Copies what is held, by the order of slots, and gives up on it: it is not queued again.
    ///
    /// What an earlier call returned is not returned again.
    pub(crate) fn hand_back_held(&mut self) -> Vec<T> {
        let held =
            |(_, place, item): (u32, Place, &T)| (place != Place::Queued).then(|| item.clone());
        // Cloned before anything changes, as in `take`.
        let items = self.items().filter_map(held).collect();
        for slot in &mut self.slots {
            if let Phase::Processing | Phase::Dirty = slot.phase {
                slot.phase = Phase::HandedBack;
            }
        }
        items
    }
}

impl<T: Eq> State<T> {
    /// Searches an item; `hash` is its hash, always by the same hasher.
    #[inline]
    pub(crate) fn find(&self, hash: u64, item: &T) -> Found {
        let found = self.index.find(hash, |&number| {
            let slot = &self.slots[number as usize];
            // The hash first: to look at another item costs more.
            slot.hash == hash && slot.item.as_ref() == Some(item)
        });
        Found { hash, slot: found.copied() }
    }
}

impl<T> State<T> {
    /// Asks for the item to be handed out that was just [searched](Self::find).
    ///
    /// Apart from that, because an `Eq` may panic: the caller compares before it changes anything.
    #[inline]
    pub(crate) fn add(&mut self, found: Found, item: T, rank: Rank) -> Added<T> {
        let Some(number) = found.slot else {
            return Added::Queued(self.insert(found.hash, item, rank));
        };
        let phase = &mut self.slots[number as usize].phase;
        match phase {
            Phase::Queued => {
                if let Some(from) = self.order.raise(number, rank.priority) {
                    return Added::Raised { from, item };
                }
            }
            Phase::Dirty => {
                if let Some(from) = self.order.want(number, rank.priority) {
                    return Added::Raised { from, item };
                }
            }
            Phase::Processing => {
                *phase = Phase::Dirty;
                self.order.want(number, rank.priority);
                return Added::Wanted(number, item);
            }
            Phase::HandedBack | Phase::Vacant => {}
        }
        Added::Merged(item)
    }

    #[inline]
    fn insert(&mut self, hash: u64, item: T, rank: Rank) -> u32 {
        let slot = Slot { hash, item: Some(item), phase: Phase::Queued };
        let number = if let Some(number) = self.vacant.pop() {
            self.slots[number as usize] = slot;
            number
        } else {
            let number = u32::try_from(self.slots.len()).expect("memory ends before 2^32 items");
            self.slots.push(slot);
            number
        };
        let slots = &self.slots;
        self.index.insert_unique(hash, number, |&other| slots[other as usize].hash);
        self.peak = self.peak.max(self.index.len());
        self.order.push(number, rank);
        number
    }
}

#[cfg(test)]
mod tests;
