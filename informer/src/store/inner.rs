//! [`Inner`]: the data behind the store's lock: objects by key, index tables and the version.
//!
//! Nothing here calls the author's index functions or drops an object: a method that replaces or
//! removes something moves it to [`Changes`], which the caller drops without a lock.
//!
//! An object has a slot number. Slots have no gaps: when an object is removed, the last one moves
//! to its slot, in every table too.
//!
//! Each step of the store ends in one of these methods, under the write lock:
//!
//! | Input | Method | Ignored if |
//! |---|---|---|
//! | a state from a watch | `applied` | the store has the same or a newer version |
//! | a deletion from a watch | `deleted` | the store has a newer version |
//! | an object of a list | `listed`, `put` | it is the cached object itself |
//! | an object missing from a list | `vanished`, `remove` | the store does not have it |
//! | a resync | `resynced`, `resynced_all` | the object does not fit its type |
//!
//! A list is the authority: it may take an object back to an older version, because a restored
//! server has another history. A watch may not, because a watch that starts again replays old
//! events.

mod arrived;
mod changes;
mod difference;

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

pub(crate) use self::changes::Changes;
use super::cow_vec::CowVec;
use super::garbage::Garbage;
use super::postings::Found;
use super::stage::Stage;
use super::stamp::Stamp;
use super::table::{AnyTable, Table};
use super::table_ref::{Alike, TableId};
use super::{Entry, TableRef};
use crate::list_watch::Decoded;
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion};

/// The objects, indices and version, which change together.
///
/// `table`, `slots`, `entries` and `tables` agree between two calls of its methods: each slot has
/// one key, one entry and one place in `table`, and each index has its values.
pub(crate) struct Inner<K: Object> {
    /// The slot numbers, by the hash of their key.
    ///
    /// `table` and `slots` are separate so that a lookup compares keys in one array, and so that
    /// the hash table stores 4 bytes per object.
    table: HashTable<u32>,
    /// The key of each slot. Keys are stored apart from the entries so that copy-on-write of a
    /// chunk of entries does not touch them.
    slots: CowVec<Slot<K>>,
    pub(super) entries: CowVec<Entry<K>>,
    /// A [`Table`] for each index, in the order of the writer's definitions.
    pub(super) tables: Vec<(TableId, Box<dyn AnyTable<K>>)>,
    /// The number of opaque entries.
    pub(super) opaque: usize,
    /// The server's version that this store has reached; it goes back only with a new full state.
    pub(crate) resource_version: Option<ResourceVersion>,
    hasher: RandomState,
}

/// The key of an object, and the version and uid of its entry.
struct Slot<K: Object> {
    key: ObjectKey<K::Kind>,
    stamp: Stamp,
}

/// An object that a new index must cover.
pub(super) struct Existing<'a, K: Object> {
    /// Its slot when the index was added.
    pub(super) slot: u32,
    pub(super) key: KeyRef<'a, K::Kind>,
    pub(super) entry: &'a Entry<K>,
}

// === impl Inner ===

