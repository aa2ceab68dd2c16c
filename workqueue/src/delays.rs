//! The delayed items, each at its earliest deadline. Pure.
//!
//! This is a heap whose entries refer to slots, and whose slots know their heap position. An item
//! whose deadline changes or that is removed is moved or removed in the heap, so that the heap is
//! never larger than the number of items. (A heap with lazy deletion inserts a little faster, but
//! grows when a key is delayed repeatedly.)
//!
//! An insertion, a removal and the end of a delay take `O(log n)` moves in the heap and one lookup
//! in the hash table; the earliest deadline is read in constant time. The module does not wait: the
//! queue's timer task asks for the next deadline and sleeps.
//!
//! Invariants, which hold between two calls:
//!
//! * `heap[places[s]].slot == s` for each slot `s` in use;
//! * an entry is not earlier than its parent;
//! * `heap.len() + vacant.len() == slots.len()`;
//! * each pair of an item and a [`Kind`] has at most one entry.

use std::time::Duration;

use hashbrown::HashTable;
use tokio::time::Instant;

use crate::cause::Merge;
use crate::request::Request;

/// The longest delay: 100 years. It is far below the point at which adding to an [`Instant`]
/// panics, even after tokio's timer has added up to a millisecond.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the deadline of a delay that starts `now`, for any `Duration`.
///
/// A delay above 100 years counts as 100 years. A deadline that an [`Instant`] still cannot
/// represent is `now`: an item that is handed out too early is reconciled once too often, one that
/// is never handed out is lost.
pub(crate) fn deadline_after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(CENTURY)).unwrap_or(now)
}

/// The outcome of delaying an item.
///
/// Each variant contains the given item if it was merged with an equal one, for the caller to drop
/// outside of a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delayed<T> {
    /// Its deadline is new or earlier than before, and is now the earliest of all.
    Next(Option<T>),
    /// Another item is due before it, or its previous deadline was earlier.
    Later(Option<T>),
}

/// Items with their deadlines. If an item has several, the earliest counts.
///
/// An item has up to one entry of each `Kind`, each with its own deadline.
///
/// The queue's lock protects it. The index, the slots in use and the heap always describe the same
/// items. An item in here may also be queued or held: a delay is independent of the item's state.
pub(crate) struct Delays<T, C> {
    /// Maps an item to its slot, for each slot in use.
    index: HashTable<u32>,
    /// Slots by number; `None` in a vacant slot.
    slots: Vec<Option<Waiting<T, C>>>,
    /// The vacant slots, each once.
    vacant: Vec<u32>,
    /// The heap position of each slot's entry, by slot number; stale for vacant slots. Separate
    /// from the slots, because moves in the heap change many positions and nothing else of the
    /// slots.
    places: Vec<u32>,
    /// A min-heap with one entry for each slot in use.
    heap: Vec<Entry>,
    /// The number of the next insertion. It orders entries with the same deadline: first in, first
    /// out.
    arrivals: u64,
}

/// The number of children of a heap position. With 4 the heap has half the levels of a binary heap,
/// and the entries to compare are adjacent.
const BELOW: usize = 4;

/// The number of slots whose memory is kept when the last item is removed.
const SLOTS_KEPT: usize = 1024;

/// The kinds of delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By `add_after` or `add_rate_limited`. An `add` or a `cancel` of the item ends it.
    Delay,
    /// By `schedule`. An `add` leaves it in place, a `cancel` ends it.
    Schedule,
    /// The item was given back repeatedly. An `add` ends it. A `cancel` does not, because that
    /// would lose the request of the worker that dropped the item.
    Rest,
}

/// A delayed item. Its deadline is in the heap, not here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waiting<T, C> {
    pub(crate) item: T,
    /// The item's hash by the queue's hasher. It is kept so that a removal and a growing index
    /// never call the author's `Hash` under the lock.
    pub(crate) hash: u64,
    pub(crate) kind: Kind,
    /// The request that set the deadline, with the highest priority and the merged cause of all
    /// requests.
    pub(crate) request: Request<C>,
}

