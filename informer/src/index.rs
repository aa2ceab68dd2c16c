//! [`Index`]: finds objects by a value that is computed from each of them.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::lister::Snapshot;
use crate::object::{Object, ObjectKey, ObjectMeta};
use crate::store::{Alike, Found, Inner, Store, TableId, TableRef, of_metadata};

/// Finds objects by a value that is computed from each of them; always in step with the
/// [`Lister`](crate::Lister).
///
/// The handle is typed by its values, so there is no index name to misspell. It keeps the index
/// readable after its informer has stopped. Values are computed when an object changes, never
/// during a look-up. No lock is held while the index function runs: it may use the informer, add
/// handlers and other indices.
///
/// A panic of the index function, or of `Hash` and `Eq` of its values, costs that object its entry
/// in this index and is counted: see [`has_opaque`](Self::has_opaque) and
/// [`index_panics`](crate::SharedIndexInformer::index_panics).
///
/// Use it to find objects by an owner, a node, a label or any other value that the object
/// determines. Use [`Lister::list_matching`](crate::Lister::list_matching) instead for a selector
/// that is known only at the call. A look-up takes one read lock, and copies one pointer per 128
/// objects found. An index costs some 20 bytes for each value of each object, and a list for each
/// distinct value.
///
/// A clone is another handle on the same index. The index is removed when its last handle is
/// dropped: from then on it costs neither time nor memory.
///
/// # Examples
///
/// ```
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let store = Store::<Pod>::new();
/// let by_node = store.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
/// let pod: Pod = serde_json::from_str(
///     r#"{"metadata":{"name":"a"},"spec":{"nodeName":"node-1","containers":[]}}"#,
/// )?;
/// store.apply(pod);
/// assert_eq!(by_node.get("node-1").len(), 1);
/// assert_eq!(by_node.values(), ["node-1"]);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[doc(alias = "Indexer")]
#[doc(alias = "IndexFunc")]
#[doc(alias = "Indexers")]
pub struct Index<K: Object, V> {
    /// The store whose objects are found. The index of another store has other tables.
    registered: Arc<Registered<K>>,
    /// The table in that store.
    table: TableRef<V>,
    /// The index function, for objects that are not in the store.
    function: Arc<Function<K, V>>,
}

/// The table of an index in its store. The last handle of the index removes it.
struct Registered<K: Object> {
    store: Arc<Store<K>>,
    id: TableId,
}

/// Pushes the values of an object, or returns false if they are not known.
///
/// The argument is the object, or its metadata if the object does not fit its type.
type Function<K, V> =
    dyn Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static;

// === impl Index ===

