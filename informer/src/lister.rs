//! [`Lister`]: reading the cache.

mod snapshot;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use homeostat_core::LabelSelector;
use kube_core::{Selector, SelectorExt};

pub use self::snapshot::{Snapshot, SnapshotIter};
use crate::object::{KeyRef, Object, ObjectKey, ObjectMeta, ResourceVersion};
use crate::store::Store;

/// Reads an informer's cache. The objects are shared and never change.
///
/// A look-up allocates nothing and sends no request. A lister stays readable after its informer has
/// stopped; it does not keep the informer running.
///
/// Use it wherever a controller reads objects of a kind that it follows. Use a client's `get`
/// instead when a decision needs the server's newest state, for example before an irreversible
/// action, and [`MutationCache`](crate::MutationCache) when the caller must see its own writes. To
/// find objects by something else than their key, use an [`Index`](crate::Index).
///
/// A clone copies one pointer. Each look-up takes the store's read lock for a hash table look-up; a
/// writer holds the lock while it applies one batch.
///
/// # Examples
///
/// ```
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let store = Store::<ConfigMap>::new();
/// let maps = store.lister();
/// let map: ConfigMap = serde_json::from_str(r#"{"metadata":{"name":"a","namespace":"n"}}"#)?;
/// store.apply(map);
///
/// assert!(maps.get(("n", "a")).is_some());
/// assert_eq!(maps.list().iter().count(), 1);
/// assert!(maps.list_in("other").is_empty());
/// # Ok::<_, serde_json::Error>(())
/// ```
#[doc(alias = "GenericLister")]
#[doc(alias = "Indexer")]
pub struct Lister<K: Object> {
    /// The informer's store. The lister holds only this, so it does not keep a task running.
    store: Arc<Store<K>>,
}

/// Decides by the labels of an object. Implemented by [`LabelSelector`] and kube's [`Selector`].
pub trait MatchLabels {
    /// Returns true if an object with these labels matches.
    fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool;
}

// === impl Lister ===

impl<K: Object> Lister<K> {
    pub(crate) fn new(store: Arc<Store<K>>) -> Self {
        Self { store }
    }

    pub(crate) fn store(&self) -> &Arc<Store<K>> {
        &self.store
    }