/// All items that were delayed.
pub(crate) struct All<T, C> {
    /// Each item once, earliest deadline first.
    pub(crate) items: Vec<(T, C)>,
    /// The later entries of these items. The caller drops them outside of a lock.
    pub(crate) later: Vec<Waiting<T, C>>,
}

/// An entry of the heap. The order of the fields is the order of the heap: by deadline, then by
/// arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    /// Unique, so that no two entries are equal and items with one deadline stay first in, first
    /// out.
    arrival: u64,
    /// A slot in use.
    slot: u32,
}

// === impl Kind ===

impl Kind {
    const ALL: [Self; 3] = [Self::Delay, Self::Schedule, Self::Rest];
}

// === impl Delays ===

impl<T, C> Delays<T, C> {
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

    /// Returns the number of deadlines.
    ///
    /// An item with entries of several kinds counts once for each.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.due)
    }

    /// Returns all items with their requests and deadlines, in no particular order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&T, &Request<C>, Instant)> {
        let slots = self.heap.iter().map(|entry| (self.slots[entry.slot as usize].as_ref(), entry));
        slots.filter_map(|(slot, entry)| slot.map(|slot| (&slot.item, &slot.request, entry.due)))
    }

    /// Returns the first item and its hash, if it is due.
    pub(crate) fn first_due(&self, now: Instant) -> Option<(u64, &T)> {
        let first = self.heap.first().filter(|entry| entry.due <= now)?;
        self.slots[first.slot as usize].as_ref().map(|slot| (slot.hash, &slot.item))
    }

    /// Takes out the first item if it is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Waiting<T, C>> {
        self.first_due(now)?;
        Some(self.remove_at(0))
    }

    /// Removes the entry in this slot.
    pub(crate) fn remove_found(&mut self, number: u32) -> Waiting<T, C> {
        self.remove_at(self.places[number as usize] as usize)
    }

    /// Removes the entry at this heap position.
    ///
    /// Takes `O(log n)` moves. The last entry of the heap fills the gap; it can belong above or
    /// below that position.
    fn remove_at(&mut self, place: usize) -> Waiting<T, C> {
        let removed = self.heap.swap_remove(place);
        if place < self.heap.len() {
            // The last entry is now at this position: it moves down or up.
            let place = self.sift_up(place);
            self.sift_down(place);
        }
        let slot = self.slots[removed.slot as usize].take().expect("the heap names slots in use");
        if let Ok(entry) = self.index.find_entry(slot.hash, |&other| other == removed.slot) {
            entry.remove();
        }
        self.vacant.push(removed.slot);
        if self.heap.is_empty() && self.slots.len() > SLOTS_KEPT {
            // A burst is over. All slots are vacant, so that this drops no item.
            self.slots = Vec::new();
            self.vacant = Vec::new();
            self.places = Vec::new();
            self.heap = Vec::new();
            self.index = HashTable::new();
        }
        slot
    }

    /// Moves an entry up to its position and returns the position.
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

    /// Moves an entry down to its position.
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

    /// Writes an entry at a heap position and updates the position of its slot. Every move in the
    /// heap goes through here.
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.slot as usize] = u32::try_from(place).expect("no more than slots");
    }

    /// Occupies a vacant slot.
    fn occupy(&mut self, slot: Waiting<T, C>) -> u32 {
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

impl<T: Eq, C> Delays<T, C> {
    /// Delays the item until `due`, unless its present deadline is earlier. Of several priorities
    /// the highest counts; the causes are merged.
    ///
    /// Returns a merged item, so that the caller can drop it outside of a lock.
    ///
    /// The arrival number of a merged item stays, so that it keeps its place among items with the
    /// same deadline.
    pub(crate) fn insert(
        &mut self,
        waiting: Waiting<T, C>,
        due: Instant,
        merge: &mut Merge<C>,
    ) -> Delayed<T> {
        let found = self.find(waiting.hash, &waiting.item, waiting.kind);
        self.insert_found(found, waiting, due, merge)
    }

    /// Does the same with the slot that [`find`](Self::find) has returned.
    ///
    /// `found` must be the result of a lookup since the last change.
    pub(crate) fn insert_found(
        &mut self,
        found: Option<u32>,
        waiting: Waiting<T, C>,
        due: Instant,
        merge: &mut Merge<C>,
    ) -> Delayed<T> {
        let (place, merged) = if let Some(number) = found {
            let Waiting { item, request, .. } = waiting;
            let known = self.slots[number as usize].as_mut().expect("just found");
            let rank = &mut known.request.rank;
            rank.priority = rank.priority.max(request.rank.priority);
            known.request.given_back = known.request.given_back.max(request.given_back);
            merge.merge(&mut known.request.cause, request.cause);
            let place = self.places[number as usize] as usize;
            if self.heap[place].due <= due {
                return Delayed::Later(Some(item));
            }
            known.request.operation = request.operation;
            self.heap[place].due = due;
            (place, Some(item))
        } else {
            let place = self.heap.len();
            let hash = waiting.hash;
            let number = self.occupy(waiting);
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

    /// Takes out all items.
    ///
    /// Each item is returned once, with the cause of its earliest entry. `entries` must be the
    /// result of [`entries_by_slot`](Self::entries_by_slot) since the last change.
    pub(crate) fn take_all(&mut self, entries: &[[Option<u32>; 3]]) -> All<T, C> {
        let mut items = Vec::with_capacity(self.len());
        let mut later = Vec::new();
        while let Some(&Entry { slot: number, .. }) = self.heap.first() {
            let all = entries[number as usize];
            let Waiting { item, request, .. } = self.remove_found(number);
            items.push((item, request.cause));
            let others = all.into_iter().flatten().filter(|&other| other != number);
            later.extend(others.map(|other| self.remove_found(other)));
        }
        All { items, later }
    }

    /// Returns, for each slot in use, the slots of all entries of its item.
    ///
    /// This is a separate step because `Eq` may panic: the caller does it before any change.
    pub(crate) fn entries_by_slot(&self) -> Vec<[Option<u32>; 3]> {
        let all = |slot: &Option<Waiting<T, C>>| match slot {
            Some(slot) => self.find_all(slot.hash, &slot.item, Kind::ALL),
            None => [None; 3],
        };
        self.slots.iter().map(all).collect()
    }

    /// Returns the earliest deadline of an item.
    pub(crate) fn deadline_of(&self, hash: u64, item: &T) -> Option<Instant> {
        let slots = self.find_all(hash, item, Kind::ALL).into_iter().flatten();
        slots.map(|slot| self.heap[self.places[slot as usize] as usize].due).min()
    }

    /// Returns the slots of the entries of these kinds of an item.
    ///
    /// Valid until the next change. The comparisons are a separate step because `Eq` may panic: the
    /// caller does all of them before any change.
    #[inline]
    pub(crate) fn find_all<const N: usize>(
        &self,
        hash: u64,
        item: &T,
        kinds: [Kind; N],
    ) -> [Option<u32>; N] {
        // Most queues delay no item most of the time.
        if self.is_empty() {
            return [None; N];
        }
        kinds.map(|kind| self.find(hash, item, kind))
    }

    /// Returns the slot of the entry of this kind of an item.
    pub(crate) fn find(&self, hash: u64, item: &T, kind: Kind) -> Option<u32> {
        // Compares the hash first, because comparing items is slower.
        let is_it =
            |slot: &Waiting<T, C>| slot.hash == hash && slot.kind == kind && slot.item == *item;
        let slot = |number: u32| self.slots[number as usize].as_ref();
        self.index.find(hash, |&number| slot(number).is_some_and(is_it)).copied()
    }
}

#[cfg(test)]
mod tests;
