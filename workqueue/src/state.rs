//! The state of each item: queued, held, or held and added again. Pure: no lock, no clock, no
//! waker.
//!
//! An item stays in one slot from its first `add` until it is done, and is hashed once for this
//! whole cycle: the order and the guards of workers refer to the slot, not to the item. The caller
//! computes the hash, outside of its lock.
//!
//! Promises: an item has at most one slot, so that two workers never hold it at the same time; an
//! `add` of a held item is remembered in its phase until the worker returns it, so that no request
//! is lost. client-go has a `dirty` and a `processing` set instead. With slots, each step changes
//! one phase, and `take` and `done` compare and hash no item.
//!
//! ```text
//!            add                take                 done, rest
//!  Vacant ──────────▶ Queued ──────────▶ Processing ──────────▶ Vacant
//!                       ▲                    │  │
//!                       │     give_back      │  │ add
//!                       ├────────────────────┘  ▼
//!                       └──────────────────── Dirty
//!                          done, give_back
//! ```
//!
//! A drain moves `Processing` and `Dirty` to `HandedBack`, from which `done` and `give_back` lead
//! to `Vacant`.

use std::mem;

use hashbrown::HashTable;

use crate::cause::Merge;
use crate::inspect::Operation;
use crate::order::{Order, Ranking};
use crate::request::Request;

mod add;
mod slot;

use self::slot::{Phase, Slot};

pub(crate) use self::add::Found;
pub(crate) use self::slot::{Added, Held, Place, Released, Taken};

/// The queue itself: each item is queued at most once or held at most once, never both.
///
/// The queue's lock protects it. The index names exactly the slots that are not vacant.
pub(crate) struct State<T, C> {
    /// Maps an item to its slot, for each slot in use.
    index: HashTable<u32>,
    /// Slots by number. A slot in use keeps its number.
    slots: Vec<Slot<T, C>>,
    /// The vacant slots, each once.
    vacant: Vec<u32>,
    /// The slots in phase `Queued`, each once.
    order: Order,
    /// The number of held slots: `Processing`, `Dirty` or `HandedBack`.
    held: usize,
    /// The largest number of slots in use since the last `trim`.
    peak: usize,
}

/// The number of slots whose memory is always kept.
const SLOTS_KEPT: usize = 1024;

/// The memory of a burst is released when fewer than one in 8 slots were used since.
const SLOTS_PER_USED: usize = 8;

// === impl State ===

impl<T, C> State<T, C> {
    /// Creates an empty state; without a ranking it is FIFO.
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

    /// Returns the number of queued items.
    pub(crate) fn queued(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of held items.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns true if no item is queued or held.
    pub(crate) fn is_idle(&self) -> bool {
        self.order.is_empty() && self.held == 0
    }

    /// Returns the priority at which the item in this slot is queued or was taken.
    pub(crate) fn priority(&self, slot: u32) -> i32 {
        self.order.priority(slot)
    }

    /// Returns the priority of each request that no worker has taken yet: the queued items, and the
    /// held items that were added again.
    pub(crate) fn requests(&self) -> impl Iterator<Item = i32> {
        self.items().filter_map(|(slot, place, _)| match place {
            Place::Queued => Some(self.order.priority(slot)),
            Place::Held { again } => again.then(|| self.order.wanted(slot)),
        })
    }

    /// Returns all items with their slots, except those that a drain has returned, in no particular
    /// order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (u32, Place, &T)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(number, slot)| Some((number, slot.phase.place()?, slot.item.as_ref()?)))
    }

    /// Releases the memory of a burst if the state is idle. The caller calls this each time it
    /// becomes idle.
    ///
    /// The caller drops the returned state outside of a lock, because that takes time. The first
    /// call after a burst keeps the memory, so that consecutive bursts do not allocate again.
    ///
    /// A state of at most 1,024 slots keeps its memory. A larger one releases it when it becomes
    /// idle and has used less than an eighth of its slots since the previous call.
    pub(crate) fn trim(&mut self) -> Option<Self> {
        if !self.is_idle() {
            return None;
        }
        let peak = mem::take(&mut self.peak);
        let kept = SLOTS_KEPT.max(peak.saturating_mul(SLOTS_PER_USED));
        (self.slots.len() > kept).then(|| mem::replace(self, Self::with(self.order.fresh())))
    }

    /// Finishes an item: removes it, or queues it again if it was added while held.
    ///
    /// An item that is queued again starts with a count of 0: it was finished, and the pending
    /// request is a new one.
    #[inline]
    pub(crate) fn done(&mut self, held: Held) -> Released<T, C> {
        let slot = &mut self.slots[held.0 as usize];
        match mem::replace(&mut slot.phase, Phase::Vacant) {
            Phase::Dirty(cause) => {
                slot.given_back = 0;
                self.requeue(held, true, false, cause)
            }
            Phase::Processing | Phase::HandedBack => self.remove(held, None),
            phase @ (Phase::Vacant | Phase::Queued(_)) => Self::misuse(slot, phase),
        }
    }

    /// Queues an unfinished item again with the worker's cause, unless a drain has returned it.
    ///
    /// It counts the return, which determines the delay of the next one. The worker's cause is the
    /// earlier of the two: the causes of adds since the hand-out are merged into it.
    pub(crate) fn give_back(
        &mut self,
        held: Held,
        mut cause: C,
        merge: &mut Merge<C>,
    ) -> Released<T, C> {
        let slot = &mut self.slots[held.0 as usize];
        slot.given_back = slot.given_back.saturating_add(1);
        match mem::replace(&mut slot.phase, Phase::Vacant) {
            Phase::Processing => self.requeue(held, false, true, cause),
            Phase::Dirty(later) => {
                merge.merge(&mut cause, later);
                self.requeue(held, true, true, cause)
            }
            Phase::HandedBack => self.remove(held, Some(cause)),
            phase @ (Phase::Vacant | Phase::Queued(_)) => Self::misuse(slot, phase),
        }
    }