impl<K: Object> Inner<K> {
    /// Creates an empty store without indices and without a version.
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            slots: CowVec::new(),
            entries: CowVec::new(),
            tables: Vec::new(),
            opaque: 0,
            resource_version: None,
            hasher: RandomState::default(),
        }
    }

    /// Returns the entry of a key, opaque or not.
    pub(crate) fn get(&self, key: KeyRef<'_, K::Kind>) -> Option<&Entry<K>> {
        self.entries.get(self.find(key)?)
    }

    /// Returns all entries at this moment.
    ///
    /// It copies one pointer per 128 entries. Later steps copy the chunks that they change.
    pub(crate) fn found(&self) -> Found<K> {
        Found { entries: self.entries.freeze(), opaque: self.opaque }
    }

    /// Returns the slot of a key. Takes constant time and allocates nothing.
    fn find(&self, key: KeyRef<'_, K::Kind>) -> Option<u32> {
        let same =
            |slot: &u32| self.slots.get(*slot).is_some_and(|slot| slot.key.as_key_ref() == key);
        self.table.find(self.hasher.hash_one(key), same).copied()
    }

    /// Returns the table of an index.
    ///
    /// It searches a list of the indices, which are few.
    ///
    /// # Panics
    /// If the values of the index have another type, or if the index was removed. A handle has the
    /// type of the values of its index, and the last handle removes it.
    pub(super) fn table<V: Send + Sync + 'static>(&self, table: &TableRef<V>) -> &Table<V, K> {
        let found = self.tables.iter().find(|(id, _)| *id == table.id);
        let (_, table) = found.expect("an index lives as long as its handles");
        let table: &dyn Any = &**table;
        table.downcast_ref().expect("an index handle has the type of its values")
    }

    /// Returns the entries of the values that have this hash.
    pub(crate) fn alike<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
        hash: u64,
    ) -> Alike<V, Found<K>> {
        let table = self.table(table);
        let lists = table.lists(hash);
        lists.filter_map(|(list, value)| Some((Arc::clone(value), table.found(list)?))).collect()
    }

    /// Removes an object that a list does not contain.
    ///
    /// The event is a deletion that is not certain: the last state was not seen.
    pub(super) fn vanished(&mut self, object: Decoded<K>, changes: &mut Changes<K>) {
        if let Some(slot) = self.find(KeyRef::from_metadata(object.metadata())) {
            self.remove(slot, None, changes);
        }
        changes.garbage.entries.push(object.into());
    }

    /// Delivers an unchanged object again.
    pub(super) fn resynced(&self, object: Decoded<K>, changes: &mut Changes<K>) {
        let entry = self.get(KeyRef::from_metadata(object.metadata()));
        changes.events.extend(entry.and_then(Entry::resync_event));
        changes.garbage.entries.push(object.into());
    }

    /// Delivers every object again.
    ///
    /// An opaque object is left out: it has no state to deliver.
    pub(super) fn resynced_all(&self, changes: &mut Changes<K>) {
        let frozen = self.entries.freeze();
        changes.events.extend(frozen.iter().filter_map(Entry::resync_event));
    }

    /// Replaces the state of a slot.
    ///
    /// The slot, the key and the place in `table` stay. The replaced entry goes to the event and to
    /// the garbage, and is not dropped under the lock.
    fn update(
        &mut self,
        slot: u32,
        object: Decoded<K>,
        stamp: Stamp,
        changes: &mut Changes<K>,
    ) -> u32 {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.stamp = stamp;
        }
        let new = Entry::following(self.entries.get(slot), object);
        self.opaque += usize::from(new.is_opaque());
        if let Some(old) = self.entries.replace(slot, new.clone()) {
            self.opaque -= usize::from(old.is_opaque());
            let garbage = &mut changes.garbage.entries;
            changes.events.push(new.into_event(Some(old), changes.initial, garbage));
        }
        slot
    }

    /// Adds an object that the store does not have.
    ///
    /// The new slot is the next number: slots have no gaps.
    fn insert(&mut self, object: Decoded<K>, stamp: Stamp, changes: &mut Changes<K>) -> u32 {
        let key = ObjectKey::from_metadata(object.metadata());
        let hash = self.hasher.hash_one(&key);
        let new = Entry::following(None, object);
        self.opaque += usize::from(new.is_opaque());
        let garbage = &mut changes.garbage.entries;
        changes.events.push(new.clone().into_event(None, changes.initial, garbage));
        let slot = self.entries.push(new);
        self.slots.push(Slot { key, stamp });
        let Self { table, slots, hasher, .. } = self;
        table.insert_unique(hash, slot, |slot| hash_of(slots, *slot, hasher));
        slot
    }

    /// Removes an object.
    ///
    /// `last` is the final state if the watch reported it; without it the deletion event is not
    /// certain. Does nothing beyond the last slot.
    pub(super) fn remove(&mut self, slot: u32, last: Option<Decoded<K>>, changes: &mut Changes<K>) {
        let Some(entry) = self.take(slot, &mut changes.garbage) else { return };
        self.opaque -= usize::from(entry.is_opaque());
        // The event holds only one of the states; no other may be freed under the lock.
        changes.garbage.entries.push(entry.clone());
        changes.events.push(entry.into_deletion_event(last));
    }

    /// Empties a slot, and moves the last object there.
    ///
    /// The hash table shrinks when it is 1/16 full, to twice the number of its entries, so that a
    /// store that was large once does not keep the memory. Small tables, up to 64 places, keep
    /// theirs.
    fn take(&mut self, slot: u32, garbage: &mut Garbage<K>) -> Option<Entry<K>> {
        let Self { table, slots, entries, tables, hasher, .. } = self;
        if let Ok(found) = table.find_entry(hash_of(slots, slot, hasher), |other| *other == slot) {
            found.remove();
        }
        slots.swap_remove(slot)?;
        let entry = entries.swap_remove(slot);
        let last = u32::try_from(slots.len()).expect("there are fewer slots than 2^32");
        if last != slot {
            let hash = hash_of(slots, slot, hasher);
            if let Some(moved) = table.find_mut(hash, |other| *other == last) {
                *moved = slot;
            }
        }
        for (_, index) in tables {
            index.remove(slot, garbage);
            index.move_last(last, slot);
        }
        if table.capacity() > 64 && table.len() < table.capacity() / 16 {
            table.shrink_to(2 * table.len(), |slot| hash_of(slots, *slot, hasher));
        }
        entry
    }

    /// Adds the staged values of a piece of existing objects to a new table. An object that has
    /// changed or is gone since is skipped: a step has given its values to the table.
    ///
    /// A new index is filled in pieces, one lock each, while other steps go on between the pieces.
    /// An object that changed in between has its values already, because each step also stages new
    /// indices.
    pub(super) fn fill(
        &mut self,
        id: TableId,
        piece: &[Existing<'_, K>],
        stage: &mut dyn Stage<K>,
    ) -> Garbage<K> {
        let mut garbage = Garbage::new();
        for Existing { slot, key, entry } in piece {
            let is_there = |slot: &u32| {
                self.entries.get(*slot).is_some_and(|current| current.is_identical(entry))
            };
            // The object may have moved to another slot.
            let found = Some(*slot).filter(is_there).or_else(|| self.find(*key).filter(is_there));
            let table = self.tables.iter_mut().find(|(other, _)| *other == id);
            match (found, table) {
                (Some(slot), Some((_, table))) => {
                    stage.commit(&mut **table, slot, entry, &mut garbage);
                }
                _ => stage.skip(&mut garbage),
            }
        }
        garbage
    }

    /// Advances the store to the server's version.
    ///
    /// A version that is lower is ignored, unless a list led to it: the server has another history
    /// then.
    pub(super) fn advance(
        &mut self,
        version: Option<ResourceVersion>,
        relisted: bool,
        changes: &mut Changes<K>,
    ) {
        let Some(version) = version else { return };
        let further =
            |own: &ResourceVersion| version.may_follow(own) || relisted && version != *own;
        if self.resource_version.as_ref().is_none_or(further) {
            self.reach(version, changes);
        }
    }

    /// Sets the version of the store, even if it goes back.
    ///
    /// `changes.versions` receives every version, for the handlers of versions and for the tasks
    /// that wait for a version.
    pub(super) fn reach(&mut self, version: ResourceVersion, changes: &mut Changes<K>) {
        changes.versions.push(version.clone());
        self.resource_version = Some(version);
    }

    /// Returns the number of places for objects and index values, used or not.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let tables = self.tables.iter().map(|(_, table)| table.capacity());
        self.entries.capacity()
            + self.slots.capacity()
            + self.table.capacity()
            + tables.sum::<usize>()
    }
}

/// Returns the hash of the key in a slot; 0 for a slot that does not exist, which occurs in no
/// table.
fn hash_of<K: Object>(slots: &CowVec<Slot<K>>, slot: u32, hasher: &RandomState) -> u64 {
    slots.get(slot).map_or(0, |slot| hasher.hash_one(&slot.key))
}

// === impl Slot ===

impl<K: Object> Clone for Slot<K> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), stamp: self.stamp }
    }
}
