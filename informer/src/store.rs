//! [`Store`]: the copy of the server's objects, its indices, and the version it has reached, changed in one step.
//!
//! Readers share a lock that is held for a look-up, never for a scan: a list is a snapshot of copy-on-write chunks.
//! No lock is held while the author's code runs: what it computes from new objects is staged before the write lock is
//! taken, what has to be compared with its code is copied out, and what was replaced is dropped when the locks are
//! released.

pub(crate) mod entry;
mod inner;
pub(crate) mod postings;
pub(crate) mod slab;
mod write;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

pub(crate) use self::{entry::Entry, inner::Inner};
use self::{
    slab::Frozen,
    write::{Staging, Writer},
};
use crate::{
    dispatcher::Handler,
    index::TableRef,
    list_watch::Decoded,
    object::{KeyRef, Object, ObjectMeta, ResourceVersion},
};

/// The objects of one kind, by key, and in the order of their indices.
pub(crate) struct Store<K: Object> {
    /// What readers see.
    inner: RwLock<Inner<K>>,
    /// The write half: locked before `inner`, for one step.
    writer: Mutex<Writer<K>>,
    /// The space of the last step, for the next.
    staging: Mutex<Option<Staging<K>>>,
    /// The index by namespace, once somebody has asked for one.
    by_namespace: OnceLock<TableRef<Box<str>>>,
    /// How often the author's code panicked in an index.
    index_panics: AtomicU64,
    /// Told after each step.
    changed: watch::Sender<()>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    pub(crate) fn new() -> Self {
        Self {
            inner: RwLock::new(Inner::new()),
            writer: Mutex::new(Writer::new()),
            staging: Mutex::new(None),
            by_namespace: OnceLock::new(),
            index_panics: AtomicU64::new(0),
            changed: watch::Sender::new(()),
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

    /// What `read` makes of objects, indices and version as of one moment: under the lock, so no author's code.
    pub(crate) fn view<T>(&self, read: impl FnOnce(&Inner<K>) -> T) -> T {
        read(&self.inner.read())
    }

    pub(crate) fn index_panics(&self) -> u64 {
        self.index_panics.load(Ordering::Relaxed)
    }

    pub(crate) fn count_index_panics(&self, panics: u64) {
        self.index_panics.fetch_add(panics, Ordering::Relaxed);
    }

    pub(crate) fn index_count(&self) -> usize {
        self.inner.read().tables.len()
    }

    pub(crate) fn handlers(&self) -> Vec<Arc<Handler>> {
        self.writer.lock().handlers()
    }

    /// Changes after each step that ends after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
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

    /// The values of a table that have this hash, and what is read of the slots of each.
    ///
    /// Which of them are equal to what is looked for is decided by the author's code, after the lock is released.
    pub(crate) fn alike<V: Send + Sync + 'static, T>(
        &self,
        table: &TableRef<V>,
        hash: u64,
        read: impl Fn(&Inner<K>, &[u32]) -> T,
    ) -> Vec<(Arc<V>, T)> {
        self.inner.read().alike(table, hash, read)
    }

    /// The same for several hashes, as of one moment: the objects, with their slots.
    #[expect(clippy::type_complexity, reason = "a list of what `alike` returns")]
    pub(crate) fn alike_any<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
        hashes: &[u64],
    ) -> Vec<Vec<(Arc<V>, Vec<(u32, Arc<K>)>)>> {
        let inner = self.inner.read();
        let found = |hash: &u64| {
            let lists = inner.table(table).lists(*hash);
            lists.map(|(_, value, slots)| (Arc::clone(value), inner.numbered(slots))).collect()
        };
        hashes.iter().map(found).collect()
    }

    /// Whether there is an object whose values are not known.
    pub(crate) fn has_unplaced<V: Send + Sync + 'static>(&self, table: &TableRef<V>) -> bool {
        self.inner.read().table(table).has_unplaced()
    }

    pub(crate) fn index_values<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
    ) -> Vec<Arc<V>> {
        self.inner.read().table(table).values().cloned().collect()
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let by_namespace = self.by_namespace.get_or_init(|| {
            TableRef::by_metadata(self, |metadata| metadata.namespace.as_deref().map(Box::from))
        });
        let hash = by_namespace.hash(namespace);
        let alike = self.alike(by_namespace, hash, Inner::objects);
        TableRef::equal(alike, namespace).flatten().collect()
    }
}

#[cfg(test)]
mod tests;
