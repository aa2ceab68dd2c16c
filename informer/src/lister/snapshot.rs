//! [`Snapshot`]: objects at one moment, which are read without a lock.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::object::{Object, ObjectKey};
use crate::store::cow_vec::{Frozen, Iter};
use crate::store::{Entry, Found};

/// Objects at one moment: all of them, those of a namespace, or those with an index value.
///
/// Taking a snapshot copies one pointer per 128 objects and does not block the informer. The
/// informer copies 128 pointers when it changes one of these objects while the snapshot lives.
///
/// Use it to see several objects as of the same moment: two calls of [`get`] may see
/// different versions of the cache. Do not keep a snapshot for long: it holds the memory of every
/// object that it shows, also of objects that are deleted since.
///
/// # Examples
///
/// A snapshot does not change:
///
/// ```
/// use homeostat_informer::testing::Store;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let store = Store::<ConfigMap>::new();
/// let map: ConfigMap = serde_json::from_str(r#"{"metadata":{"name":"a","namespace":"n"}}"#)?;
/// store.apply(map.clone());
/// let before = store.lister().list();
/// store.delete(map);
/// assert_eq!(before.len(), 1);
/// assert!(store.lister().is_empty());
/// for map in &before {
///     assert_eq!(map.metadata.name.as_deref(), Some("a"));
/// }
/// # Ok::<_, serde_json::Error>(())
/// ```
///
/// [`get`]: crate::Lister::get
pub struct Snapshot<K: Object> {
    /// Opaque entries included; [`iter`](Self::iter) skips those.
    entries: Frozen<Entry<K>>,
    /// The number of entries that fit their type.
    len: usize,
}

/// The objects of a [`Snapshot`].
///
/// Made by [`Snapshot::iter`]. It borrows the snapshot and takes no lock.
pub struct SnapshotIter<'a, K> {
    entries: Iter<'a, Entry<K>>,
    /// The number of objects that are left.
    left: usize,
}

// === impl Snapshot ===

impl<K: Object> Snapshot<K> {
    pub(crate) fn empty() -> Self {
        Self { entries: Frozen::new(), len: 0 }
    }

    /// Returns a snapshot of these objects, in this order.
    pub(crate) fn from_objects(objects: impl IntoIterator<Item = Arc<K>>) -> Self {
        let entries = Frozen::from_values(objects.into_iter().map(Entry::Fits));
        Self { len: entries.len(), entries }
    }

    /// Returns the objects that `keep` selects, in the same order.
    pub(crate) fn filter(&self, keep: impl Fn(&K) -> bool) -> Self {
        let entries = self.entries.filter(|entry| entry.object().is_some_and(|own| keep(own)));
        Self { len: entries.len(), entries }
    }

    /// Joins snapshots of one moment. An object is one allocation in all of them, so its address
    /// identifies it.
    pub(crate) fn union(mut found: Vec<Found<K>>) -> Self {
        if found.len() <= 1 {
            return found.pop().map_or_else(Self::empty, Self::from);
        }
        let mut seen = HashSet::with_hasher(RandomState::default());
        let all = found.iter().flat_map(|found| found.entries.iter());
        let entries =
            Frozen::from_values(all.filter(|entry| seen.insert(entry.address())).cloned());
        let opaque = entries.iter().filter(|entry| entry.is_opaque()).count();
        Self::from(Found { entries, opaque })
    }

    /// Returns the objects. The order is the same for equal histories; it has no meaning.
    pub fn iter(&self) -> SnapshotIter<'_, K> {
        SnapshotIter { entries: self.entries.iter(), left: self.len }
    }

    /// Returns the keys of the objects, in the same order. The keys of objects that do not fit
    /// their Rust type are included.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::ObjectMeta;
    /// use homeostat_informer::testing::Store;
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// let store = Store::<Node>::new();
    /// store.apply_opaque(ObjectMeta { name: Some("node-1".into()), ..ObjectMeta::default() });
    /// let nodes = store.lister().list();
    /// assert_eq!(nodes.len(), 0);
    /// assert!(nodes.keys().map(|key| key.to_string()).eq(["node-1"]));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = ObjectKey<K::Kind>> {
        self.entries.iter().map(|entry| ObjectKey::from_metadata(entry.metadata()))
    }

    /// Returns the objects in a vector, for code that sorts or keeps them.
    pub fn to_vec(&self) -> Vec<Arc<K>> {
        self.iter().cloned().collect()
    }

    /// Returns the number of objects that [`iter`](Self::iter) yields. Takes constant time.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no object.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<K: Object> From<Found<K>> for Snapshot<K> {
    fn from(found: Found<K>) -> Self {
        Self { len: found.entries.len() - found.opaque, entries: found.entries }
    }
}

impl<K: Object> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), len: self.len }
    }
}

impl<K: Object> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<'a, K: Object> IntoIterator for &'a Snapshot<K> {
    type Item = &'a Arc<K>;
    type IntoIter = SnapshotIter<'a, K>;

    fn into_iter(self) -> SnapshotIter<'a, K> {
        self.iter()
    }
}

// === impl SnapshotIter ===

impl<'a, K> Iterator for SnapshotIter<'a, K> {
    type Item = &'a Arc<K>;

    fn next(&mut self) -> Option<&'a Arc<K>> {
        let object = self.entries.find_map(Entry::object)?;
        self.left -= 1;
        Some(object)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K> ExactSizeIterator for SnapshotIter<'_, K> {}

impl<K> fmt::Debug for SnapshotIter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotIter").field("left", &self.left).finish_non_exhaustive()
    }
}
