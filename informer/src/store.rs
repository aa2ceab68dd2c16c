//! [`Store`]: the copy of the server's objects, its indices, and the version it has reached, changed in one step.
//!
//! Readers share a lock that is held for a look-up, never for a scan: a list is a snapshot of copy-on-write chunks.
//! The write half belongs to whoever holds `writer`; only that one takes the lock for writing, and it computes all
//! that comes from the author's code (index values) before it does.

pub(crate) mod entry;
mod inner;
pub(crate) mod postings;
pub(crate) mod slab;

use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

pub(crate) use self::{entry::Entry, inner::newest};
use self::{
    inner::{Changes, Inner},
    slab::Frozen,
};
use crate::{
    delta::Delta,
    dispatcher::{Outlet, Outlets},
    index::{AnyTable, Stage, Staged, Table},
    list_watch::Decoded,
    object::{KeyRef, Object, ObjectMeta, ResourceVersion},
};

/// The objects of one kind, by key, and in the order of their indices.
pub(crate) struct Store<K: Object> {
    /// What readers see. Never locked while the author's code runs.
    inner: RwLock<Inner<K>>,
    /// The write half. Held for a whole step: compute, write, dispatch. An index function runs meanwhile; it may read
    /// the store, but not add indices or handlers.
    writer: Mutex<Writer<K>>,
    /// The number of the index by namespace, once somebody has asked for one.
    by_namespace: OnceLock<usize>,
    /// How often an index function panicked.
    index_panics: AtomicU64,
}

/// What writing takes, besides the lock.
struct Writer<K: Object> {
    /// In the order of `Inner::tables`.
    stages: Vec<Box<dyn Stage<K>>>,
    outlets: Outlets<K>,
    /// Whether the store has been whole once.
    synced: bool,
}

// === impl Store ===

