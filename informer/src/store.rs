//! [`Store`]: the copy of the server's objects, its indices, and the version it has reached,
//! changed in one step.
//!
//! Readers share a lock that is held for a look-up, never for a scan: a list is a snapshot of
//! copy-on-write chunks. No lock is held while the author's code runs: index values of new objects
//! are staged before the write lock is taken, values to compare are copied out, and replaced
//! objects are dropped after the locks are released.
//!
//! # Locks
//!
//! `writer` is locked before `inner`, never the other way round. A step holds `writer` from the
//! commit until its changes are in the handlers' queues; it holds `inner` only for the commit, so
//! readers do not wait for the delivery.
//!
//! # Modules
//!
//! * `inner` is the data: entries, a hash table of their keys, the index tables.
//! * `write` runs a step: stage, lock, commit, unlock, drop; `writer` is the state of its lock.
//! * `indices` adds and removes indices.
//! * `staging` and `stage` run the author's index functions; `table`, `postings` and `numbers` hold
//!   their results.
//! * `cow_vec` makes snapshots cheap; `entry` turns a change of one object into an event; `stamp`
//!   compares two states of one object; `garbage` is what must be dropped without a lock.

pub(crate) mod cow_vec;
pub(crate) mod entry;
mod garbage;
mod indices;
mod inner;
mod numbers;
mod postings;
mod stage;
mod staging;
mod stamp;
mod table;
mod table_ref;
mod write;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

pub(crate) use self::entry::Entry;
pub(crate) use self::inner::Inner;
pub(crate) use self::postings::Found;
use self::staging::Staging;
pub(crate) use self::table_ref::{Alike, TableId, TableRef, of_metadata};
pub(crate) use self::write::Step;
use self::writer::Writer;
use crate::list_watch::Decoded;
use crate::object::{KeyRef, Object, ObjectMeta, ResourceVersion};

/// The objects of one kind, by key and by index value.
///
/// Shared by the applier, which is its only writer, and by every lister and index. Each method
/// takes and releases its locks itself, except [`pause`](Self::pause) and the two that return a
/// [`Step`].
pub(crate) struct Store<K: Object> {
    /// The data that readers see.
    inner: RwLock<Inner<K>>,
    /// The write half: locked before `inner`, for one step.
    writer: Mutex<Writer<K>>,
    /// The empty staging area of the last step: its memory is used for the next one. Locked alone.
    staging: Mutex<Option<Staging<K>>>,
    /// The index by namespace, created by the first look-up.
    by_namespace: OnceLock<TableRef<Box<str>>>,
    /// The number of panics of the author's index functions.
    index_panics: AtomicU64,
    /// Notified after each step.
    changed: watch::Sender<()>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    /// Creates an empty store without a version and without indices.
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

    /// Returns the object, or `None` if there is none or if it is opaque.
    ///
    /// Clones one `Arc` under the read lock.
    pub(crate) fn get(&self, key: KeyRef<'_, K::Kind>) -> Option<Arc<K>> {
        self.inner.read().get(key)?.object().cloned()
    }

    /// Returns the metadata of an opaque object.
    pub(crate) fn opaque(&self, key: KeyRef<'_, K::Kind>) -> Option<Arc<ObjectMeta>> {
        match self.inner.read().get(key)? {
            Entry::Fits(_) => None,
            Entry::Opaque(opaque) => Some(Arc::clone(&opaque.metadata)),
        }
    }

    /// Returns all entries at this moment. Copies one pointer per chunk.
    pub(crate) fn freeze(&self) -> Found<K> {
        self.inner.read().found()
    }

    /// Returns all entries, and the version that the store had reached with them.
    pub(crate) fn freeze_with_version(&self) -> (Found<K>, Option<ResourceVersion>) {
        let inner = self.inner.read();
        (inner.found(), inner.resource_version.clone())
    }

