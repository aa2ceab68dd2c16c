//! What the store's lock protects: objects by key, index tables, and the version that was reached.

use std::{any::Any, cmp::Ordering, hash::BuildHasher, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{Entry, postings::Garbage, slab::Slab};
use crate::{
    event::Event,
    index::{AnyTable, Stage, Table, TableRef},
    list_watch::Decoded,
    object::{KeyRef, Object, ObjectKey, ObjectMeta, ResourceVersion, compare_versions},
};

/// Objects, indices and version, in step.
pub(crate) struct Inner<K: Object> {
    /// Slot numbers, by the hash of their key.
    table: HashTable<u32>,
    /// The key of each slot; stale for empty slots. Apart from the objects so that copying a chunk of those on write
    /// does not touch the keys.
    keys: Vec<ObjectKey<K::Kind>>,
    pub(super) slab: Slab<Entry<K>>,
    /// A [`Table`] for each index, in the order of the writer's stages.
    pub(super) tables: Vec<Box<dyn AnyTable>>,
    /// How many entries are opaque.
    pub(super) opaque: usize,
    /// The state of the server that this is a copy of; goes back only with a whole new state.
    pub(crate) resource_version: Option<ResourceVersion>,
    hasher: RandomState,
}

/// What a step leaves behind.
pub(super) struct Changes<K: Object> {
    pub(super) events: Vec<Event<K>>,
    /// Each version that was reached, in order.
    pub(super) versions: Vec<ResourceVersion>,
    /// What was replaced and is in no event: dropped when the locks are released.
    pub(super) garbage: Vec<Entry<K>>,
    /// The values of indices that no object has any more: the same.
    pub(super) values: Garbage,
    /// Whether what is added now was there before we looked.
    pub(super) initial: bool,
}

/// How a whole state differs from the store's.
pub(super) struct Difference {
    /// For each object, whether it changes nothing: the store has it in the same state, or it is there again, newer.
    pub(super) stays: Vec<bool>,
    /// The slots of the objects that are no more, by number.
    pub(super) gone: Vec<u32>,
}

// === impl Inner ===

impl<K: Object> Inner<K> {
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            keys: Vec::new(),
            slab: Slab::new(),
            tables: Vec::new(),
            opaque: 0,
            resource_version: None,
            hasher: RandomState::default(),
        }
    }

    pub(crate) fn get(&self, key: KeyRef<'_, K::Kind>) -> Option<&Entry<K>> {
        self.slab.get(self.find(key)?)
    }

    fn find(&self, key: KeyRef<'_, K::Kind>) -> Option<u32> {
        let same = |slot: &u32| self.keys[*slot as usize].as_key_ref() == key;
        self.table.find(self.hasher.hash_one(key), same).copied()
    }

    /// The table of an index.
    ///
    /// # Panics
    /// If the index has other values: handles are typed by what made them.
    pub(super) fn table<V: Send + Sync + 'static>(&self, table: &TableRef<V>) -> &Table<V> {
        let table: &dyn Any = &*self.tables[table.number];
        table.downcast_ref().expect("an index handle has the type of its values")
    }

    /// See [`Store::alike`](super::Store::alike).
    pub(crate) fn alike<V: Send + Sync + 'static, T>(
        &self,
        table: &TableRef<V>,
        hash: u64,
        read: impl Fn(&Self, &[u32]) -> T,
    ) -> Vec<(Arc<V>, T)> {
        let lists = self.table(table).lists(hash);
        lists.map(|(_, value, slots)| (Arc::clone(value), read(self, slots))).collect()
    }

    /// The objects of these slots that fit.
    pub(crate) fn objects(&self, slots: &[u32]) -> Vec<Arc<K>> {
        let mut objects = Vec::with_capacity(slots.len());
        objects.extend(slots.iter().filter_map(|slot| self.slab.get(*slot)?.object().cloned()));
        objects
    }

    /// The same, with their slots.
    pub(super) fn numbered(&self, slots: &[u32]) -> Vec<(u32, Arc<K>)> {
        let object = |slot: &u32| Some((*slot, self.slab.get(*slot)?.object().cloned()?));
        slots.iter().filter_map(object).collect()
    }

    pub(crate) fn keys(&self, slots: &[u32]) -> Vec<ObjectKey<K::Kind>> {
        slots.iter().map(|slot| self.keys[*slot as usize].clone()).collect()
    }

    pub(crate) fn any_opaque(&self, slots: &[u32]) -> bool {
        let is_opaque = |slot: &u32| self.slab.get(*slot).is_some_and(Entry::is_opaque);
        self.opaque > 0 && slots.iter().any(is_opaque)
    }

    /// How the whole state of this `version` differs. If the version goes back, the server has another history, in
    /// which the same version of an object may be another state of it.
    pub(super) fn difference(
        &self,
        objects: &[Decoded<K>],
        version: &ResourceVersion,
    ) -> Difference {
        let own = self.resource_version.as_ref();
        let back = own.is_some_and(|own| version.compare(own) == Some(Ordering::Less));
        let mut stays = superseded(objects, &self.hasher);
        let mut seen = vec![false; self.keys.len()];
        for (object, stays) in objects.iter().zip(&mut stays) {
            let Some(slot) = self.find(KeyRef::from_metadata(object.metadata())) else { continue };
            seen[slot as usize] = true;
            let entry = self.slab.get(slot).filter(|_| !back);
            *stays |= entry.is_some_and(|entry| entry.is_unchanged(object));
        }
        let gone = (0..).zip(seen).filter(|(slot, seen)| !seen && self.slab.get(*slot).is_some());
        Difference { stays, gone: gone.map(|(slot, _)| slot).collect() }
    }

    /// A state that arrived by watch: ignored if a newer one is known.
    pub(super) fn applied(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let current = self.get(KeyRef::from_metadata(object.metadata()));
        let order = current.and_then(|entry| compare_metadata(object.metadata(), entry.metadata()));
        // What can be read now and could not before is news, although its version is the same.
        let fits_now = current.is_some_and(Entry::is_opaque) && matches!(object, Decoded::Fits(_));
        let is_old = match order {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => !fits_now,
            Some(Ordering::Greater) | None => false,
        };
        if is_old {
            for stage in stages {
                stage.skip(&mut changes.values);
            }
            changes.garbage.push(object.into());
        } else {
            self.put(object, stages, changes);
        }
    }

    /// A state that is known to be the newest.
    pub(super) fn put(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let mut slot = self.find(KeyRef::from_metadata(object.metadata()));
        if let Some(old) = slot.filter(|slot| !self.is_same_object(*slot, &object)) {
            self.gone(old, None, changes);
            slot = None;
        }
        let old = slot.and_then(|slot| self.slab.get(slot));
        let was_opaque = old.is_some_and(Entry::is_opaque);
        let key = old.is_none().then(|| ObjectKey::from_metadata(object.metadata()));
        let (entry, event) = Entry::next(old, object, changes.initial);
        changes.events.push(event);
        self.opaque -= usize::from(was_opaque);
        self.opaque += usize::from(entry.is_opaque());
        let slot = match (slot, key) {
            (Some(slot), _) => {
                changes.garbage.extend(self.slab.replace(slot, entry));
                slot
            }
            (None, Some(key)) => self.insert(key, entry),
            (None, None) => unreachable!("an object without a slot is new"),
        };
        for (stage, table) in stages.iter_mut().zip(&mut self.tables) {
            stage.commit(&mut **table, slot, &mut changes.values);
        }
    }

    /// A deletion that arrived by watch: ignored if it is one of an earlier object of the same name.
    pub(super) fn deleted(&mut self, object: Decoded<K>, changes: &mut Changes<K>) {
        let Some(slot) = self.find(KeyRef::from_metadata(object.metadata())) else {
            changes.garbage.push(object.into());
            return;
        };
        if self.is_same_object(slot, &object) {
            self.gone(slot, Some(object), changes);
            return;
        }
        let current = self.slab.get(slot).map(Entry::metadata);
        let order = current.and_then(|current| compare_metadata(object.metadata(), current));
        changes.garbage.push(object.into());
        if order != Some(Ordering::Less) {
            self.gone(slot, None, changes);
        }
    }

    /// What a list says of one object, whatever was known of it: nothing new, if it is the cache's own.
    pub(super) fn listed(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let current = self.get(KeyRef::from_metadata(object.metadata()));
        let same = match (current, &object) {
            (Some(Entry::Fits(own)), Decoded::Fits(object)) => Arc::ptr_eq(own, object),
            (Some(own), Decoded::Opaque { .. }) => own.is_unchanged(&object),
            _ => false,
        };
        if same {
            for stage in stages {
                stage.skip(&mut changes.values);
            }
            changes.garbage.push(object.into());
        } else {
            self.put(object, stages, changes);
        }
    }

    /// A list has shown that the object is gone.
    pub(super) fn vanished(&mut self, object: Decoded<K>, changes: &mut Changes<K>) {
        if let Some(slot) = self.find(KeyRef::from_metadata(object.metadata())) {
            self.gone(slot, None, changes);
        }
        changes.garbage.push(object.into());
    }

    /// Somebody wants to be told of this object again.
    pub(super) fn resynced(&self, object: Decoded<K>, changes: &mut Changes<K>) {
        let entry = self.get(KeyRef::from_metadata(object.metadata()));
        changes.events.extend(entry.and_then(Entry::again));
        changes.garbage.push(object.into());
    }

    /// The same of every object.
    pub(super) fn resynced_all(&self, changes: &mut Changes<K>) {
        let frozen = self.slab.freeze();
        changes.events.extend(frozen.iter().filter_map(|(_, entry)| entry.again()));
    }

    /// Takes an object out.
    pub(super) fn gone(&mut self, slot: u32, last: Option<Decoded<K>>, changes: &mut Changes<K>) {
        let Some(entry) = self.slab.remove(slot) else { return };
        let hash = self.hasher.hash_one(&self.keys[slot as usize]);
        if let Ok(found) = self.table.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
        for table in &mut self.tables {
            table.forget(slot, &mut changes.values);
        }
        self.opaque -= usize::from(entry.is_opaque());
        if let Some(object) = entry.object() {
            // The event holds only one of the two states; neither may be freed under the lock.
            changes.garbage.push(Entry::Fits(object.clone()));
        }
        changes.events.push(entry.gone(last));
    }

    /// Gives the slots of a new table what was staged for them, unless they have been written since. Returns what is
    /// to be dropped when the lock is released.
    pub(super) fn fill(
        &mut self,
        table: usize,
        slots: impl Iterator<Item = u32>,
        stage: &mut dyn Stage<K>,
    ) -> Garbage {
        let mut garbage = Vec::new();
        let table = &mut *self.tables[table];
        for slot in slots {
            if table.is_touched(slot) {
                stage.skip(&mut garbage);
            } else {
                stage.commit(table, slot, &mut garbage);
            }
        }
        garbage
    }

    /// The server has got this far.
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

    /// This is the server's state as of `version`, whatever it was before.
    pub(super) fn reach(&mut self, version: ResourceVersion, changes: &mut Changes<K>) {
        changes.versions.push(version.clone());
        self.resource_version = Some(version);
    }

    fn insert(&mut self, key: ObjectKey<K::Kind>, entry: Entry<K>) -> u32 {
        let slot = self.slab.insert(entry);
        let hash = self.hasher.hash_one(&key);
        match self.keys.get_mut(slot as usize) {
            Some(stale) => *stale = key,
            None => self.keys.push(key),
        }
        let Self { table, keys, hasher, .. } = self;
        table.insert_unique(hash, slot, |slot| hasher.hash_one(&keys[*slot as usize]));
        slot
    }

    fn is_same_object(&self, slot: u32, object: &Decoded<K>) -> bool {
        self.slab.get(slot).is_some_and(|entry| entry.is_same_object(object))
    }
}

