//! What is to be queued later: each item once, at the earliest time that was asked. Pure.
//!
//! A heap whose entries know their slot, and slots that know their place in the heap: an item that moves
//! to an earlier time or goes moves or goes in the heap, too, so that the heap is never larger than the
//! number of items. (A heap that forgets lazily is a little faster to insert into, but a key that is
//! delayed again and again grows it.)

use std::time::Duration;

use hashbrown::HashTable;
use tokio::time::Instant;

use crate::request::Request;

/// Longer than any process lives, and far from where adding to an [`Instant`] panics (tokio's timer
/// adds up to a millisecond itself).
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// When a delay that starts `now` is over; any `Duration` is fine.
pub(crate) fn deadline_after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(CENTURY)).unwrap_or(now)
}

/// What became of an item that was delayed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delayed<T> {
    /// It is new or moved to an earlier time, and nothing is due before it.
    Next(Option<T>),
    /// Something else is due before it, or it was waiting for an earlier time already.
    Later(Option<T>),
}

/// Items and the time at which each is due; of several times for one item the earliest counts.
pub(crate) struct Delays<T> {
    /// Item → slot, for every slot in use.
    index: HashTable<u32>,
    /// Slots by number; `None` is vacant.
    slots: Vec<Option<Slot<T>>>,
    /// The vacant slots, each once.
    vacant: Vec<u32>,
    /// Where in the heap each slot's entry is, by the slot's number; stale for a vacant one. Apart from
    /// the slots, because entries on their way through the heap change this of many slots and nothing
    /// else.
    places: Vec<u32>,
    /// A min-heap with one entry for each slot in use.
    heap: Vec<Entry>,
    /// Orders entries that are due at the same time: first come, first served.
    arrivals: u64,
}

/// Each place of the heap has so many places below it: half as many levels as with two, and those that
/// are compared lie side by side.
const BELOW: usize = 4;

/// So many slots are kept when the last item goes: their memory is not worth the trouble.
const SLOTS_KEPT: usize = 1024;

struct Slot<T> {
    item: T,
    hash: u64,
    /// That which brought the time, but at the highest priority of all.
    request: Request,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    arrival: u64,
    slot: u32,
}

// === impl Delays ===

impl<T> Delays<T> {
    pub(crate) fn new() -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            places: Vec::new(),
            heap: Vec::new(),
            arrivals: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the first item is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.due)
    }

    /// All items, with what was asked and when they are due; in no order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&T, Request, Instant)> {
        let slots = self.heap.iter().map(|entry| (self.slots[entry.slot as usize].as_ref(), entry));
        slots.filter_map(|(slot, entry)| slot.map(|slot| (&slot.item, slot.request, entry.due)))
    }

    /// The first item and its hash, if it is due.
    pub(crate) fn first_due(&self, now: Instant) -> Option<(u64, &T)> {
        let first = self.heap.first().filter(|entry| entry.due <= now)?;
        self.slots[first.slot as usize].as_ref().map(|slot| (slot.hash, &slot.item))
    }

    /// Takes out the first item if it is due, with its hash and what was asked.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(u64, T, Request)> {
        self.first_due(now)?;
        let slot = self.remove_at(0);
        Some((slot.hash, slot.item, slot.request))
    }

    /// Takes out all items, the first due first.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.len());
        while !self.is_empty() {
            items.push(self.remove_at(0).item);
        }
        items
    }

    /// Takes out the entry at this place of the heap.
    fn remove_at(&mut self, place: usize) -> Slot<T> {
        let removed = self.heap.swap_remove(place);
        if place < self.heap.len() {
            // What was last is now here: it belongs further down, or further up.
            let place = self.sift_up(place);
            self.sift_down(place);
        }
        let slot = self.slots[removed.slot as usize].take().expect("the heap names slots in use");
        if let Ok(entry) = self.index.find_entry(slot.hash, |&other| other == removed.slot) {
            entry.remove();
        }
        self.vacant.push(removed.slot);
        if self.heap.is_empty() && self.slots.len() > SLOTS_KEPT {
            // A burst is over. All slots are vacant: no item is dropped here.
            self.slots = Vec::new();
            self.vacant = Vec::new();
            self.places = Vec::new();
            self.heap = Vec::new();
            self.index = HashTable::new();
        }
        slot
    }

    /// Moves an entry up to its place and returns that.
    fn sift_up(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / BELOW;
            let above = self.heap[parent];
            if above <= entry {
                break;
            }
            self.put(place, above);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    /// Moves an entry down to its place.
    fn sift_down(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = BELOW * place + 1;
            let children = self.heap.iter().enumerate().skip(first).take(BELOW);
            let Some((child, &least)) = children.min_by_key(|&(_, child)| child) else { break };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.slot as usize] = u32::try_from(place).expect("no more than slots");
    }

    /// Occupies a vacant slot.
    fn occupy(&mut self, slot: Slot<T>) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.slots[number as usize] = Some(slot);
            return number;
        }
        let number = u32::try_from(self.slots.len()).expect("memory ends before 2^32 items");
        self.slots.push(Some(slot));
        self.places.push(0); // put in the heap next
        number
    }
}

impl<T: Eq> Delays<T> {
    /// Delays the item until `due`, unless it is waiting for an earlier time already. Of several
    /// priorities the highest counts.
    ///
    /// A merged item comes back, so that it can be dropped outside of a lock.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        item: T,
        request: Request,
        due: Instant,
    ) -> Delayed<T> {
        let (place, merged) = if let Some(number) = self.find(hash, &item) {
            let known = self.slots[number as usize].as_mut().expect("just found");
            let rank = &mut known.request.rank;
            rank.priority = rank.priority.max(request.rank.priority);
            let place = self.places[number as usize] as usize;
            if self.heap[place].due <= due {
                return Delayed::Later(Some(item));
            }
            known.request.reason = request.reason;
            self.heap[place].due = due;
            (place, Some(item))
        } else {
            let place = self.heap.len();
            let number = self.occupy(Slot { item, hash, request });
            self.heap.push(Entry { due, arrival: self.arrivals, slot: number });
            self.arrivals += 1;
            let slots = &self.slots;
            self.index.insert_unique(hash, number, |&other| {
                slots[other as usize].as_ref().map_or(0, |slot| slot.hash)
            });
            (place, None)
        };
        if self.sift_up(place) == 0 { Delayed::Next(merged) } else { Delayed::Later(merged) }
    }

    /// Takes out an item that is wanted now, or not at all, with the priority it had.
    pub(crate) fn remove(&mut self, hash: u64, item: &T) -> Option<(T, i32)> {
        // Most queues delay nothing most of the time.
        if self.is_empty() {
            return None;
        }
        let number = self.find(hash, item)?;
        let slot = self.remove_at(self.places[number as usize] as usize);
        Some((slot.item, slot.request.rank.priority))
    }

    /// The item's slot.
    fn find(&self, hash: u64, item: &T) -> Option<u32> {
        // The hash first: to look at another item costs more.
        let is_it = |slot: &Slot<T>| slot.hash == hash && slot.item == *item;
        let slot = |number: u32| self.slots[number as usize].as_ref();
        self.index.find(hash, |&number| slot(number).is_some_and(is_it)).copied()
    }
}

#[cfg(test)]
mod tests;