    /// Returns the object for `key`: a `&ObjectKey`, `(namespace, name)`, `"namespace/name"`, or a
    /// `name` alone for an object without namespace.
    ///
    /// Returns `None` if there is no such object, or if it does not fit its Rust type;
    /// [`opaque`](Self::opaque) distinguishes the two cases.
    ///
    /// The result is shared with the cache: the call clones one `Arc`. Before the initial list is
    /// in the cache every call returns `None`, so wait for the sync first.
    ///
    /// # Examples
    ///
    /// The forms of a key:
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use homeostat_informer::ObjectKey;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Node};
    ///
    /// let maps = Store::<ConfigMap>::new();
    /// let map: ConfigMap = serde_json::from_str(r#"{"metadata":{"name":"a","namespace":"n"}}"#)?;
    /// let key = ObjectKey::from_metadata(&map.metadata);
    /// maps.apply(map);
    /// assert!(maps.lister().get(&key).is_some());
    /// assert!(maps.lister().get(("n", "a")).is_some());
    /// assert!(maps.lister().get("n/a").is_some());
    ///
    /// let nodes = Store::<Node>::new();
    /// nodes.apply(serde_json::from_str::<Node>(r#"{"metadata":{"name":"node-1"}}"#)?);
    /// assert!(nodes.lister().get("node-1").is_some());
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    #[doc(alias = "GetByKey")]
    pub fn get<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> Option<Arc<K>> {
        self.store.get(key.into())
    }

    /// Returns true if there is an object for `key`, also if it does not fit its Rust type.
    ///
    /// Use it before a create: an object that does not fit exists as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::ObjectMeta;
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// let store = Store::<Node>::new();
    /// store.apply_opaque(ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() });
    /// let nodes = store.lister();
    /// assert!(nodes.contains("a") && nodes.get("a").is_none());
    /// ```
    pub fn contains<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> bool {
        let key = key.into();
        self.store.view(|inner| inner.get(key).is_some())
    }

    /// Calls `read` with the object for `key`, and returns the result. No lock is held while `read`
    /// runs.
    ///
    /// Use it to read one field without a variable for the object. It costs the same as
    /// [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let store = Store::<Pod>::new();
    /// let json = r#"{"metadata":{"name":"a"},"spec":{"nodeName":"x","containers":[]}}"#;
    /// store.apply(serde_json::from_str::<Pod>(json)?);
    /// let node = store.lister().get_with("a", |pod| pod.spec.as_ref()?.node_name.clone());
    /// assert_eq!(node.flatten().as_deref(), Some("x"));
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn get_with<'a, R>(
        &self,
        key: impl Into<KeyRef<'a, K::Kind>>,
        read: impl FnOnce(&K) -> R,
    ) -> Option<R> {
        self.get(key).map(|object| read(&object))
    }

    /// Returns the metadata of the object for `key`, if the object exists and does not fit its Rust
    /// type.
    ///
    /// Call it when [`get`](Self::get) returns `None` and the caller would create the object: an
    /// opaque object exists, and a create of its name fails with 409 `AlreadyExists`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use homeostat_informer::ObjectMeta;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let store = Store::<Pod>::new();
    /// let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
    /// store.apply_opaque(metadata);
    /// let pods = store.lister();
    /// assert!(pods.get("a").is_none());
    /// assert!(pods.opaque("a").is_some());
    /// assert_eq!((pods.len(), pods.opaque_len()), (0, 1));
    /// ```
    pub fn opaque<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> Option<Arc<ObjectMeta>> {
        self.store.opaque(key.into())
    }

    /// Returns all objects that fit their Rust type.
    ///
    /// All objects of the result are from the same version of the cache. The call copies one
    /// pointer per 128 objects; no object is copied.
    #[doc(alias = "List")]
    pub fn list(&self) -> Snapshot<K> {
        Snapshot::from(self.store.freeze())
    }

    /// Returns the sorted keys of all objects, including those that do not fit their Rust type.
    ///
    /// Copies each key, without a lock.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey<K::Kind>> {
        let mut keys: Vec<_> = self.list().keys().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the objects in a namespace that fit their Rust type.
    ///
    /// The first call builds an index by namespace, which the informer maintains from then on;
    /// [`index_by_namespace`](Self::index_by_namespace) builds it up front. Neither building it nor
    /// a call blocks the informer.
    ///
    /// All objects are from the same version of the cache, in no particular order. The call copies
    /// one pointer per 128 objects of the namespace; no object is copied.
    #[doc(alias = "ByNamespace")]
    pub fn list_in(&self, namespace: &str) -> Snapshot<K> {
        self.store.in_namespace(namespace).map_or_else(Snapshot::empty, Snapshot::from)
    }

    /// Builds the index by namespace, which [`list_in`](Self::list_in) uses. Does nothing if there
    /// is one.
    ///
    /// Call it before the informer starts, so that no reconcile waits while the index of a full
    /// cache is built.
    pub fn index_by_namespace(&self) {
        self.store.index_by_namespace();
    }

    /// Returns the objects in a namespace, or in all of them, that fit their Rust type and whose
    /// labels match. The selector is a [`LabelSelector`], which is parsed from kubectl's text, or
    /// kube's [`Selector`].
    ///
    /// The call compares the labels of every object, without a lock. Where that is too slow, use an
    /// [`Index`](crate::Index) over the labels that matter.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::Store;
    /// use homeostat_informer::{Expression, LabelSelector, Selector};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let store = Store::<Pod>::new();
    /// let json = r#"{"metadata":{"name":"a","namespace":"shop","labels":{"app":"web"}}}"#;
    /// store.apply(serde_json::from_str::<Pod>(json)?);
    /// let web = Selector::from_iter([Expression::Equal("app".into(), "web".into())]);
    /// assert_eq!(store.lister().list_matching(Some("shop"), &web).len(), 1);
    /// assert!(store.lister().list_matching(Some("other"), &web).is_empty());
    ///
    /// let web = LabelSelector::parse("app in (web, api)")?;
    /// assert_eq!(store.lister().list_matching(None, &web).len(), 1);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn list_matching(
        &self,
        namespace: Option<&str>,
        selector: &impl MatchLabels,
    ) -> Snapshot<K> {
        let none = BTreeMap::new();
        let matches = |object: &K| {
            selector.matches_labels(object.metadata().labels.as_ref().unwrap_or(&none))
        };
        let all = match namespace {
            Some(namespace) => self.list_in(namespace),
            None => self.list(),
        };
        all.filter(matches)
    }

    /// Returns the number of objects that fit their Rust type.
    ///
    /// Takes constant time: the store counts opaque objects as it changes.
    pub fn len(&self) -> usize {
        self.store.count().0
    }

    /// Returns true if no object fits its Rust type.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of objects that do not fit their Rust type.
    ///
    /// A count above 0 usually means that the Rust type is older or newer than the CRD, or that a
    /// [transform](crate::InformerBuilder::transform) panicked. Takes constant time.
    pub fn opaque_len(&self) -> usize {
        self.store.count().1
    }

    /// Returns the server's version that the cache has reached; `None` before the initial list.
    ///
    /// It advances with lists, events and bookmarks, so it can be higher than the version of any
    /// object in the cache. See [`wait_for_version`](crate::SharedIndexInformer::wait_for_version)
    /// to wait for one.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.store.resource_version()
    }
}

impl<K: Object> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store) }
    }
}

impl<K: Object> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("len", &self.len()).finish_non_exhaustive()
    }
}

// === impl MatchLabels ===

impl MatchLabels for LabelSelector {
    fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(labels)
    }
}

impl MatchLabels for Selector {
    fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(labels)
    }
}
