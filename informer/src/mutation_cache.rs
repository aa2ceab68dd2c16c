//! [`MutationCache`]: a cache that shows one's own writes at once.
//!
//! Why the informer is not told instead: what it holds must be the server's history, step by step, and a write that is
//! put into it would be told to handlers, and taken back by the next older event. So what was written lies *over* the
//! copy, and only as long as the copy has not got as far: that is one comparison, because the copy knows its version.
//!
//! [`Overlay`] decides, and is pure. Here is the lock, and what of the author's code must run outside of it.

mod overlay;

use std::{
    borrow::Borrow,
    fmt,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use self::overlay::{Garbage, Overlay, Own, Told};
use crate::{
    event::Event,
    index::Index,
    lister::Lister,
    object::{KeyRef, Object},
    store::{Entry, Store},
};

/// Reads an informer's cache, and never shows an object older than what was [`written`](Self::written) of it.
///
/// A cache is late: a controller that has just made an object does not find it, and makes another one. Tell this cache
/// what the server answered to a write, and read through it: of each object it shows the newer of the two states, the
/// written one and the [`Lister`]'s, and not what was [`deleted`](Self::deleted).
///
/// A written state is shown until the informer's cache has reached its version, by whatever way: its own event, a later
/// one of any object, a bookmark, a list. From then on the informer knows better, also if the object is not there any
/// more; what is told late, after that, is never shown. That takes neither the informer's events nor the end of a time
/// limit; [`observe`](Self::observe) only frees memory sooner.
///
/// An informer that has lost its server may never get there. So what is remembered has a bound and an end:
/// [`capacity`](MutationCacheBuilder::capacity) and [`ttl`](MutationCacheBuilder::ttl). Beyond them this cache is as
/// late as the informer's, and [`forgotten`](Self::forgotten) counts it.
///
/// Use this if a few objects matter by what is in them. If it is enough to wait until the cache is not older than one's
/// writes, [`wait_for`](crate::SharedIndexInformer::wait_for) is less; and if only numbers of objects matter,
/// expectations are.
///
/// A clone is one more handle on the same memory.
///
/// # Examples
///
/// ```
/// use homeostat_informer::{MutationCache, testing::Store};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// fn config_map(version: &str, owner: &str) -> ConfigMap {
///     let metadata = serde_json::json!({
///         "name": "a", "namespace": "n", "uid": "u", "resourceVersion": version, "labels": {"owner": owner},
///     });
///     ConfigMap { metadata: serde_json::from_value(metadata).unwrap(), ..ConfigMap::default() }
/// }
///
/// // In a controller, these are an informer's `lister()` and `index()`.
/// let store = Store::<ConfigMap>::new();
/// let by_owner = store.index(|map: &ConfigMap| map.metadata.labels.as_ref()?.get("owner").cloned());
/// let cache = MutationCache::builder(store.lister()).build();
///
/// // The server has answered a create, and the informer has not heard of it yet.
/// cache.written(config_map("7", "eve"));
/// assert!(store.lister().get(("n", "a")).is_none());
/// assert!(cache.get(("n", "a")).is_some());
/// assert_eq!(cache.by_index(&by_owner, "eve").len(), 1);
///
/// // Somebody else has changed it since: the informer knows better.
/// store.apply(config_map("9", "ann"));
/// assert_eq!(cache.get(("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("9"));
/// assert!(cache.by_index(&by_owner, "eve").is_empty());
/// ```
pub struct MutationCache<K: Object> {
    shared: Arc<Shared<K>>,
}

/// Settings of a [`MutationCache`].
#[must_use = "nothing is made before `build`"]
pub struct MutationCacheBuilder<K: Object> {
    lister: Lister<K>,
    ttl: Duration,
    capacity: usize,
}

struct Shared<K: Object> {
    /// The informer's.
    store: Arc<Store<K>>,
    /// Locked before the store's own lock, so that both are read as of one moment.
    overlay: Mutex<Overlay<K>>,
}

/// What was written of an object, and what the informer's cache has of it at the same moment.
struct Both<K: Object> {
    own: Own<K>,
    stored: Option<Entry<K>>,
}

/// Who reads a write of one's own must wait for the informer no longer than for a watch to be opened again after the
/// longest back-off, several times. Client-go's.
const TTL: Duration = Duration::from_secs(5 * 60);

/// Client-go's. An informer is some milliseconds late, so that is the writes of a busy controller in that time, and
/// more; a controller that writes more at once, or much while its informer is cut off, needs more.
const CAPACITY: usize = 100;

// === impl MutationCache ===

impl<K: Object> MutationCache<K> {
    /// A cache over what `lister` reads.
    pub fn builder(lister: Lister<K>) -> MutationCacheBuilder<K> {
        MutationCacheBuilder { lister, ttl: TTL, capacity: CAPACITY }
    }

    /// Remembers what the server answered to a create, an update or a patch, until the informer's cache is as new.
    ///
    /// The order of calls does not matter, and neither does how late one is: an older state never takes the place of a
    /// newer one, and no state that of a deletion. An object without a name or a `resourceVersion` is no answer of a
    /// server, and is not remembered.
    pub fn written(&self, object: impl Into<Arc<K>>) {
        let object = object.into();
        let Some(told) = Told::of(object.metadata()) else { return };
        self.remember(told, Own::written(told, Arc::clone(&object)));
    }

    /// Remembers that the server has answered a delete of this object, and that it is gone: it is not shown any more,
    /// whatever the informer's cache still says. An object of the same name with another uid is.
    ///
    /// The object may be what the server answered with, or what was known before. If it still has finalizers, the
    /// server answers with an object that is marked for deletion, and is not gone: that was [`written`](Self::written).
    pub fn deleted(&self, object: &K) {
        let Some(told) = Told::of(object.metadata()) else { return };
        let deleted = Own::deleted(told);
        let (stored, reached) = self
            .shared
            .store
            .view(|inner| (inner.get(told.key()).cloned(), inner.resource_version.clone()));
        let uid = |stored: &Entry<K>| stored.metadata().uid.clone().unwrap_or_default();
        let is_there = stored.is_some_and(|stored| !deleted.is_other(&uid(&stored)));
        if is_there || !deleted.is_seen_gone(reached.as_ref()) {
            self.remember(told, deleted);
        }
    }

    fn remember(&self, told: Told<'_, K::Kind>, own: Own<K>) {
        // Dropped after the lock is released, as below.
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let shared = &*self.shared;
        let mut overlay = shared.overlay.lock();
        overlay.prune(now, shared.store.resource_version().as_ref(), &mut garbage);
        overlay.put(told.key().to_key(), own, &mut garbage);
    }

    /// Forgets what this event of the informer has overtaken: for a handler, if one likes.
    ///
    /// What is shown is the same without it, as the type's description says; but memory is freed at once, and not when
    /// somebody reads or writes, and a deletion of one's own is not remembered until its time is over.
    ///
    /// ```
    /// # use homeostat_informer::{Event, MutationCache, SharedIndexInformer, testing::ScriptedListWatch};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let cache = MutationCache::builder(pods.lister()).capacity(1000).build();
    /// let hook = cache.clone();
    /// let subscription = pods.add_handler("own writes", move |event: Event<Pod>| hook.observe(&event));
    /// ```
    pub fn observe(&self, event: &Event<K>) {
        let is_deletion = matches!(event, Event::Deleted { .. } | Event::OpaqueDeleted { .. });
        let shared = &*self.shared;
        if !is_deletion && shared.overlay.lock().is_empty() {
            return;
        }
        let Some(told) = Told::of_event(event.metadata()) else { return };
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let mut overlay = shared.overlay.lock();
        overlay.prune(now, shared.store.resource_version().as_ref(), &mut garbage);
        if is_deletion {
            overlay.is_gone(told, &mut garbage);
        } else {
            overlay.is_there(told, &mut garbage);
        }
    }

    /// The newer state of the object of this key: as [`Lister::get`], and never older than what was written.
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
        let (own, stored) = shared.store.view(|inner| {
            overlay.prune(now, inner.resource_version.as_ref(), &mut garbage);
            let stored = inner.get(key);
            (overlay.look(key, stored.is_some(), &mut garbage), stored.cloned())
        });
        drop(overlay);
        match own {
            Some(own) => Both { own, stored }.newer(),
            None => stored?.object().cloned(),
        }
    }

    /// The objects that have this value in their newer state: as [`Index::get`], with what was written and has it, and
    /// without what the index still finds and was written without it, or deleted.
    ///
    /// The index' function is called with each object that was written and that the informer's cache does not show yet.
    /// If it panics, that object is left out, and [counted](crate::SharedIndexInformer::index_panics).
    ///
    /// # Panics
    /// If the index is another informer's.
    pub fn by_index<V, Q>(&self, index: &Index<K, V>, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q> + Eq + Hash + Send + Sync + 'static,
        Q: Eq + Hash + ?Sized,
    {
        let shared = &*self.shared;
        assert!(index.is_over(&shared.store), "the index is another informer's");
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
            let both =
                overlay.all().map(|(key, own)| Both { own, stored: inner.get(key).cloned() });
            (index.alike(inner, hash), both.collect::<Vec<_>>())
        });
        drop(overlay);
        let mut found = Index::equal(alike, value);
        for both in both {
            self.lay_over(&mut found, both, index, value);
        }
        found
    }

    /// Puts the newer state of one object in the place of what was found, if it has the value.
    fn lay_over<V, Q>(&self, found: &mut Vec<Arc<K>>, both: Both<K>, index: &Index<K, V>, value: &Q)
    where
        V: Borrow<Q> + Eq + Hash + Send + Sync + 'static,
        Q: Eq + Hash + ?Sized,
    {
        if !both.is_own() {
            return;
        }
        let stale = both.stored.as_ref().and_then(Entry::object);
        let place =
            stale.and_then(|stale| found.iter().position(|other| Arc::ptr_eq(other, stale)));
        let has_value = |object: &Arc<K>| {
            let has_value = catch_unwind(AssertUnwindSafe(|| index.has_value(object, value)));
            has_value.unwrap_or_else(|_| {
                self.shared.store.count_index_panics(1);
                false
            })
        };
        match (both.own.into_object().filter(has_value), place) {
            (Some(object), Some(place)) => found[place] = object,
            (Some(object), None) => found.push(object),
            (None, Some(place)) => drop(found.remove(place)),
            (None, None) => {}
        }
    }

    /// How many writes are remembered. They need not be ahead of the informer's cache: that is looked at when somebody
    /// reads or writes.
    pub fn remembered(&self) -> usize {
        self.shared.overlay.lock().len()
    }

    /// How many writes were forgotten because there was no room for them, or their time was over, before the informer's
    /// cache was known to show them. A higher [`capacity`](MutationCacheBuilder::capacity) is an answer to the first, a
    /// look at the [informer](crate::SharedIndexInformer::status) to the second.
    pub fn forgotten(&self) -> u64 {
        self.shared.overlay.lock().forgotten()
    }
}