// === impl Changes ===

impl<K: Object> Changes<K> {
    pub(super) fn new() -> Self {
        Self {
            events: Vec::new(),
            versions: Vec::new(),
            garbage: Vec::new(),
            values: Vec::new(),
            initial: false,
        }
    }
}

/// For each object of a whole state, whether it is there once more in a newer state; if nobody can tell which state is
/// newer, the later one counts.
fn superseded<K: Object>(objects: &[Decoded<K>], hasher: &RandomState) -> Vec<bool> {
    let key = |place: usize| KeyRef::<K::Kind>::from_metadata(objects[place].metadata());
    let mut superseded = vec![false; objects.len()];
    let mut places = HashTable::with_capacity(objects.len());
    for place in 0..objects.len() {
        let hash = hasher.hash_one(key(place));
        match places.find_mut(hash, |other: &usize| key(*other) == key(place)) {
            None => {
                places.insert_unique(hash, place, |place| hasher.hash_one(key(*place)));
            }
            Some(other) => {
                let order = compare_metadata(objects[place].metadata(), objects[*other].metadata());
                let loser = if order == Some(Ordering::Less) {
                    place
                } else {
                    std::mem::replace(other, place)
                };
                superseded[loser] = true;
            }
        }
    }
    superseded
}

// === versions ===

fn version_of(metadata: &ObjectMeta) -> Option<&str> {
    metadata.resource_version.as_deref().filter(|version| !version.is_empty())
}

fn compare_metadata(one: &ObjectMeta, other: &ObjectMeta) -> Option<Ordering> {
    compare_versions(version_of(one)?, version_of(other)?)
}
