//! Reads of a [`MutationCache`]: the store's state, or the write if that is newer.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use homeostat_core::user_code;
use tokio::time::Instant;

use super::MutationCache;
use super::overlay::Garbage;
use super::write::Write;
use crate::index::Index;
use crate::lister::Snapshot;
use crate::object::{KeyRef, Object};
use crate::store::Entry;

/// A write and the store's state of the same object, read at the same moment.
struct Versions<K: Object> {
    write: Write<K>,
    stored: Option<Entry<K>>,
}

// === impl MutationCache ===

impl<K: Object> MutationCache<K> {
    /// Returns the newer state of the object for `key`, or `None`: like
    /// [`Lister::get`](crate::Lister::get), but never older than the caller's write.
    ///
    /// While no write is remembered this costs one lock more than that. Returns `None` for an
    /// object that does not fit its Rust type.
    #[doc(alias = "GetByKey")]
    pub fn get<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> Option<Arc<K>> {
        let key = key.into();
        let shared = &*self.shared;
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let mut overlay = shared.overlay.lock();
        if overlay.is_empty() {
            drop(overlay);
            return shared.store.get(key);
        }
        let (write, stored) = shared.store.view(|inner| {
            overlay.prune(now, inner.resource_version.as_ref(), &mut garbage);
            let stored = inner.get(key);
            (overlay.look(key, stored.is_some(), &mut garbage), stored.cloned())
        });
        drop(overlay);
        match write {
            Some(write) => Versions { write, stored }.newer(),
            None => stored?.object().cloned(),
        }
    }

    /// Returns the objects whose newer state has this value: like [`Index::get`], plus written
    /// objects with the value, without objects that were written without it or deleted.
    ///
    /// The index function is called for each written object that the store does not show yet. If it
    /// panics, that object is skipped and [counted](crate::SharedIndexInformer::index_panics).
    ///
    /// The write and the store are read at the same moment; the index function runs after the locks
    /// are released.
    ///
    /// # Panics
    /// Panics if `index` belongs to another informer.
    #[doc(alias = "ByIndex")]
    pub fn by_index<V, Q>(&self, index: &Index<K, V>, value: &Q) -> Snapshot<K>
    where
        V: Borrow<Q> + Eq + Hash + Send + Sync + 'static,
        Q: Eq + Hash + ?Sized,
    {
        let shared = &*self.shared;
        assert!(index.is_over(&shared.store), "the index belongs to another informer");
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let hash = index.hash(value);
        let mut overlay = shared.overlay.lock();
        if overlay.is_empty() {
            drop(overlay);
            return index.get(value);
        }
        let (alike, both) = shared.store.view(|inner| {
            overlay.prune(now, inner.resource_version.as_ref(), &mut garbage);
            let both = overlay
                .all()
                .map(|(key, write)| Versions { write, stored: inner.get(key).cloned() });
            (index.alike(inner, hash), both.collect::<Vec<_>>())
        });
        drop(overlay);
        let found = Index::equal(alike, value);
        let newer: Vec<_> = both.into_iter().filter(Versions::is_write_newer).collect();
        if newer.is_empty() {
            return found;
        }
        let mut found = found.to_vec();
        for both in newer {
            self.lay_over(&mut found, both, index, value);
        }
        Snapshot::from_objects(found)
    }

    /// Replaces one object in `found` by its newer state. Removes the object if that state lacks
    /// the value, and adds it if only that state has the value.
    fn lay_over<V, Q>(
        &self,
        found: &mut Vec<Arc<K>>,
        both: Versions<K>,
        index: &Index<K, V>,
        value: &Q,
    ) where
        V: Borrow<Q> + Eq + Hash + Send + Sync + 'static,
        Q: Eq + Hash + ?Sized,
    {
        let stale = both.stored.as_ref().and_then(Entry::object);
        let place =
            stale.and_then(|stale| found.iter().position(|other| Arc::ptr_eq(other, stale)));
        let has_value = |object: &Arc<K>| {
            let has_value = user_code("index", || index.has_value(object, value));
            has_value.unwrap_or_else(|_| {
                self.shared.store.count_index_panics(1);
                false
            })
        };
        match (both.write.into_object().filter(has_value), place) {
            (Some(object), Some(place)) => found[place] = object,
            (Some(object), None) => found.push(object),
            (None, Some(place)) => drop(found.remove(place)),
            (None, None) => {}
        }
    }
}

// === impl Versions ===

impl<K: Object> Versions<K> {
    /// Returns true if the write is newer than the store's state.
    ///
    /// Must be called without a lock: it reads object metadata, which is the author's code.
    fn is_write_newer(&self) -> bool {
        self.stored.as_ref().is_none_or(|stored| self.write.is_newer_than(stored.metadata()))
    }

    /// Returns the newer of the two states; `None` if that is a deletion or an opaque object.
    fn newer(self) -> Option<Arc<K>> {
        if self.is_write_newer() {
            self.write.into_object()
        } else {
            self.stored?.object().cloned()
        }
    }
}
