//! [`Index`]: finds objects by a value that is computed from each of them.

mod staging;
mod table;

use std::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
    sync::Arc,
};

use foldhash::fast::RandomState;

use self::staging::definition;
pub(crate) use self::{
    staging::{Definition, Stage},
    table::{AnyTable, Table},
};
use crate::{
    object::{Object, ObjectKey, ObjectMeta},
    store::{Inner, Store},
};

/// Finds objects by a value that is computed from each of them; always in step with the [`Lister`](crate::Lister).
///
/// The handle is typed by its values, so there are no index names to get wrong. It keeps the index readable after
/// its informer has stopped. Values are computed when an object changes, never when one is looked up, and nothing is
/// locked while the author's code runs: an index function may use the informer, add handlers and other indices.
///
/// A panic of the author's code (the function, or `Hash` and `Eq` of its values) costs that object its entry in this
/// index, and is counted: see [`has_opaque`](Self::has_opaque) and
/// [`index_panics`](crate::SharedIndexInformer::index_panics).
pub struct Index<K: Object, V> {
    store: Arc<Store<K>>,
    table: TableRef<V>,
    /// What the table is made with, for objects that are not in the store.
    function: Arc<Function<K, V>>,
}

/// Pushes the values of an object, or returns false if they are not known.
type Function<K, V> =
    dyn Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static;

/// Which table of a store is an index', and how its values are hashed.
pub(crate) struct TableRef<V> {
    pub(crate) number: usize,
    hasher: RandomState,
    values: PhantomData<fn() -> V>,
}

// === impl Index ===

impl<K: Object, V: Eq + Hash + Send + Sync + 'static> Index<K, V> {
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
        Self { store: Arc::clone(store), table, function }
    }

    /// The objects with this value, as of one moment. The value is looked up as it is borrowed, without a copy.
    pub fn get<Q>(&self, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hash(value);
        Self::equal(self.store.view(|inner| self.alike(inner, hash)), value)
    }

    /// The objects with any of these values, each once, as of one moment.
    pub fn get_any<'q, Q>(&self, values: impl IntoIterator<Item = &'q Q>) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized + 'q,
    {
        let values: Vec<_> =
            values.into_iter().map(|value| (self.table.hash(value), value)).collect();
        let hashes: Vec<_> = values.iter().map(|(hash, _)| *hash).collect();
        let alike = self.store.alike_any(&self.table, &hashes);
        let mut found: Vec<_> = values
            .iter()
            .zip(alike)
            .flat_map(|((_, value), alike)| TableRef::equal(alike, *value).flatten())
            .collect();
        found.sort_unstable_by_key(|(slot, _)| *slot);
        found.dedup_by_key(|(slot, _)| *slot);
        found.into_iter().map(|(_, object)| object).collect()
    }

    /// The keys of the objects with this value, in their order; also of those that do not fit their Rust type.
    pub fn keys<Q>(&self, value: &Q) -> Vec<ObjectKey<K::Kind>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.table.hash(value);
        let alike = self.store.alike(&self.table, hash, Inner::keys);
        let mut keys = TableRef::equal(alike, value).reduce(concat).unwrap_or_default();
        keys.sort_unstable();
        keys
    }

    /// Whether there may be objects with this value that do not fit their Rust type, so that [`get`](Self::get) does
    /// not tell the whole truth.
    ///
    /// An index over metadata knows exactly. An index over objects cannot know the value of an object that does not
    /// fit, and says yes for every value while there is one; so does any index for an object whose index function
    /// panicked.
    pub fn has_opaque<Q>(&self, value: &Q) -> bool
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if self.store.has_unplaced(&self.table) {
            return true;
        }
        let hash = self.table.hash(value);
        let alike = self.store.alike(&self.table, hash, Inner::any_opaque);
        TableRef::equal(alike, value).any(|opaque| opaque)
    }

    /// The values that some object has, in no particular order that means anything.
    pub fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.store.index_values(&self.table).iter().map(|value| V::clone(value)).collect()
    }

    /// Whether this is an index over the objects of `store`.
    pub(crate) fn is_over(&self, store: &Arc<Store<K>>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }

    pub(crate) fn hash<Q>(&self, value: &Q) -> u64
    where
        V: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.hash(value)
    }

    /// The objects that may have a value of this hash: the first half of [`get`](Self::get), under the lock.
    pub(crate) fn alike(&self, inner: &Inner<K>, hash: u64) -> Vec<(Arc<V>, Vec<Arc<K>>)> {
        inner.alike(&self.table, hash, Inner::objects)
    }

    /// Those of them that have this value: the second half.
    pub(crate) fn equal<Q>(alike: Vec<(Arc<V>, Vec<Arc<K>>)>, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        TableRef::equal(alike, value).reduce(concat).unwrap_or_default()
    }

    /// Whether this object, which need not be in the store, has the value. Runs the author's code.
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
            store: Arc::clone(&self.store),
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

fn concat<T>(mut one: Vec<T>, other: Vec<T>) -> Vec<T> {
    one.extend(other);
    one
}

/// What is computed from metadata is known of every object.
fn of_metadata<K: Object, V, I: IntoIterator<Item = V>>(
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
    fn new<K: Object>(
        store: &Store<K>,
        function: Arc<
            impl Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
        >,
    ) -> Self {
        let hasher = RandomState::default();
        let number = store.add_index(definition(function, hasher.clone()));
        Self { number, hasher, values: PhantomData }
    }

    /// An index over metadata, which objects have whether or not they fit.
    pub(crate) fn by_metadata<K: Object, I: IntoIterator<Item = V>>(
        store: &Store<K>,
        function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
    ) -> Self {
        Self::new(store, Arc::new(of_metadata::<K, _, _>(function)))
    }

    pub(crate) fn hash<Q: Hash + ?Sized>(&self, value: &Q) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Of what was found under the hash of `value`, what is its.
    pub(crate) fn equal<Q, T>(alike: Vec<(Arc<V>, T)>, value: &Q) -> impl Iterator<Item = T>
    where
        V: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let equal = move |(own, found): (Arc<V>, T)| {
            let own: &V = &own;
            (own.borrow() == value).then_some(found)
        };
        alike.into_iter().filter_map(equal)
    }
}

impl<V> Clone for TableRef<V> {
    fn clone(&self) -> Self {
        Self { number: self.number, hasher: self.hasher.clone(), values: PhantomData }
    }
}
