//! [`Index`]: finds objects by a value that is computed from each of them.

use std::{
    any::Any,
    borrow::Borrow,
    collections::VecDeque,
    fmt,
    hash::Hash,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::{
    object::{Object, ObjectMeta},
    store::{Store, postings::Postings},
};

/// Finds objects by a value that is computed from each of them; always in step with the [`Lister`](crate::Lister).
///
/// The handle is typed by its values, so there are no index names to get wrong. It keeps the index readable after
/// its informer has stopped. Values are computed when an object changes, never when one is looked up.
pub struct Index<K: Object, V> {
    store: Arc<Store<K>>,
    number: usize,
    values: PhantomData<fn() -> V>,
}

/// The half of an index that runs the author's function, before the lock is taken.
///
/// Each staged object is committed or skipped, in the same order.
pub(crate) trait Stage<K>: Send {
    /// Computes the values of an object, or of the metadata of one that does not fit its type.
    fn stage(&mut self, known: Result<&K, &ObjectMeta>) -> Staged;

    /// Gives a slot of this index' table the values that were staged first.
    fn commit(&mut self, table: &mut dyn AnyTable, slot: u32);

    /// Drops the values that were staged first.
    fn skip(&mut self);
}

/// What became of the author's function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staged {
    Done,
    Panicked,
}

/// A [`Table`] of any type of values.
pub(crate) trait AnyTable: Any + Send + Sync {
    /// Takes all values from a slot.
    fn forget(&mut self, slot: u32);
}

/// The half of an index that readers see.
pub(crate) struct Table<V> {
    postings: Postings<V>,
    /// Whether the values of a slot's object are not known: it does not fit its type, or the function panicked.
    unplaced: Vec<bool>,
    /// How many of those there are.
    unplaced_count: usize,
}

/// Computes with `function` and keeps the values until they are committed.
struct Stager<F, V> {
    /// `None`: the values are not known.
    function: F,
    /// How many of `values` belong to each staged object; `None` if its values are not known.
    counts: VecDeque<Option<usize>>,
    values: VecDeque<V>,
    /// The values being committed; kept for its space.
    scratch: Vec<V>,
}

// === impl Index ===

impl<K: Object, V: Eq + Hash + Send + Sync + 'static> Index<K, V> {
    pub(crate) fn new<I: IntoIterator<Item = V>>(
        store: &Arc<Store<K>>,
        function: impl Fn(&K) -> I + Send + 'static,
    ) -> Self {
        let function = move |known: Result<&K, &ObjectMeta>, values: &mut VecDeque<V>| {
            let Ok(object) = known else { return false };
            values.extend(function(object));
            true
        };
        Self::with_stage(store, stager(function))
    }

    pub(crate) fn by_metadata<I: IntoIterator<Item = V>>(
        store: &Arc<Store<K>>,
        function: impl Fn(&ObjectMeta) -> I + Send + 'static,
    ) -> Self {
        Self::with_stage(store, by_metadata(function))
    }

    fn with_stage(store: &Arc<Store<K>>, stage: Box<dyn Stage<K>>) -> Self {
        let number = store.add_index::<V>(stage);
        Self { store: Arc::clone(store), number, values: PhantomData }
    }

    /// The objects with this value, as of one moment.
    pub fn get<Q>(&self, value: &Q) -> Vec<Arc<K>>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.store.indexed::<V, Q>(self.number, value)
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
        self.store.indexed_opaque::<V, Q>(self.number, value)
    }

    /// The values that some object has, in no particular order that means anything.
    pub fn keys(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.store.index_values(self.number)
    }
}

impl<K: Object, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), number: self.number, values: PhantomData }
    }
}

impl<K: Object, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

// === impl Stager ===

fn stager<K, V, F>(function: F) -> Box<dyn Stage<K>>
where
    K: 'static,
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut VecDeque<V>) -> bool + Send + 'static,
{
    Box::new(Stager {
        function,
        counts: VecDeque::new(),
        values: VecDeque::new(),
        scratch: Vec::new(),
    })
}

/// An index over metadata, which objects have whether or not they fit.
pub(crate) fn by_metadata<K, V, I>(
    function: impl Fn(&ObjectMeta) -> I + Send + 'static,
) -> Box<dyn Stage<K>>
where
    K: Object,
    V: Eq + Hash + Send + Sync + 'static,
    I: IntoIterator<Item = V>,
{
    stager(move |known: Result<&K, &ObjectMeta>, values: &mut VecDeque<V>| {
        values.extend(function(known.map_or_else(|metadata| metadata, Object::metadata)));
        true
    })
}

impl<K, V, F> Stage<K> for Stager<F, V>
where
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut VecDeque<V>) -> bool + Send,
{
    fn stage(&mut self, known: Result<&K, &ObjectMeta>) -> Staged {
        let before = self.values.len();
        let Self { function, values, .. } = self;
        let placed = catch_unwind(AssertUnwindSafe(|| function(known, values)));
        let known = matches!(placed, Ok(true));
        if !known {
            self.values.truncate(before);
        }
        self.counts.push_back(known.then(|| self.values.len() - before));
        if placed.is_err() { Staged::Panicked } else { Staged::Done }
    }

    fn commit(&mut self, table: &mut dyn AnyTable, slot: u32) {
        let table: &mut dyn Any = table;
        let table: &mut Table<V> = table.downcast_mut().expect("stages and tables are in step");
        match self.counts.pop_front().flatten() {
            Some(count) => {
                self.scratch.extend(self.values.drain(..count));
                table.place(slot, &mut self.scratch);
            }
            None => table.misplace(slot),
        }
    }

    fn skip(&mut self) {
        if let Some(count) = self.counts.pop_front().flatten() {
            self.values.drain(..count);
        }
    }
}

// === impl Table ===

impl<V: Eq + Hash + Send + Sync + 'static> AnyTable for Table<V> {
    fn forget(&mut self, slot: u32) {
        self.set_unplaced(slot, false);
        self.postings.remove(slot);
    }
}

impl<V: Eq + Hash> Table<V> {
    pub(crate) fn new() -> Self {
        Self { postings: Postings::new(), unplaced: Vec::new(), unplaced_count: 0 }
    }

    pub(crate) fn slots<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> &[u32]
    where
        V: Borrow<Q>,
    {
        self.postings.get(value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.postings.values()
    }

    pub(crate) fn has_unplaced(&self) -> bool {
        self.unplaced_count > 0
    }

    fn place(&mut self, slot: u32, values: &mut Vec<V>) {
        self.set_unplaced(slot, false);
        self.postings.set(slot, values);
    }

    fn misplace(&mut self, slot: u32) {
        self.set_unplaced(slot, true);
        self.postings.remove(slot);
    }

    fn set_unplaced(&mut self, slot: u32, unplaced: bool) {
        let slot = slot as usize;
        if unplaced && self.unplaced.len() <= slot {
            self.unplaced.resize(slot + 1, false);
        }
        if let Some(was) = self.unplaced.get_mut(slot) {
            self.unplaced_count -= usize::from(*was);
            self.unplaced_count += usize::from(unplaced);
            *was = unplaced;
        }
    }
}
