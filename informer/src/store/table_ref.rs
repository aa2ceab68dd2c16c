//! [`TableRef`]: the id of an index table, typed by its values.
//!
//! The types are checked once, when the index is added. Inside of the store the tables are trait
//! objects; this handle has the type with which they are read.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::Store;
use super::stage::definition;
use crate::object::{Object, ObjectMeta};

/// A table of a store, and the hasher of its values.
///
/// Only [`TableRef::new`] makes one, with the type of the table that it adds, so a look-up never
/// fails to get the type back. It must be used with the store that it was made for.
///
/// A clone is another handle of the same table. The hasher is the table's: values that are looked
/// up are hashed like those that were indexed.
pub(crate) struct TableRef<V> {
    pub(crate) id: TableId,
    hasher: RandomState,
    values: PhantomData<fn() -> V>,
}

/// The id of a table. Ids of removed tables are not used again.
pub(crate) type TableId = u64;

/// Values that have the same hash, with what a table has for each. Two different values rarely have
/// the same hash.
pub(crate) type Alike<V, T> = SmallVec<[(Arc<V>, T); 1]>;

/// Wraps an index function that reads only metadata, which is known for every object.
pub(crate) fn of_metadata<K: Object, V, I: IntoIterator<Item = V>>(
    function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
) -> impl Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static {
    move |known, push| {
        let metadata = known.map_or_else(|metadata| metadata, Object::metadata);
        function(metadata).into_iter().for_each(push);
        true
    }
}

// === impl TableRef ===

impl<V: Eq + Hash + Send + Sync + 'static> TableRef<V> {
    /// Adds an index by `function` to the store. See [`definition`].
    ///
    /// The index is complete when this returns.
    pub(crate) fn new<K: Object>(
        store: &Store<K>,
        function: Arc<
            impl Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
        >,
    ) -> Self {
        let hasher = RandomState::default();
        let id = store.add_index(definition(function, hasher.clone()));
        Self { id, hasher, values: PhantomData }
    }

    /// Adds an index over metadata, which opaque objects have as well.
    ///
    /// Such an index has no unplaced objects, unless the function panics.
    pub(super) fn by_metadata<K: Object, I: IntoIterator<Item = V>>(
        store: &Store<K>,
        function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
    ) -> Self {
        Self::new(store, Arc::new(of_metadata::<K, _, _>(function)))
    }

    /// Runs the author's `Hash`: no lock may be held.
    ///
    /// # Panics
    ///
    /// If the author's `Hash` panics.
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, value: &Q) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Returns the result for the value in `alike` that equals `value`. Runs the author's code.
    ///
    /// `alike` has more than one element only if two values have the same hash.
    pub(crate) fn equal<Q, T>(alike: Alike<V, T>, value: &Q) -> Option<T>
    where
        V: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let is_equal = |own: &V| own.borrow() == value;
        alike.into_iter().find_map(|(own, found)| is_equal(&own).then_some(found))
    }
}

impl<V> Clone for TableRef<V> {
    fn clone(&self) -> Self {
        Self { id: self.id, hasher: self.hasher.clone(), values: PhantomData }
    }
}