impl<K: Object> Clone for MutationCache<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> fmt::Debug for MutationCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationCache")
            .field("remembered", &self.remembered())
            .field("forgotten", &self.forgotten())
            .finish_non_exhaustive()
    }
}

// === impl MutationCacheBuilder ===

impl<K: Object> MutationCacheBuilder<K> {
    /// How long a write is remembered at most. The default is five minutes.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How many writes are remembered at most, deletions included; what was written first is forgotten first. The
    /// default is 100.
    pub fn capacity(mut self, writes: usize) -> Self {
        self.capacity = writes;
        self
    }

    /// Makes the cache.
    pub fn build(self) -> MutationCache<K> {
        let store = Arc::clone(self.lister.store());
        let overlay = Mutex::new(Overlay::new(self.ttl, self.capacity));
        MutationCache { shared: Arc::new(Shared { store, overlay }) }
    }
}

impl<K: Object> fmt::Debug for MutationCacheBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationCacheBuilder")
            .field("ttl", &self.ttl)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

// === impl Both ===

impl<K: Object> Both<K> {
    /// Whether it is our write that counts. Nothing may be locked: an object's metadata is told by the author's code.
    fn is_own(&self) -> bool {
        self.stored.as_ref().is_none_or(|stored| self.own.is_newer_than(stored.metadata()))
    }

    fn newer(self) -> Option<Arc<K>> {
        if self.is_own() { self.own.into_object() } else { self.stored?.object().cloned() }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
