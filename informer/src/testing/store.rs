//! A cache without an informer.

use std::{fmt, hash::Hash, sync::Arc};

use crate::{
    delta::Delta,
    index::Index,
    list_watch::Decoded,
    lister::Lister,
    object::{Object, ObjectMeta, ResourceVersion},
    store,
};

/// A cache that a test fills by hand, for what reads listers and indices.
///
/// ```
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = Store::<Pod>::new();
/// let (lister, by_node) = (pods.lister(), pods.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone()));
/// let pod: Pod = serde_json::from_str(
///     r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"n","containers":[]}}"#,
/// )?;
/// pods.apply(pod);
/// assert!(lister.get(("b", "a")).is_some());
/// assert_eq!(by_node.get("n").len(), 1);
/// # Ok::<_, serde_json::Error>(())
/// ```
pub struct Store<K: Object> {
    store: Arc<store::Store<K>>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    /// An empty cache.
    pub fn new() -> Self {
        Self { store: Arc::new(store::Store::new()) }
    }

    /// Adds or replaces an object. As for an informer, one that is older than what is there, by its
    /// `resourceVersion`, is ignored.
    pub fn apply(&self, object: impl Into<Arc<K>>) {
        self.store.apply(vec![Delta::Applied(Decoded::Fits(object.into()))]);
    }

    /// Adds or replaces an object that does not fit its Rust type.
    pub fn apply_opaque(&self, metadata: impl Into<Arc<ObjectMeta>>) {
        let error = "made opaque by a test".into();
        let object = Decoded::Opaque { metadata: metadata.into(), error };
        self.store.apply(vec![Delta::Applied(object)]);
    }

    /// Removes an object.
    pub fn delete(&self, object: impl Into<Arc<K>>) {
        self.store.apply(vec![Delta::Deleted(Decoded::Fits(object.into()))]);
    }

    /// Replaces everything.
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = K>,
        version: impl Into<ResourceVersion>,
    ) {
        let objects = objects.into_iter().map(|object| Decoded::Fits(Arc::new(object))).collect();
        self.store.apply(vec![Delta::Replaced { objects, resource_version: version.into() }]);
    }

    /// Says how far the server has got, as a bookmark does.
    pub fn bookmark(&self, version: impl Into<ResourceVersion>) {
        self.store.apply(vec![Delta::Bookmark(version.into())]);
    }

    /// Reads the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.store))
    }

    /// As [`SharedIndexInformer::index`](crate::SharedIndexInformer::index).
    pub fn index<V, I>(&self, function: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::new(&self.store, function)
    }

    /// As [`SharedIndexInformer::index_by_metadata`](crate::SharedIndexInformer::index_by_metadata).
    pub fn index_by_metadata<V, I>(
        &self,
        function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
    ) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::by_metadata(&self.store, function)
    }
}

impl<K: Object> Default for Store<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("len", &self.store.count().0).finish_non_exhaustive()
    }
}
