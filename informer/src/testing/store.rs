//! [`Store`]: a cache without an informer.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::apply::Applier;
use crate::delta::{Batch, Delta};
use crate::index::Index;
use crate::list_watch::Decoded;
use crate::lister::Lister;
use crate::object::{Object, ObjectMeta, ResourceVersion};
use crate::store;

/// A cache that a test fills by hand, for code that reads listers and indices.
///
/// Changes are visible to readers when the call returns. It follows the rules of an informer's
/// store: versions are compared, an opaque object is kept, and a changed uid means another object.
///
/// Use it when only reads are under test. Use [`ScriptedListWatch`](super::ScriptedListWatch) with
/// an informer when handlers or waits are: this cache has no handlers.
///
/// # Examples
///
/// ```
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = Store::<Pod>::new();
/// let lister = pods.lister();
/// let by_node = pods.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
/// let pod: Pod = serde_json::from_str(
///     r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"n","containers":[]}}"#,
/// )?;
/// pods.apply(pod);
/// assert!(lister.get(("b", "a")).is_some());
/// assert_eq!(by_node.get("n").len(), 1);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[doc(alias = "NewIndexer")]
pub struct Store<K: Object> {
    store: Arc<store::Store<K>>,
    applier: Applier<K>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    /// Returns an empty cache.
    pub fn new() -> Self {
        let store = Arc::new(store::Store::new());
        Self { applier: Applier::new(Arc::clone(&store)), store }
    }

    /// Adds or replaces an object. Like an informer, it ignores an object whose `resourceVersion`
    /// is older than the stored one.
    ///
    /// An object without a `resourceVersion` always replaces the stored one.
    pub fn apply(&self, object: impl Into<Arc<K>>) {
        self.apply_delta(Delta::Applied(Decoded::Fits(object.into())));
    }

    /// Adds or replaces an object that does not fit its Rust type, of which only this metadata is
    /// known.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::ObjectMeta;
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = Store::<Pod>::new();
    /// let lister = pods.lister();
    /// pods.apply_opaque(ObjectMeta { name: Some("odd".into()), ..ObjectMeta::default() });
    /// assert_eq!(lister.opaque_len(), 1);
    /// ```
    pub fn apply_opaque(&self, metadata: impl Into<Arc<ObjectMeta>>) {
        let error = "opaque by test".into();
        let object = Decoded::Opaque { metadata: metadata.into(), error };
        self.apply_delta(Delta::Applied(object));
    }

    /// Removes an object.
    pub fn delete(&self, object: impl Into<Arc<K>>) {
        self.apply_delta(Delta::Deleted(Decoded::Fits(object.into())));
    }

    /// Replaces all objects, as a list at `version` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = Store::<Pod>::new();
    /// pods.apply(Pod::default());
    /// pods.replace([], "9");
    /// assert!(pods.lister().is_empty());
    /// assert_eq!(pods.lister().resource_version(), Some("9".into()));
    /// ```
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = K>,
        version: impl Into<ResourceVersion>,
    ) {
        let objects = objects.into_iter().map(|object| Decoded::Fits(Arc::new(object))).collect();
        self.apply_delta(Delta::Replaced { objects, resource_version: version.into() });
    }

    /// Raises the version of the cache, as a bookmark does.
    pub fn bookmark(&self, version: impl Into<ResourceVersion>) {
        self.apply_delta(Delta::Bookmark(version.into()));
    }

    fn apply_delta(&self, delta: Delta<K>) {
        self.applier.apply_batch(Batch::from(vec![delta]));
    }

    /// Returns a reader of this cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.store))
    }

    /// Adds an index over objects, like
    /// [`SharedIndexInformer::index`](crate::SharedIndexInformer::index).
    ///
    /// Objects that are already in the cache are indexed too.
    pub fn index<V, I>(&self, function: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::new(&self.store, function)
    }

    /// Adds an index over metadata, like
    /// [`SharedIndexInformer::index_by_metadata`](crate::SharedIndexInformer::index_by_metadata).
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
