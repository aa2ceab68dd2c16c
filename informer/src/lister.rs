//! [`Lister`] and [`Snapshot`]: reading the cache.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube_core::{Selector, SelectorExt};

use crate::{
    object::{KeyRef, Object, ObjectMeta, ResourceVersion},
    store::{Entry, Store, slab::Frozen},
};

/// Reads an informer's cache. What it hands out is shared and never changes.
///
/// Looking an object up allocates nothing. A lister stays readable after its informer has stopped; it does not keep
/// the informer running.
pub struct Lister<K: Object> {
    store: Arc<Store<K>>,
}

/// All objects as of one moment. It costs a pointer per 128 objects, and holds up nobody.
pub struct Snapshot<K: Object> {
    frozen: Frozen<Entry<K>>,
}

// === impl Lister ===

impl<K: Object> Lister<K> {
    pub(crate) fn new(store: Arc<Store<K>>) -> Self {
        Self { store }
    }

    pub(crate) fn store(&self) -> &Arc<Store<K>> {
        &self.store
    }

    /// The object of this key: a `&ObjectKey`, `(namespace, name)`, or a `name` alone for what lives in no namespace.
    ///
    /// `None` means that there is none, or that it does not fit its Rust type; [`opaque`](Self::opaque) tells.
    pub fn get<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> Option<Arc<K>> {
        self.store.get(key.into())
    }

    /// What `read` makes of the object of this key. Nothing is locked meanwhile.
    pub fn get_with<'a, R>(
        &self,
        key: impl Into<KeyRef<'a, K::Kind>>,
        read: impl FnOnce(&K) -> R,
    ) -> Option<R> {
        self.get(key).map(|object| read(&object))
    }

    /// The metadata of the object of this key, if there is one that does not fit its Rust type.
    pub fn opaque<'a>(&self, key: impl Into<KeyRef<'a, K::Kind>>) -> Option<Arc<ObjectMeta>> {
        self.store.opaque(key.into())
    }

    /// All objects that fit their Rust type.
    pub fn list(&self) -> Snapshot<K> {
        Snapshot { frozen: self.store.freeze() }
    }

    /// All objects in a namespace that fit their Rust type.
    ///
    /// The first call builds an index, which the informer keeps up to date from then on: listers that never ask do not
    /// pay for it. Neither the building nor a call holds up the informer.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        self.store.in_namespace(namespace)
    }

    /// All objects in a namespace, or in all of them, that fit their Rust type and whose labels match.
    ///
    /// Looks at the labels of each. If that is too slow, an [`Index`](crate::Index) over the labels that matter is not.
    pub fn list_matching(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<K>> {
        let none = BTreeMap::new();
        let matches =
            |object: &&Arc<K>| selector.matches(object.metadata().labels.as_ref().unwrap_or(&none));
        match namespace {
            Some(namespace) => {
                let mut objects = self.list_in(namespace);
                objects.retain(|object| matches(&object));
                objects
            }
            None => self.list().iter().filter(matches).cloned().collect(),
        }
    }

    /// How many objects there are that fit their Rust type.
    pub fn len(&self) -> usize {
        self.store.count().0
    }

    /// Whether there is no object that fits its Rust type.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many objects there are that do not fit their Rust type.
    pub fn opaque_len(&self) -> usize {
        self.store.count().1
    }

    /// The state of the server that the cache has reached.
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

// === impl Snapshot ===

impl<K: Object> Snapshot<K> {
    /// The objects. The order is the same for equal histories, and means nothing.
    pub fn iter(&self) -> Iter<'_, K> {
        Iter(Box::new(self.frozen.iter().filter_map(|(_, entry)| entry.object())))
    }

    /// How many objects [`iter`](Self::iter) yields. Looks at each.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<K: Object> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self { frozen: self.frozen.clone() }
    }
}

impl<K: Object> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<'a, K: Object> IntoIterator for &'a Snapshot<K> {
    type Item = &'a Arc<K>;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}

/// The objects of a [`Snapshot`].
pub struct Iter<'a, K>(Box<dyn Iterator<Item = &'a Arc<K>> + Send + 'a>);

impl<'a, K> Iterator for Iter<'a, K> {
    type Item = &'a Arc<K>;

    fn next(&mut self) -> Option<&'a Arc<K>> {
        self.0.next()
    }
}

impl<K> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