    /// Returns the number of times that a held item was given back since it was last done. `None`
    /// if it was added while held, or if a drain has returned it.
    pub(crate) fn given_back(&self, held: Held) -> Option<u32> {
        let slot = &self.slots[held.0 as usize];
        matches!(slot.phase, Phase::Processing).then_some(slot.given_back)
    }

    /// Returns the hash and the item of a held slot.
    pub(crate) fn item(&self, held: Held) -> Option<(u64, &T)> {
        let slot = &self.slots[held.0 as usize];
        slot.item.as_ref().map(|item| (slot.hash, item))
    }

    /// Takes out an unfinished item, so that the caller can delay it. Returns its hash, the item,
    /// and the request with which it is queued later.
    ///
    /// The slot is free afterwards, and the item exists only in the caller's hands. The request
    /// keeps the count of returns, so that the next delay is longer.
    pub(crate) fn rest(&mut self, held: Held, cause: C) -> Option<(u64, T, Request<C>)> {
        let slot = &mut self.slots[held.0 as usize];
        let (hash, given_back) = (slot.hash, slot.given_back.saturating_add(1));
        slot.phase = Phase::Vacant;
        let rank = self.order.rank(held.0);
        self.held -= 1;
        let request = Request { rank, operation: Operation::GiveBack, cause, given_back };
        self.vacate(held.0).map(|item| (hash, item, request))
    }

    /// Moves a held slot to `Queued`. The phase of the slot is already taken out.
    #[inline]
    fn requeue(
        &mut self,
        Held(number): Held,
        is_wanted: bool,
        unfinished: bool,
        cause: C,
    ) -> Released<T, C> {
        let wanted = is_wanted.then(|| self.order.wanted(number));
        self.held -= 1;
        self.slots[number as usize].phase = Phase::Queued(cause);
        self.order.push_again(number, unfinished);
        Released::Requeued { wanted }
    }

    /// Frees a held slot. The caller drops the item and the cause.
    #[inline]
    fn remove(&mut self, Held(number): Held, cause: Option<C>) -> Released<T, C> {
        self.held -= 1;
        Released::Gone(self.vacate(number), cause)
    }

    /// Unreachable: there is one `Held` per held slot. It does not panic, because it runs in a
    /// `Drop`, and a panic during unwinding aborts the process.
    #[cold]
    fn misuse(slot: &mut Slot<T, C>, phase: Phase<C>) -> Released<T, C> {
        slot.phase = phase;
        Released::Requeued { wanted: None }
    }

    /// Frees a slot whose phase is already `Vacant`, and returns its item.
    #[inline]
    fn vacate(&mut self, number: u32) -> Option<T> {
        let slot = &mut self.slots[number as usize];
        let item = slot.item.take();
        if let Ok(entry) = self.index.find_entry(slot.hash, |&other| other == number) {
            entry.remove();
        }
        self.vacant.push(number);
        item
    }

    /// Takes out all queued items, in hand-out order.
    pub(crate) fn take_queued(&mut self) -> Vec<(T, C)> {
        let mut items = Vec::with_capacity(self.order.len());
        while let Some(number) = self.order.take_first() {
            let slot = &mut self.slots[number as usize];
            let phase = mem::replace(&mut slot.phase, Phase::Vacant);
            if let (Some(item), Phase::Queued(cause)) = (self.vacate(number), phase) {
                items.push((item, cause));
            }
        }
        items
    }
}

impl<T: Clone, C> State<T, C> {
    /// Takes the next item.
    ///
    /// # Panics
    ///
    /// If the item's `Clone` panics; the state is then unchanged.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Taken<T, C>> {
        let number = self.order.first()?;
        let slot = &mut self.slots[number as usize];
        // A clone, because adds compare with the item in the slot while a worker holds it. A shared
        // cell per held slot, even if reused, costs four atomic operations, which is twice as slow
        // as cloning a `String` of 40 bytes; cloning an `Arc<str>` does not allocate either. The
        // clone comes before any change, so that a panic of `Clone` changes nothing.
        let item = slot.item.clone().expect("the order names queued slots");
        let Phase::Queued(cause) = mem::replace(&mut slot.phase, Phase::Processing) else {
            unreachable!("the order names queued slots")
        };
        self.order.take_first();
        self.held += 1;
        let priority = self.order.priority(number);
        Some(Taken { held: Held(number), item, priority, cause })
    }

    /// Copies the held items, in slot order, and marks them so that they are not queued again.
    ///
    /// An item that an earlier call returned is not returned again. The second list contains the
    /// causes of items that were added while held; the caller drops it outside of a lock.
    pub(crate) fn hand_back_held(&mut self) -> (Vec<T>, Vec<C>) {
        let held =
            |(_, place, item): (u32, Place, &T)| (place != Place::Queued).then(|| item.clone());
        // Cloned before any change, as in `take`.
        let items = self.items().filter_map(held).collect();
        let mut causes = Vec::new();
        for slot in &mut self.slots {
            if let Phase::Processing | Phase::Dirty(_) = slot.phase
                && let Phase::Dirty(cause) = mem::replace(&mut slot.phase, Phase::HandedBack)
            {
                causes.push(cause);
            }
        }
        (items, causes)
    }
}

#[cfg(test)]
mod tests;