    /// Returns the number of objects that fit their type, and the number of opaque ones.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.read();
        (inner.entries.len() - inner.opaque, inner.opaque)
    }

    /// Returns the version that the store has reached; `None` before the initial list.
    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        self.inner.read().resource_version.clone()
    }

    /// Calls `read` with the objects, indices and version at one moment. Runs under the lock:
    /// `read` must not call the author's code.
    pub(crate) fn view<T>(&self, read: impl FnOnce(&Inner<K>) -> T) -> T {
        read(&self.inner.read())
    }

    /// Returns the number of panics of index functions since the store was made.
    pub(crate) fn index_panics(&self) -> u64 {
        self.index_panics.load(Ordering::Relaxed)
    }

    /// Adds to that number.
    pub(crate) fn count_index_panics(&self, panics: u64) {
        self.index_panics.fetch_add(panics, Ordering::Relaxed);
    }

    /// Returns the number of indices, the one by namespace included.
    pub(crate) fn index_count(&self) -> usize {
        self.inner.read().tables.len()
    }

    /// Wakes the tasks that wait for a change.
    pub(crate) fn notify_changed(&self) {
        // Without a receiver this does nothing. A receiver subscribes before it looks at the store.
        let _without_receivers: Result<(), _> = self.changed.send(());
    }

    /// Returns a receiver that is notified after each later step.
    ///
    /// Subscribe first, then look at the store, then wait: a step between the look and the wait is
    /// not missed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Replaces an equal object by the cached one, so that only one copy stays in memory.
    ///
    /// A relist of unchanged objects then frees the new copies at once, while the pages still
    /// arrive.
    pub(crate) fn reuse(&self, decoded: &mut Decoded<K>) {
        let inner = self.inner.read();
        let Some(entry) = inner.get(KeyRef::from_metadata(decoded.metadata())) else { return };
        if let (Entry::Fits(cached), true) = (entry, entry.is_unchanged(decoded)) {
            let cached = Arc::clone(cached);
            drop(inner);
            *decoded = Decoded::Fits(cached);
        }
    }

    /// Returns the values of a table that have this hash, and the entries of each. Copies one
    /// pointer per chunk.
    ///
    /// The author's code compares them with the requested value after the lock is released.
    pub(crate) fn alike<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
        hash: u64,
    ) -> Alike<V, Found<K>> {
        self.inner.read().alike(table, hash)
    }

    /// Returns the same for several hashes at one moment.
    pub(crate) fn alike_any<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
        hashes: impl Iterator<Item = u64>,
    ) -> Vec<Alike<V, Found<K>>> {
        let inner = self.inner.read();
        hashes.map(|hash| inner.alike(table, hash)).collect()
    }

    /// Returns true if the values of at least one object are not known.
    pub(crate) fn has_unplaced<V: Send + Sync + 'static>(&self, table: &TableRef<V>) -> bool {
        self.inner.read().table(table).has_unplaced()
    }

    /// Returns the values that at least one object has. No value is cloned, only its pointer.
    pub(crate) fn index_values<V: Send + Sync + 'static>(
        &self,
        table: &TableRef<V>,
    ) -> Vec<Arc<V>> {
        self.inner.read().table(table).values().cloned().collect()
    }

    /// Adds the index by namespace, unless there is one.
    ///
    /// It costs one posting per object and is therefore not there from the start: an informer of
    /// one namespace does not need it.
    pub(crate) fn index_by_namespace(&self) -> &TableRef<Box<str>> {
        self.by_namespace.get_or_init(|| {
            TableRef::by_metadata(self, |metadata| metadata.namespace.as_deref().map(Box::from))
        })
    }

    /// Returns the entries of a namespace. The first call adds the index.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Option<Found<K>> {
        let by_namespace = self.index_by_namespace();
        TableRef::equal(self.alike(by_namespace, by_namespace.hash(namespace)), namespace)
    }

    /// Returns the number of places for objects and index values, used or not.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.inner.read().capacity()
    }
}