impl<K: Object, V: Eq + Hash + Send + Sync + 'static> Index<K, V> {
    /// Adds an index over objects. The values of an object that does not fit its type are unknown,
    /// which the function reports by returning false.
    pub(crate) fn new<I: IntoIterator<Item = V>>(
        store: &Arc<Store<K>>,
        function: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Self {
        let function = move |known: Result<&K, &ObjectMeta>, push: &mut dyn FnMut(V)| {
            let Ok(object) = known else { return false };
            function(object).into_iter().for_each(push);
            true
        };
        Self::of(store, Arc::new(function))
    }

    /// Adds an index over metadata, which is known for every object.
    pub(crate) fn by_metadata<I: IntoIterator<Item = V>>(
        store: &Arc<Store<K>>,
        function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
    ) -> Self {
        Self::of(store, Arc::new(of_metadata(function)))
    }

    fn of(
        store: &Arc<Store<K>>,
        function: Arc<
            impl Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
        >,
    ) -> Self {
        let table = TableRef::new(store, Arc::clone(&function));
        let registered = Registered { store: Arc::clone(store), id: table.id };
        Self { registered: Arc::new(registered), table, function }
    }

    fn store(&self) -> &Arc<Store<K>> {
        &self.registered.store
    }

    /// Returns the objects with this value, as of one moment. `value` is borrowed, not copied.
    ///
    /// The order has no meaning. Objects that do not fit their Rust type are not in the result:
    /// [`has_opaque`](Self::has_opaque) reports that they may be missing, and [`keys`](Self::keys)
    /// of an index over metadata contains them.
    ///
    /// `Hash` and `Eq` of the value run before and after the lock, never under it.
    ///
    /// # Panics
    ///
    /// Panics if `Hash` or `Eq` of the value panics.
    ///
    /// # Examples
    ///
    /// An object with several values is found by each:
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let store = Store::<Pod>::new();
    /// let by_owner = store.index(|pod: &Pod| {
    ///     let owners = pod.metadata.owner_references.clone().unwrap_or_default();
    ///     owners.into_iter().map(|owner| owner.uid).collect::<Vec<_>>()
    /// });
    /// let owner = |uid| {
    ///     serde_json::json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid})
    /// };
    /// let pod = serde_json::json!({
    ///     "metadata": {"name": "a", "ownerReferences": [owner("u1"), owner("u2")]},
    /// });
    /// store.apply(serde_json::from_value::<Pod>(pod)?);
    /// assert_eq!(by_owner.get("u1").len(), 1);
    /// assert_eq!(by_owner.get("u2").len(), 1);
    /// assert_eq!(by_owner.get_any(["u1", "u2"]).len(), 1, "each object once");
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    #[doc(alias = "ByIndex")]
    pub fn get<Q>(&self, value: &Q) -> Snapshot<K>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.found(value).map_or_else(Snapshot::empty, Snapshot::from)
    }

    /// Returns the objects with any of these values, each object once, as of one moment.
    ///
    /// Several calls of [`get`](Self::get) may see different versions of the cache, and return an
    /// object twice that has two of the values. The lock is held for one pointer per 128 objects;
    /// the objects of several values are joined without it.
    pub fn get_any<'q, Q>(&self, values: impl IntoIterator<Item = &'q Q>) -> Snapshot<K>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized + 'q,
    {
        let values: Vec<_> =
            values.into_iter().map(|value| (self.table.hash(value), value)).collect();
        let alike = self.store().alike_any(&self.table, values.iter().map(|(hash, _)| *hash));
        let pairs = values.iter().zip(alike);
        let found = pairs.filter_map(|((_, value), alike)| TableRef::equal(alike, *value));
        Snapshot::union(found.collect())
    }

    /// Returns the sorted keys of the objects with this value, including those that do not fit
    /// their Rust type.
    ///
    /// The keys of an opaque object are included where its value is known: in an index over
    /// metadata ([`index_by_metadata`](crate::SharedIndexInformer::index_by_metadata)). Use this
    /// for work that needs only names, such as queueing the objects of a node.
    #[doc(alias = "IndexKeys")]
    pub fn keys<Q>(&self, value: &Q) -> Vec<ObjectKey<K::Kind>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut keys: Vec<_> = self.get(value).keys().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns true if objects with this value may be missing in [`get`](Self::get) because they do
    /// not fit their Rust type.
    ///
    /// An index over metadata knows exactly. An index over objects cannot know the value of an
    /// object that does not fit: while there is one, this returns true for every value. The same
    /// holds for an object whose index function panicked.
    ///
    /// A controller that counts the objects with a value, and creates or deletes others by that
    /// count, must not act while this returns true.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use homeostat_informer::ObjectMeta;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let store = Store::<Pod>::new();
    /// let by_node = store.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
    /// let app = |metadata: &ObjectMeta| metadata.labels.as_ref()?.get("app").cloned();
    /// let by_app = store.index_by_metadata(app);
    /// let metadata = ObjectMeta {
    ///     name: Some("a".into()),
    ///     labels: Some([("app".to_owned(), "web".to_owned())].into()),
    ///     ..ObjectMeta::default()
    /// };
    /// store.apply_opaque(metadata);
    /// assert!(by_node.has_opaque("node-1"), "its node is not known");
    /// assert!(by_app.has_opaque("web"));
    /// assert!(!by_app.has_opaque("shop"), "its labels are known");
    /// assert_eq!(by_app.keys("web").len(), 1);
    /// ```
    pub fn has_opaque<Q>(&self, value: &Q) -> bool
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.store().has_unplaced(&self.table)
            || self.found(value).is_some_and(|found| found.opaque > 0)
    }

    fn found<Q>(&self, value: &Q) -> Option<Found<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        TableRef::equal(self.store().alike(&self.table, self.table.hash(value)), value)
    }

    /// Returns the values that at least one object has, in no particular order.
    ///
    /// Clones each value, after the lock is released. Takes time in proportion to the values.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.store().index_values(&self.table).iter().map(|value| V::clone(value)).collect()
    }

    /// Returns true if this is an index over the objects of `store`.
    pub(crate) fn is_over(&self, store: &Arc<Store<K>>) -> bool {
        Arc::ptr_eq(self.store(), store)
    }

    /// Returns the hash that the table uses for a value. Runs the author's `Hash`, so no lock may
    /// be held.
    pub(crate) fn hash<Q>(&self, value: &Q) -> u64
    where
        V: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.hash(value)
    }

    /// Returns the objects that may have a value with this hash: the first half of
    /// [`get`](Self::get), under the lock.
    pub(crate) fn alike(&self, inner: &Inner<K>, hash: u64) -> Alike<V, Found<K>> {
        inner.alike(&self.table, hash)
    }

    /// Returns the objects of `alike` that have this value: the second half of [`get`](Self::get).
    pub(crate) fn equal<Q>(alike: Alike<V, Found<K>>, value: &Q) -> Snapshot<K>
    where
        V: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        TableRef::equal(alike, value).map_or_else(Snapshot::empty, Snapshot::from)
    }

    /// Returns true if this object has the value; it need not be in the store. Runs the author's
    /// code.
    pub(crate) fn has_value<Q>(&self, object: &K, value: &Q) -> bool
    where
        V: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut found = false;
        let mut look = |own: V| {
            let own: &Q = own.borrow();
            found |= own == value;
        };
        (self.function)(Ok(object), &mut look) && found
    }
}

impl<K: Object, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self {
            registered: Arc::clone(&self.registered),
            table: self.table.clone(),
            function: Arc::clone(&self.function),
        }
    }
}

impl<K: Object, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

// === impl Registered ===

impl<K: Object> Drop for Registered<K> {
    fn drop(&mut self) {
        self.store.remove_index(self.id);
    }
}
