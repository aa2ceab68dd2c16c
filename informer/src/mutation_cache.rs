//! [`MutationCache`]: a read cache that includes the caller's own writes at once.
//!
//! The writes are not put into the informer's store: the store must follow the server's history
//! step by step, and a write put there would be delivered to handlers and then undone by the next
//! older event. Instead the writes form an overlay over the store. A write is part of the overlay
//! until the store reaches its version, which is one comparison, because the store knows its
//! version.
//!
//! [`Overlay`] makes the decisions and is pure. This module holds the lock and calls the author's
//! code outside of it.

mod builder;
mod overlay;
mod read;
mod write;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::builder::MutationCacheBuilder;
use self::overlay::{Garbage, Overlay};
use self::write::{ObjectVersion, Write};
use crate::event::Event;
use crate::lister::Lister;
use crate::object::Object;
use crate::store::{Entry, Store};

/// Reads an informer's store and never returns an object older than the caller's own
/// [`written`](Self::written) state.
///
/// A store lags behind the server: a controller that has just created an object does not find it,
/// and creates another one. Report each write's response to this cache and read through it. For
/// each object it returns the newer of the written state and the [`Lister`]'s state, and it hides
/// objects that were [`deleted`](Self::deleted).
///
/// A write is remembered until the store reaches its version, by an event of this or any other
/// object, a bookmark or a list. From then on the store's state is returned, also if the store no
/// longer has the object. A write that is reported after that is ignored. This needs neither the
/// informer's events nor the end of a time limit; [`observe`](Self::observe) only frees memory
/// sooner.
///
/// An informer that has lost its server may never reach that version. So the number and the age of
/// the writes are limited by [`capacity`](MutationCacheBuilder::capacity) and
/// [`ttl`](MutationCacheBuilder::ttl). Beyond these limits this cache is as late as the store, and
/// [`forgotten`](Self::forgotten) counts it.
///
/// An object that is created and deleted while the informer has no watch has no event, and this
/// cache forgets the write when the store reaches its version: nothing enqueues the controller's
/// key then. While [`Lister::contains`] is false for an object that the controller has created, let
/// the reconciler return with a requeue after a minute, as `homeostat-resourceclaim` does.
///
/// Use this type where the content of a few objects matters. To wait until the store is not older
/// than the caller's writes, use
/// [`wait_for_version`](crate::SharedIndexInformer::wait_for_version). Where only numbers of
/// objects matter, use expectations.
///
/// A clone is another handle on the same memory. client-go's counterpart is `cache.MutationCache`;
/// `docs/store.md` lists the differences.
///
/// # Examples
///
/// ```
/// use homeostat_informer::MutationCache;
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// fn config_map(version: &str, owner: &str) -> ConfigMap {
///     let metadata = serde_json::json!({
///         "name": "a", "namespace": "n", "uid": "u", "resourceVersion": version,
///         "labels": {"owner": owner},
///     });
///     ConfigMap { metadata: serde_json::from_value(metadata).unwrap(), ..ConfigMap::default() }
/// }
///
/// // In a controller, these are an informer's `lister()` and `index()`.
/// let store = Store::<ConfigMap>::new();
/// let owner = |map: &ConfigMap| map.metadata.labels.as_ref()?.get("owner").cloned();
/// let by_owner = store.index(owner);
/// let cache = MutationCache::builder(store.lister()).build();
///
/// // The server has answered a create; the informer has not received the event yet.
/// cache.written(config_map("7", "eve"));
/// assert!(store.lister().get(("n", "a")).is_none());
/// assert!(cache.get(("n", "a")).is_some());
/// assert_eq!(cache.by_index(&by_owner, "eve").len(), 1);
///
/// // Another client has changed the object since, and the informer has received that event.
/// store.apply(config_map("9", "ann"));
/// assert_eq!(cache.get(("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("9"));
/// assert!(cache.by_index(&by_owner, "eve").is_empty());
/// ```
#[doc(alias = "NewIntegerResourceVersionMutationCache")]
pub struct MutationCache<K: Object> {
    shared: Arc<Shared<K>>,
}

/// The state that the clones of a cache share.
struct Shared<K: Object> {
    /// The informer's store.
    store: Arc<Store<K>>,
    /// Locked before the store's own lock, so that one read sees both at the same moment.
    overlay: Mutex<Overlay<K>>,
}

// === impl MutationCache ===

impl<K: Object> MutationCache<K> {
    /// Starts to configure a cache over the store that `lister` reads.
    pub fn builder(lister: Lister<K>) -> MutationCacheBuilder<K> {
        MutationCacheBuilder::new(lister)
    }

