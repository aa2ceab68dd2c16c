//! [`Postings`]: the lists of an index, which map each value to the entries that have it.
//!
//! Values are identified by their hash and their address, never compared: a comparison runs the
//! author's code, and the lists change under a lock. The stage compares values beforehand, and
//! shares equal ones.
//!
//! A list holds the entries themselves, in copy-on-write chunks: a look-up copies one pointer per
//! 128 entries under the lock, and reads them without it.
//!
//! ```text
//!  table: hash ─▶ list number      lists[n]: value, entries, slots
//!                                               ▲        │
//!  places[slot]: (list, position), …  ──────────┘        └──▶ back to the slot
//! ```
//!
//! `places` and `slots` refer to each other, so that a removal finds its position without a search,
//! and a moved entry finds its place.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::Entry;
use super::cow_vec::{CowVec, Frozen};
use super::garbage::{Garbage, shrink};
use super::numbers::Numbers;

/// The entries of each value, and the values of each slot.
///
/// No result depends on the order of a hash table: equal calls return equal results in the same
/// order.
///
/// Invariants: a list is in `table` exactly while it has a value, and then at least one entry; a
/// place of a slot is the position of its entry in its list. A value is added or removed in time
/// that depends on the number of values of its slot, not on the length of the list.
pub(super) struct Postings<V, K> {
    /// The numbers of the lists, by the hash of their value.
    table: HashTable<u32>,
    /// One list for each value that at least one slot has.
    lists: Numbers<List<V, K>>,
    /// For each slot, its positions in the lists; each list occurs once.
    places: Vec<Places>,
    /// The number of lists that were ever created.
    created: u64,
}

/// A value to add to a slot.
pub(super) struct Posted<V> {
    /// Shared with the list of this value, if one exists.
    pub(super) value: Arc<V>,
    pub(super) hash: u64,
    /// The number of that list at the time of the look-up; it may be stale.
    pub(super) list: Option<u32>,
}

/// The values of one object: the first `count` of a queue. They leave it.
pub(super) struct Next<'a, V> {
    pub(super) values: &'a mut VecDeque<Posted<V>>,
    pub(super) count: usize,
}

/// The entries of one value at one moment.
pub(crate) struct Found<K> {
    pub(crate) entries: Frozen<Entry<K>>,
    /// The number of opaque ones.
    pub(crate) opaque: usize,
}

/// A value and its entries. Their order follows from the history of calls.
struct List<V, K> {
    value: Arc<V>,
    hash: u64,
    /// The number of lists that were created before.
    born: u64,
    entries: CowVec<Entry<K>>,
    /// The slot of each entry. Never contains a slot twice.
    slots: Vec<u32>,
    /// The number of opaque entries.
    opaque: usize,
}

/// The position of a slot in a list.
#[derive(Clone, Copy)]
struct Place {
    list: u32,
    position: u32,
}

/// The places of one slot. Most slots have one or two, which need no allocation.
type Places = SmallVec<[Place; 2]>;

/// The longest list that moves to another number, so that the table of lists can shrink. A move
/// visits each slot of the list under the lock.
const LONGEST_MOVED: usize = 128;

// === impl Postings ===

