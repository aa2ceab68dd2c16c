//! [`Heap`]: slots by deadline, the earliest first.
//!
//! Each slot knows the position of its entry. An entry whose deadline changes or that is removed is
//! moved or removed in place, so that the heap is never larger than the number of slots in use. (A
//! heap with lazy deletion inserts a little faster, but grows when a key is delayed repeatedly.)
//!
//! Invariants, which hold between two calls:
//!
//! * `entries[places[s]].slot == s` for each slot `s` that has an entry;
//! * an entry is not earlier than its parent.

use tokio::time::Instant;

/// A min-heap with at most one entry for each slot.
pub(super) struct Heap {
    entries: Vec<Entry>,
    /// The position of each slot's entry, by slot number; stale for slots without one. Separate
    /// from the slots, because moves in the heap change many positions and nothing else of the
    /// slots.
    places: Vec<u32>,
    /// The number of the next insertion. It orders entries with the same deadline: first in, first
    /// out.
    arrivals: u64,
}

/// An entry of the heap. The order of the fields is the order of the heap: by deadline, then by
/// arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    /// Unique, so that no two entries are equal and slots with one deadline stay first in, first
    /// out.
    arrival: u64,
    slot: u32,
}

/// The number of children of a position. With 4 the heap has half the levels of a binary heap, and
/// the entries to compare are adjacent.
const BELOW: usize = 4;

// === impl Heap ===

impl Heap {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), places: Vec::new(), arrivals: 0 }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Returns the slot with the earliest deadline, and the deadline.
    pub(super) fn first(&self) -> Option<(u32, Instant)> {
        self.entries.first().map(|entry| (entry.slot, entry.due))
    }

    /// Returns each slot with its deadline, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Instant)> {
        self.entries.iter().map(|entry| (entry.slot, entry.due))
    }

    /// Returns the deadline of a slot that has an entry.
    pub(super) fn due(&self, slot: u32) -> Instant {
        self.entries[self.places[slot as usize] as usize].due
    }

    /// Adds an entry for a slot that has none. Returns true if it is the first one now.
    pub(super) fn insert(&mut self, slot: u32, due: Instant) -> bool {
        let arrival = self.arrivals;
        self.arrivals += 1;
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, 0);
        }
        self.entries.push(Entry { due, arrival, slot });
        self.sift_up(self.entries.len() - 1) == 0
    }

    /// Gives a slot that has an entry an earlier deadline. Returns true if it is the first one now.
    ///
    /// The arrival number stays, so that the slot keeps its place among those with the same
    /// deadline.
    pub(super) fn advance(&mut self, slot: u32, due: Instant) -> bool {
        let place = self.places[slot as usize] as usize;
        self.entries[place].due = due;
        self.sift_up(place) == 0
    }

    /// Removes the entry of a slot that has one.
    ///
    /// Takes `O(log n)` moves. The last entry fills the gap; it can belong above or below that
    /// position.
    pub(super) fn remove(&mut self, slot: u32) {
        let place = self.places[slot as usize] as usize;
        self.entries.swap_remove(place);
        if place < self.entries.len() {
            // The last entry is now at this position: it moves down or up.
            let place = self.sift_up(place);
            self.sift_down(place);
        }
    }

    /// Moves an entry up to its position and returns the position.
    fn sift_up(&mut self, mut place: usize) -> usize {
        let entry = self.entries[place];
        while place > 0 {
            let parent = (place - 1) / BELOW;
            let above = self.entries[parent];
            if above <= entry {
                break;
            }
            self.put(place, above);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    /// Moves an entry down to its position.
    fn sift_down(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let first = BELOW * place + 1;
            let children = self.entries.iter().enumerate().skip(first).take(BELOW);
            let Some((child, &least)) = children.min_by_key(|&(_, child)| child) else { break };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    /// Writes an entry at a position and updates the position of its slot. Every move goes through
    /// here.
    fn put(&mut self, place: usize, entry: Entry) {
        self.entries[place] = entry;
        self.places[entry.slot as usize] = u32::try_from(place).expect("no more than slots");
    }
}