impl<K: Object> Store<K> {
    pub(crate) fn new() -> Self {
        Self {
            inner: RwLock::new(Inner::new()),
            writer: Mutex::new(Writer {
                stages: Vec::new(),
                outlets: Outlets::new(),
                synced: false,
            }),
            by_namespace: OnceLock::new(),
            index_panics: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, key: KeyRef<'_, K::Kind>) -> Option<Arc<K>> {
        self.inner.read().get(key)?.object().cloned()
    }

    pub(crate) fn opaque(&self, key: KeyRef<'_, K::Kind>) -> Option<Arc<ObjectMeta>> {
        match self.inner.read().get(key)? {
            Entry::Fits(_) => None,
            Entry::Opaque { metadata, .. } => Some(Arc::clone(metadata)),
        }
    }

    pub(crate) fn freeze(&self) -> Frozen<Entry<K>> {
        self.inner.read().slab.freeze()
    }

    /// How many objects there are: those that fit, and those that do not.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.read();
        (inner.slab.len() - inner.opaque, inner.opaque)
    }

    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        self.inner.read().resource_version.clone()
    }

    pub(crate) fn index_panics(&self) -> u64 {
        self.index_panics.load(Ordering::Relaxed)
    }

    /// Puts the cached object in the place of an equal one, so that only one of them stays in memory.
    pub(crate) fn reuse(&self, decoded: &mut Decoded<K>) {
        let inner = self.inner.read();
        let Some(entry) = inner.get(KeyRef::from_metadata(decoded.metadata())) else { return };
        if let (Entry::Fits(cached), true) = (entry, entry.is_unchanged(decoded)) {
            let cached = Arc::clone(cached);
            drop(inner);
            *decoded = Decoded::Fits(cached);
        }
    }

    /// One step of the copy towards the server: objects, indices and version change together, then the handlers'
    /// queues get the events.
    ///
    /// Returns whether the store has been whole once.
    pub(crate) fn apply(&self, batch: Vec<Delta<K>>) -> bool {
        let mut changes = Changes::new();
        let mut writer = self.writer.lock();
        let mut rest = Vec::with_capacity(batch.len());
        let mut whole = false;
        for delta in batch {
            match delta {
                Delta::Replaced { objects, resource_version } => {
                    self.step(&mut writer, std::mem::take(&mut rest), &mut changes);
                    self.replace(&mut writer, objects, resource_version, &mut changes);
                    whole = true;
                }
                delta => rest.push(delta),
            }
        }
        self.step(&mut writer, rest, &mut changes);
        writer.outlets.send(std::mem::take(&mut changes.events), &changes.versions);
        if whole && !writer.synced {
            writer.synced = true;
            writer.outlets.synced();
        }
        let synced = writer.synced;
        drop(writer);
        // Only now go the objects that were replaced: freeing them takes as long as decoding them.
        drop(changes);
        synced
    }

    fn step(&self, writer: &mut Writer<K>, batch: Vec<Delta<K>>, changes: &mut Changes<K>) {
        if batch.is_empty() {
            return;
        }
        let version = newest(&batch);
        for delta in &batch {
            if let Delta::Applied(object) = delta {
                self.stage(writer, object);
            }
        }
        let mut inner = self.inner.write();
        for delta in batch {
            match delta {
                Delta::Applied(object) => inner.applied(object, &mut writer.stages, changes),
                Delta::Deleted(object) => inner.deleted(object, changes),
                Delta::Bookmark(_) | Delta::Replaced { .. } => {}
            }
        }
        inner.advance(version, changes);
    }

    fn replace(
        &self,
        writer: &mut Writer<K>,
        objects: Vec<Decoded<K>>,
        version: ResourceVersion,
        changes: &mut Changes<K>,
    ) {
        // Nobody else writes, so what is found here still holds below.
        let difference = self.inner.read().difference(&objects);
        for (object, unchanged) in objects.iter().zip(&difference.unchanged) {
            if !unchanged {
                self.stage(writer, object);
            }
        }
        let mut inner = self.inner.write();
        for slot in difference.gone {
            inner.gone(slot, None, changes);
        }
        changes.initial = !writer.synced;
        for (object, unchanged) in objects.into_iter().zip(difference.unchanged) {
            if unchanged {
                changes.garbage.push(object.into());
            } else {
                inner.put(object, &mut writer.stages, changes);
            }
        }
        changes.initial = false;
        inner.reach(version, changes);
    }

    fn stage(&self, writer: &mut Writer<K>, object: &Decoded<K>) {
        for stage in &mut writer.stages {
            let staged = match object {
                Decoded::Fits(object) => stage.stage(Ok(object)),
                Decoded::Opaque { metadata, .. } => stage.stage(Err(metadata)),
            };
            self.count_panic(staged);
        }
    }

    fn count_panic(&self, staged: Staged) {
        if staged == Staged::Panicked {
            self.index_panics.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds a handler's queue: what is there now, and then every change, without a gap or a repetition.
    pub(crate) fn add_outlet(&self, outlet: Outlet<K>) {
        let mut writer = self.writer.lock();
        let frozen = self.inner.read().slab.freeze();
        let version = self.resource_version();
        let synced = writer.synced;
        writer.outlets.add(outlet, frozen, version, synced);
    }

    /// Adds an index over what is there and what will come; returns its number.
    pub(crate) fn add_index<V: Eq + Hash + Send + Sync + 'static>(
        &self,
        mut stage: Box<dyn Stage<K>>,
    ) -> usize {
        let mut writer = self.writer.lock();
        let mut table: Box<dyn AnyTable> = Box::new(Table::<V>::new());
        let frozen = self.inner.read().slab.freeze();
        for (slot, entry) in frozen.iter() {
            self.count_panic(stage.stage(entry.known()));
            stage.commit(&mut *table, slot);
        }
        self.inner.write().tables.push(table);
        writer.stages.push(stage);
        writer.stages.len() - 1
    }

    /// The objects that the index of this number finds.
    pub(crate) fn indexed<V, Q>(&self, index: usize, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q> + Eq + Hash + 'static,
        Q: Eq + Hash + ?Sized,
    {
        let inner = self.inner.read();
        let slots = inner.table::<V>(index).slots(value);
        slots.iter().filter_map(|slot| inner.slab.get(*slot)?.object().cloned()).collect()
    }

    /// Whether there may be an object with this value that does not fit its type.
    pub(crate) fn indexed_opaque<V, Q>(&self, index: usize, value: &Q) -> bool
    where
        V: Borrow<Q> + Eq + Hash + 'static,
        Q: Eq + Hash + ?Sized,
    {
        let inner = self.inner.read();
        let table = inner.table::<V>(index);
        let opaque = |slot: &u32| inner.slab.get(*slot).is_some_and(Entry::is_opaque);
        table.has_unplaced() || (inner.opaque > 0 && table.slots(value).iter().any(opaque))
    }

    pub(crate) fn index_values<V: Clone + Eq + Hash + 'static>(&self, index: usize) -> Vec<V> {
        self.inner.read().table::<V>(index).values().cloned().collect()
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let index = self.by_namespace.get_or_init(|| {
            self.add_index::<String>(crate::index::by_metadata(|metadata| {
                metadata.namespace.clone()
            }))
        });
        self.indexed::<String, str>(*index, namespace)
    }
}

#[cfg(test)]
mod tests;