impl<V: Send + Sync + 'static, K> Postings<V, K> {
    pub(super) fn new() -> Self {
        Self { table: HashTable::new(), lists: Numbers::new(), places: Vec::new(), created: 0 }
    }

    /// Returns the lists whose values have this hash: the number and the value of each.
    pub(super) fn lists(&self, hash: u64) -> impl Iterator<Item = (u32, &Arc<V>)> {
        self.table.iter_hash(hash).filter_map(move |number| {
            let list = self.lists.get(*number).filter(|list| list.hash == hash)?;
            Some((*number, &list.value))
        })
    }

    /// Returns the number of lists that were ever created.
    pub(super) fn created(&self) -> u64 {
        self.created
    }

    /// Returns true if a list that was created after the first `seen` ones may have the value of
    /// `posted`, which is not its own: the hashes are equal.
    pub(super) fn may_have(&self, posted: &Posted<V>, seen: u64) -> bool {
        self.table.iter_hash(posted.hash).any(|number| {
            self.lists.get(*number).is_some_and(|list| {
                list.born >= seen
                    && list.hash == posted.hash
                    && !Arc::ptr_eq(&list.value, &posted.value)
            })
        })
    }

    /// Returns the entries of a list.
    pub(super) fn found(&self, list: u32) -> Option<Found<K>> {
        let list = self.lists.get(list)?;
        Some(Found { entries: list.entries.freeze(), opaque: list.opaque })
    }

    /// Returns the values that at least one slot has.
    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<V>> {
        self.lists.iter().map(|list| &list.value)
    }

    /// Replaces the values and the entry of a slot.
    ///
    /// Values that did not change leave the lists as they are; only the entry is replaced. They are
    /// compared by address, because the stage shares equal values.
    pub(super) fn set(
        &mut self,
        slot: u32,
        values: Next<'_, V>,
        entry: &Entry<K>,
        garbage: &mut Garbage<K>,
    ) {
        let Next { values, count } = values;
        // Most updates leave the values unchanged.
        let is_unchanged = self.has_values(slot, values.iter().take(count));
        if is_unchanged {
            self.replace(slot, entry, garbage);
        } else {
            self.remove(slot, garbage);
        }
        for value in (0..count).map_while(|_| values.pop_front()) {
            if !is_unchanged {
                self.add(slot, value, entry);
            }
        }
    }

    /// Replaces the entry of a slot.
    ///
    /// The replaced entries go to the garbage, one for each list of the slot.
    fn replace(&mut self, slot: u32, entry: &Entry<K>, garbage: &mut Garbage<K>) {
        let Self { places, lists, .. } = self;
        for place in places.get(slot as usize).into_iter().flatten() {
            let list = lists.get_mut(place.list);
            let old = list.and_then(|list| list.replace(place.position, entry.clone()));
            garbage.entries.extend(old);
        }
    }

    /// Removes all values of a slot.
    pub(super) fn remove(&mut self, slot: u32, garbage: &mut Garbage<K>) {
        let Some(places) = self.places.get_mut(slot as usize) else { return };
        for place in std::mem::take(places) {
            self.unlink(place, garbage);
        }
    }

    /// Gives the values of slot `from`, the last one, to slot `to`, which has none.
    ///
    /// Each place of the slot is visited once. A slot that never had a value needs no change.
    pub(super) fn renumber(&mut self, from: u32, to: u32) {
        if from as usize >= self.places.len() {
            return;
        }
        let places = std::mem::take(&mut self.places[from as usize]);
        for place in &places {
            if let Some(list) = self.lists.get_mut(place.list) {
                list.slots[place.position as usize] = to;
            }
        }
        self.places[to as usize] = places;
    }

    /// Forgets the slots from `end` on, which have no values.
    pub(super) fn truncate(&mut self, end: u32) {
        self.places.truncate(end as usize);
        shrink(&mut self.places);
    }

    /// Returns true if these are the values of the slot, in this order.
    ///
    /// The order counts: an index function that returns equal values in another order causes a
    /// removal and an insertion.
    fn has_values<'v>(
        &self,
        slot: u32,
        values: impl ExactSizeIterator<Item = &'v Posted<V>>,
    ) -> bool {
        let places = self.places(slot);
        let holds = |(place, posted): (&Place, &Posted<V>)| {
            self.lists.get(place.list).is_some_and(|list| Arc::ptr_eq(&list.value, &posted.value))
        };
        places.len() == values.len() && places.iter().zip(values).all(holds)
    }

    /// Returns the places of a slot; none for a slot that was never used.
    fn places(&self, slot: u32) -> &[Place] {
        self.places.get(slot as usize).map_or(&[], SmallVec::as_slice)
    }

    /// Adds a value to a slot, unless the slot has it already.
    fn add(&mut self, slot: u32, value: Posted<V>, entry: &Entry<K>) {
        let number = self.list_of(value);
        if self.places(slot).iter().any(|place| place.list == number) {
            return;
        }
        let Some(list) = self.lists.get_mut(number) else { return };
        let position = list.push(slot, entry.clone());
        if self.places.len() <= slot as usize {
            self.places.resize_with(slot as usize + 1, Places::new);
        }
        self.places[slot as usize].push(Place { list: number, position });
    }

    /// Returns the list of this value; creates it if there is none.
    ///
    /// The number from the look-up is used if it still names the list of this value. Otherwise the
    /// list is looked up by hash and address.
    fn list_of(&mut self, posted: Posted<V>) -> u32 {
        let Self { table, lists, created, .. } = self;
        let Posted { value, hash, list } = posted;
        let is_its =
            |list: &u32| lists.get(*list).is_some_and(|list| Arc::ptr_eq(&list.value, &value));
        let known = list.filter(is_its).or_else(|| table.find(hash, is_its).copied());
        if let Some(list) = known {
            return list;
        }
        let list = lists.insert(List::new(value, hash, *created));
        *created += 1;
        table.insert_unique(hash, list, |list| lists.get(*list).map_or(0, |list| list.hash));
        list
    }

    /// Takes the entry at this place out of its list; the last one of the list moves there.
    ///
    /// Takes constant time, plus a search among the places of the entry that moves, which has few.
    fn unlink(&mut self, place: Place, garbage: &mut Garbage<K>) {
        let Some(list) = self.lists.get_mut(place.list) else { return };
        garbage.entries.extend(list.swap_remove(place.position));
        if let Some(moved) = list.slots.get(place.position as usize) {
            let mut places = self.places[*moved as usize].iter_mut();
            if let Some(other) = places.find(|other| other.list == place.list) {
                other.position = place.position;
            }
        }
        if list.slots.is_empty() {
            self.drop_list(place.list, garbage);
        }
    }

    /// Removes a list that has no entry.
    fn drop_list(&mut self, number: u32, garbage: &mut Garbage<K>) {
        let Some(list) = self.lists.remove(number) else { return };
        if let Ok(entry) = self.table.find_entry(list.hash, |other| *other == number) {
            entry.remove();
        }
        garbage.values.push(list.value);
        self.fill_gap();
        let Self { table, lists, .. } = self;
        if table.capacity() > 64 && table.len() < table.capacity() / 16 {
            let hash = |list: &u32| lists.get(*list).map_or(0, |list| list.hash);
            table.shrink_to(2 * table.len(), hash);
        }
    }

    /// Moves the last list to a free number if most numbers are free, so that memory is freed.
    fn fill_gap(&mut self) {
        let Self { table, lists, places, .. } = self;
        if !lists.is_sparse() || lists.last().is_none_or(|list| list.slots.len() > LONGEST_MOVED) {
            return;
        }
        let Some((from, to)) = lists.move_last() else { return };
        let Some(list) = lists.get(to) else { return };
        if let Some(number) = table.find_mut(list.hash, |number| *number == from) {
            *number = to;
        }
        for slot in &list.slots {
            let mut places = places[*slot as usize].iter_mut();
            if let Some(place) = places.find(|place| place.list == from) {
                place.list = to;
            }
        }
    }

    /// Returns the number of places for slots and for lists, used or not.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.places.capacity() + self.lists.capacity() + self.table.capacity()
    }
}

// === impl List ===

impl<V, K> List<V, K> {
    fn new(value: Arc<V>, hash: u64, born: u64) -> Self {
        Self { value, hash, born, entries: CowVec::new(), slots: Vec::new(), opaque: 0 }
    }

    /// Adds an entry, and returns its position.
    fn push(&mut self, slot: u32, entry: Entry<K>) -> u32 {
        self.opaque += usize::from(entry.is_opaque());
        self.slots.push(slot);
        self.entries.push(entry)
    }

    /// Replaces an entry, and returns the old one.
    fn replace(&mut self, position: u32, entry: Entry<K>) -> Option<Entry<K>> {
        self.opaque += usize::from(entry.is_opaque());
        let old = self.entries.replace(position, entry);
        self.opaque -= usize::from(old.as_ref().is_some_and(Entry::is_opaque));
        old
    }

    /// Removes an entry; the last one moves to its position.
    fn swap_remove(&mut self, position: u32) -> Option<Entry<K>> {
        self.slots.swap_remove(position as usize);
        shrink(&mut self.slots);
        let old = self.entries.swap_remove(position);
        self.opaque -= usize::from(old.as_ref().is_some_and(Entry::is_opaque));
        old
    }
}

#[cfg(test)]
mod tests;
