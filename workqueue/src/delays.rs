//! The delayed items, each at its earliest deadline. Pure.
//!
//! The items are in slots, and a [`Heap`] orders the slots by deadline. An insertion, a removal and
//! the end of a delay take `O(log n)` moves in the heap and one lookup in the hash table; the
//! earliest deadline is read in constant time. The module does not wait: the queue's timer task
//! asks for the next deadline and sleeps.
//!
//! Invariants, which hold between two calls:
//!
//! * the heap has one entry for each slot in use;
//! * `heap.len() + vacant.len() == slots.len()`;
//! * each pair of an item and a [`Kind`] has at most one entry.

mod heap;

use std::time::Duration;

use hashbrown::HashTable;
use tokio::time::Instant;

use self::heap::Heap;
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
    /// The deadlines of the slots in use.
    heap: Heap,
}

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

// === impl Kind ===

impl Kind {
    const ALL: [Self; 3] = [Self::Delay, Self::Schedule, Self::Rest];
}

// === impl Delays ===

impl<T, C> Delays<T, C> {
    pub(crate) fn new() -> Self {
        Self { index: HashTable::new(), slots: Vec::new(), vacant: Vec::new(), heap: Heap::new() }
    }

    /// Returns the number of deadlines.
    ///
    /// An item with entries of several kinds counts once for each.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.len() == 0
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.heap.first().map(|(_, due)| due)
    }

    /// Returns all items with their requests and deadlines, in no particular order.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&T, &Request<C>, Instant)> {
        self.heap.iter().filter_map(|(number, due)| {
            let slot = self.slots[number as usize].as_ref()?;
            Some((&slot.item, &slot.request, due))
        })
    }

    /// Returns the first item and its hash, if it is due.
    pub(crate) fn first_due(&self, now: Instant) -> Option<(u64, &T)> {
        let (number, _) = self.heap.first().filter(|&(_, due)| due <= now)?;
        self.slots[number as usize].as_ref().map(|slot| (slot.hash, &slot.item))
    }

    /// Takes out the first item if it is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Waiting<T, C>> {
        self.first_due(now)?;
        let (number, _) = self.heap.first()?;
        Some(self.remove_found(number))
    }

    /// Removes the entry in this slot.
    pub(crate) fn remove_found(&mut self, number: u32) -> Waiting<T, C> {
        self.heap.remove(number);
        let slot = self.slots[number as usize].take().expect("the heap names slots in use");
        if let Ok(entry) = self.index.find_entry(slot.hash, |&other| other == number) {
            entry.remove();
        }
        self.vacant.push(number);
        if self.is_empty() && self.slots.len() > SLOTS_KEPT {
            // A burst is over. All slots are vacant, so that this drops no item.
            self.slots = Vec::new();
            self.vacant = Vec::new();
            self.heap = Heap::new();
            self.index = HashTable::new();
        }
        slot
    }

    /// Occupies a vacant slot.
    fn occupy(&mut self, slot: Waiting<T, C>) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.slots[number as usize] = Some(slot);
            return number;
        }
        let number = u32::try_from(self.slots.len()).expect("memory ends before 2^32 items");
        self.slots.push(Some(slot));
        number
    }

    /// Adds an entry for an item that has none of this kind.
    fn insert_new(&mut self, waiting: Waiting<T, C>, due: Instant) -> Delayed<T> {
        let hash = waiting.hash;
        let number = self.occupy(waiting);
        let slots = &self.slots;
        self.index.insert_unique(hash, number, |&other| {
            slots[other as usize].as_ref().map_or(0, |slot| slot.hash)
        });
        if self.heap.insert(number, due) { Delayed::Next(None) } else { Delayed::Later(None) }
    }

    /// Merges a request into the entry in this slot, which then has the earlier deadline.
    fn merge_into(
        &mut self,
        number: u32,
        waiting: Waiting<T, C>,
        due: Instant,
        merge: &mut Merge<C>,
    ) -> Delayed<T> {
        let Waiting { item, request, .. } = waiting;
        let known = &mut self.slots[number as usize].as_mut().expect("just found").request;
        known.rank.priority = known.rank.priority.max(request.rank.priority);
        known.given_back = known.given_back.max(request.given_back);
        merge.merge(&mut known.cause, request.cause);
        if self.heap.due(number) <= due {
            return Delayed::Later(Some(item));
        }
        known.operation = request.operation;
        let is_first = self.heap.advance(number, due);
        if is_first { Delayed::Next(Some(item)) } else { Delayed::Later(Some(item)) }
    }
}

impl<T: Eq, C> Delays<T, C> {
    /// Delays the item until `due`, unless its present deadline is earlier. Of several priorities
    /// the highest counts; the causes are merged.
    ///
    /// Returns a merged item, so that the caller can drop it outside of a lock.
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
        match found {
            Some(number) => self.merge_into(number, waiting, due, merge),
            None => self.insert_new(waiting, due),
        }
    }

    /// Takes out all items.
    ///
    /// Each item is returned once, with the cause of its earliest entry. `entries` must be the
    /// result of [`entries_by_slot`](Self::entries_by_slot) since the last change.
    pub(crate) fn take_all(&mut self, entries: &[[Option<u32>; 3]]) -> All<T, C> {
        let mut items = Vec::with_capacity(self.len());
        let mut later = Vec::new();
        while let Some((number, _)) = self.heap.first() {
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
        slots.map(|slot| self.heap.due(slot)).min()
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
