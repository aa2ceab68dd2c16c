//! [`MutationCacheBuilder`] and the limits of a cache.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::overlay::Overlay;
use super::{MutationCache, Shared};
use crate::lister::Lister;
use crate::object::Object;

/// Configures a [`MutationCache`]. Made by [`MutationCache::builder`].
///
/// The cost of a larger capacity is memory: each write holds the written object until the store has
/// it or the write expires. Each [`by_index`](MutationCache::by_index) visits every remembered
/// write.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::MutationCache;
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let store = Store::<Pod>::new();
/// let cache = MutationCache::builder(store.lister())
///     .capacity(1000)
///     .ttl(Duration::from_secs(60))
///     .build();
/// assert_eq!(cache.remembered(), 0);
/// ```
#[must_use = "the cache is made by `build`"]
pub struct MutationCacheBuilder<K: Object> {
    lister: Lister<K>,
    ttl: Duration,
    capacity: usize,
}

/// The default time to live: 5 minutes, client-go's value. It covers several attempts to reopen a
/// watch after the longest back-off (30 s).
pub(super) const TTL: Duration = Duration::from_secs(5 * 60);

/// The default capacity: 100 writes, client-go's value. An informer lags a few milliseconds, and a
/// busy controller writes fewer objects in that time. A controller that writes more at once, or
/// writes while its informer is cut off, needs more.
pub(super) const CAPACITY: usize = 100;

// === impl MutationCacheBuilder ===

impl<K: Object> MutationCacheBuilder<K> {
    /// Starts with client-go's values.
    pub(super) fn new(lister: Lister<K>) -> Self {
        Self { lister, ttl: TTL, capacity: CAPACITY }
    }

    /// Sets the time to live of a write. The default is 5 minutes, client-go's value.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the maximum number of remembered writes, deletions included. At the limit, the oldest
    /// write is forgotten first. The default is 100, client-go's value; 0 turns the overlay off.
    pub fn capacity(mut self, writes: usize) -> Self {
        self.capacity = writes;
        self
    }

    /// Builds the cache.
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