    /// Remembers the server's response to a create, an update or a patch, until the informer's
    /// store is as new.
    ///
    /// Calls may come in any order and late: an older state never replaces a newer one, and no
    /// state replaces the deletion of the same object. An object without a name or a
    /// `resourceVersion` is not a server's response and is ignored.
    ///
    /// # Examples
    ///
    /// A late response does not replace a newer one:
    ///
    /// ```
    /// use homeostat_informer::MutationCache;
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// fn config_map(version: &str) -> ConfigMap {
    ///     let metadata = serde_json::json!({"name": "a", "uid": "u", "resourceVersion": version});
    ///     let metadata = serde_json::from_value(metadata).unwrap();
    ///     ConfigMap { metadata, ..ConfigMap::default() }
    /// }
    ///
    /// let store = Store::<ConfigMap>::new();
    /// let cache = MutationCache::builder(store.lister()).build();
    /// cache.written(config_map("8"));
    /// cache.written(config_map("7"));
    /// assert_eq!(cache.get("a").unwrap().metadata.resource_version.as_deref(), Some("8"));
    /// assert_eq!(cache.remembered(), 1, "one write per object");
    /// ```
    #[doc(alias = "Mutation")]
    pub fn written(&self, object: impl Into<Arc<K>>) {
        let object = object.into();
        let Some(seen) = ObjectVersion::of(object.metadata()) else { return };
        self.remember(&seen, Write::written(&seen, Arc::clone(&object)));
    }

    /// Remembers that the server has deleted this object, and hides it from now on, whatever the
    /// store still has. An object of the same name with another uid stays visible.
    ///
    /// `object` is the server's response or the last known state. If the object still has
    /// finalizers, the server responds with an object that is only marked for deletion: report that
    /// with [`written`](Self::written).
    ///
    /// client-go has no counterpart: its cache cannot record the caller's own deletion.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::MutationCache;
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let json = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
    /// let map: ConfigMap = serde_json::from_str(json)?;
    /// let store = Store::<ConfigMap>::new();
    /// store.apply(map.clone());
    /// let cache = MutationCache::builder(store.lister()).build();
    /// cache.deleted(&map);
    /// assert!(cache.get("a").is_none(), "the informer still has it");
    /// assert!(store.lister().get("a").is_some());
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn deleted(&self, object: &K) {
        let Some(seen) = ObjectVersion::of(object.metadata()) else { return };
        let deleted = Write::deleted(&seen);
        let (stored, reached) = self
            .shared
            .store
            .view(|inner| (inner.get(seen.key()).cloned(), inner.resource_version.clone()));
        let uid = |stored: &Entry<K>| stored.metadata().uid.clone().unwrap_or_default();
        let is_there = stored.is_some_and(|stored| !deleted.is_other(&uid(&stored)));
        if is_there || !deleted.is_seen_gone(reached.as_ref()) {
            self.remember(&seen, deleted);
        }
    }

    /// Adds a write to the overlay, after the obsolete ones are removed.
    fn remember(&self, seen: &ObjectVersion<'_, K::Kind>, write: Write<K>) {
        // Dropped after the lock is released: `Drop` of an object is the author's code.
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let shared = &*self.shared;
        let mut overlay = shared.overlay.lock();
        overlay.prune(now, shared.store.resource_version().as_ref(), &mut garbage);
        overlay.put(seen.key().to_key(), write, &mut garbage);
    }

    /// Forgets the writes that `event` makes obsolete. Optional; meant for a handler of the
    /// informer.
    ///
    /// Reads return the same without it, but with it memory is freed at once and not at the next
    /// read or write. It also frees the memory of the caller's own deletions, which otherwise stay
    /// until their time to live ends.
    ///
    /// # Examples
    ///
    /// ```
    /// # use homeostat_informer::testing::ScriptedListWatch;
    /// # use homeostat_informer::{Event, MutationCache, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let cache = MutationCache::builder(pods.lister()).capacity(1000).build();
    /// let hook = cache.clone();
    /// let observe = move |event: Event<Pod>| hook.observe(&event);
    /// let subscription = pods.add_handler("own writes", observe);
    /// ```
    pub fn observe(&self, event: &Event<K>) {
        let is_deletion = matches!(event, Event::Deleted { .. } | Event::OpaqueDeleted { .. });
        let shared = &*self.shared;
        if !is_deletion && shared.overlay.lock().is_empty() {
            return;
        }
        let Some(seen) = ObjectVersion::of_event(event.metadata()) else { return };
        let mut garbage = Garbage::new();
        let now = Instant::now();
        let mut overlay = shared.overlay.lock();
        overlay.prune(now, shared.store.resource_version().as_ref(), &mut garbage);
        if is_deletion {
            overlay.is_gone(&seen, &mut garbage);
        } else {
            overlay.is_there(&seen, &mut garbage);
        }
    }

    /// Returns the number of remembered writes.
    ///
    /// Some of them may already be in the store: obsolete writes are removed at the next read or
    /// write.
    pub fn remembered(&self) -> usize {
        self.shared.overlay.lock().len()
    }

    /// Returns the number of writes that were forgotten for lack of room, or at the end of their
    /// time to live, before the store was known to have them.
    ///
    /// A higher [`capacity`](MutationCacheBuilder::capacity) prevents the first cause. The second
    /// one means that the informer is cut off: see its
    /// [status](crate::SharedIndexInformer::status).
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

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
