//! [`Stage`]: the half of an index that runs the author's code, while no lock is held.
//!
//! The values of a batch of objects are computed first, and committed afterwards under the lock
//! without a call of the author's code. A value that equals one in the table is replaced by that
//! one, so that comparing addresses is enough.
//!
//! A panic of the author's code costs one object its values; the others of the batch keep theirs.
//!
//! ```text
//!  no lock        read lock      no lock        write lock
//!  compute ─────▶ look_up ─────▶ settle ──────▶ commit, skip
//!  the author's   candidates     the author's   moves only
//!  function, Hash by hash        Eq
//! ```
//!
//! Between `look_up` and `commit` another stage may change the table. A list number in a `Posted`
//! may therefore be stale; `Postings` checks it by the address of the value, and looks the value up
//! again if it is. If the other stage has given a list to a value that may be equal to one of this
//! stage, `is_current` returns false, and this stage starts again: with two lists for equal values,
//! readers would find only one of them.

use std::any::Any;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use homeostat_core::user_code;

use super::Entry;
use super::garbage::Garbage;
use super::postings::{Next, Posted};
use super::table::{AnyTable, Table};
use crate::object::{Object, ObjectMeta};

/// The definition of an index, shared by all stages.
pub(super) trait Definition<K>: Send + Sync {
    /// Creates an empty table of the type of this index.
    fn table(&self) -> Box<dyn AnyTable<K>>;
    /// Creates an empty stage. A stage is kept and used for many steps.
    fn stage(&self) -> Box<dyn Stage<K>>;
}

/// The values of a batch of objects, in one index. In this order: `compute` each, `look_up`,
/// `settle`, `is_current`, and then `commit` or `skip` each.
///
/// A stage is a queue: the objects leave it in the order in which they were computed. It is a trait
/// object because the indices of one store have different types of values.
pub(super) trait Stage<K>: Send {
    /// Runs the author's function on an object, or on the metadata of one that does not fit its
    /// type.
    ///
    /// A panic is caught and counted. The object then has no values in this index, and the index
    /// reports that it is incomplete.
    fn compute(&mut self, known: Result<&K, &ObjectMeta>);

    /// Finds the values in the table that may be equal. Runs under the lock.
    fn look_up(&mut self, table: &dyn AnyTable<K>);

    /// Compares the computed values with those of the table. Returns the number of objects without
    /// an entry because the author's code panicked.
    fn settle(&mut self) -> u64;

    /// Returns false if a value may have got a list since `look_up`, by another stage. Runs under
    /// the lock, right before the first `commit`.
    fn is_current(&self, table: &dyn AnyTable<K>) -> bool;

    /// Writes the values of the first object, whose entry is `entry`, to a slot. Runs under the
    /// lock.
    fn commit(
        &mut self,
        table: &mut dyn AnyTable<K>,
        slot: u32,
        entry: &Entry<K>,
        garbage: &mut Garbage<K>,
    );

    /// Skips the first object.
    fn skip(&mut self, garbage: &mut Garbage<K>);

    /// Drops all staged values.
    ///
    /// It is called after a step, and before a step starts again because another step was faster.
    fn clear(&mut self);
}

/// The definition of an index by a function. Each stage of the index shares the function and the
/// hasher.
struct Computed<F, V> {
    function: Arc<F>,
    hasher: RandomState,
    values: PhantomData<fn() -> V>,
}

/// A stage of an index by a function. Values move through it: `compute` fills `counts` and
/// `computed`, `look_up` fills `alike`, `settle` moves `computed` to `posted`, and `commit` and
/// `skip` take from the front of `counts` and `posted`. All are empty after the last object.
struct Batch<F, V> {
    function: Arc<F>,
    hasher: RandomState,
    /// The number of values of each object; `None` if its values are not known.
    counts: VecDeque<Option<usize>>,
    /// The hash and the value of each, in the order of the objects. Empty after `settle`.
    computed: VecDeque<(u64, V)>,
    /// The number of a computed value, and the list and value in the table that may equal it.
    alike: VecDeque<(usize, u32, Arc<V>)>,
    /// The values that are ready to be committed, in the same order.
    posted: VecDeque<Posted<V>>,
    /// The number of lists that the table had ever created at the look-up.
    seen: u64,
    /// Caught panics of the author's code since the last `settle`.
    panics: u64,
}

/// Defines an index by `function`, which pushes the values of an object, or returns false if they
/// are not known.
pub(super) fn definition<K, F, V>(function: Arc<F>, hasher: RandomState) -> Arc<dyn Definition<K>>
where
    K: Object,
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
{
    Arc::new(Computed { function, hasher, values: PhantomData })
}

// === impl Computed ===

impl<K, F, V> Definition<K> for Computed<F, V>
where
    K: Object,
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
{
    fn table(&self) -> Box<dyn AnyTable<K>> {
        Box::new(Table::<V, K>::new())
    }

    fn stage(&self) -> Box<dyn Stage<K>> {
        Box::new(Batch::<F, V>::new(Arc::clone(&self.function), self.hasher.clone()))
    }
}

// === impl Batch ===

impl<F, V: Eq> Batch<F, V> {
    /// Creates an empty stage. It allocates nothing before the first object.
    fn new(function: Arc<F>, hasher: RandomState) -> Self {
        Self {
            function,
            hasher,
            counts: VecDeque::new(),
            computed: VecDeque::new(),
            alike: VecDeque::new(),
            posted: VecDeque::new(),
            seen: 0,
            panics: 0,
        }
    }

    /// Posts the computed values from `number` to `end`. A value is shared with an equal one in the
    /// table, or with one posted earlier in this batch.
    ///
    /// # Panics
    ///
    /// If the author's `Eq` panics. The caller then drops the values of this object and continues
    /// with the next one.
    fn post(&mut self, number: &mut usize, end: usize, posts: &mut HashTable<usize>) {
        while *number < end {
            let Some((hash, value)) = self.computed.pop_front() else { return };
            *number += 1;
            let posted = match self.in_table(*number - 1, &value) {
                Some((list, value)) => Posted { value, hash, list: Some(list) },
                None => Posted { value: self.in_batch(hash, value, posts), hash, list: None },
            };
            self.posted.push_back(posted);
        }
    }

    /// Returns the equal value of the table, and its list. Calls the author's `Eq`.
    fn in_table(&mut self, number: usize, value: &V) -> Option<(u32, Arc<V>)> {
        while self.alike.front().is_some_and(|(of, ..)| *of <= number) {
            let (of, list, known) = self.alike.pop_front()?;
            if of == number && *known == *value {
                return Some((list, known));
            }
        }
        None
    }

    /// Returns the value that is pushed to `posted` next.
    ///
    /// Ten pods of one owner in one batch share one value: it is found by hash among the values
    /// that this batch has posted, and allocated only once.
    fn in_batch(&self, hash: u64, value: V, posts: &mut HashTable<usize>) -> Arc<V> {
        let posted = &self.posted;
        let same = |place: &usize| posted[*place].hash == hash && *posted[*place].value == value;
        if let Some(place) = posts.find(hash, same) {
            return Arc::clone(&posted[*place].value);
        }
        let place = posted.len();
        posts.insert_unique(hash, place, |place| posted[*place].hash);
        Arc::new(value)
    }

    /// Drops the next `rest` computed values, and all posted values after the first `before`.
    ///
    /// The drop is caught too, because it runs the author's `Drop`.
    fn give_up(&mut self, rest: usize, before: usize) {
        let drop_all = || {
            drop(self.computed.drain(..rest));
            self.posted.truncate(before);
        };
        let dropped = user_code("index", drop_all);
        self.panics += u64::from(dropped.is_err());
    }
}

impl<K, F, V> Stage<K> for Batch<F, V>
where
    K: Object,
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync,
{
    fn compute(&mut self, known: Result<&K, &ObjectMeta>) {
        let before = self.computed.len();
        let Self { function, hasher, computed, .. } = self;
        let run = || {
            let mut push = |value: V| computed.push_back((hasher.hash_one(&value), value));
            function(known, &mut push)
        };
        let ran = user_code("index", run);
        self.panics += u64::from(ran.is_err());
        let is_known = matches!(ran, Ok(true));
        if !is_known {
            // Dropping the values also runs the author's code.
            let dropped = user_code("index", || self.computed.truncate(before));
            self.panics += u64::from(dropped.is_err());
        }
        self.counts.push_back(is_known.then(|| self.computed.len() - before));
    }

    fn look_up(&mut self, table: &dyn AnyTable<K>) {
        let table: &dyn Any = table;
        let table: &Table<V, K> = table.downcast_ref().expect("stages and tables are in step");
        self.seen = table.created();
        for (number, (hash, _)) in self.computed.iter().enumerate() {
            let lists = table.lists(*hash);
            self.alike.extend(lists.map(|(list, value)| (number, list, Arc::clone(value))));
        }
    }

    fn settle(&mut self) -> u64 {
        let mut posts = HashTable::new();
        let mut number = 0;
        for object in 0..self.counts.len() {
            let Some(count) = self.counts[object] else { continue };
            let (before, end) = (self.posted.len(), number + count);
            let post = || self.post(&mut number, end, &mut posts);
            if user_code("index", post).is_err() {
                self.panics += 1;
                self.counts[object] = None;
                posts.retain(|place| *place < before);
                self.give_up(end - std::mem::replace(&mut number, end), before);
            }
        }
        self.alike.clear();
        std::mem::take(&mut self.panics)
    }

    fn is_current(&self, table: &dyn AnyTable<K>) -> bool {
        let table: &dyn Any = table;
        let table: &Table<V, K> = table.downcast_ref().expect("stages and tables are in step");
        !table.may_have_any(self.posted.iter(), self.seen)
    }

    fn commit(
        &mut self,
        table: &mut dyn AnyTable<K>,
        slot: u32,
        entry: &Entry<K>,
        garbage: &mut Garbage<K>,
    ) {
        let table: &mut dyn Any = table;
        let table: &mut Table<V, K> = table.downcast_mut().expect("stages and tables are in step");
        match self.counts.pop_front().flatten() {
            Some(count) => {
                let values = Next { values: &mut self.posted, count };
                table.place(slot, values, entry, garbage);
            }
            None => table.mark_unplaced(slot, garbage),
        }
    }

    fn skip(&mut self, garbage: &mut Garbage<K>) {
        if let Some(count) = self.counts.pop_front().flatten() {
            let values = self.posted.drain(..count);
            garbage.values.extend(values.map(|posted| posted.value as Arc<dyn Any + Send + Sync>));
        }
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.computed.clear();
        self.alike.clear();
        self.posted.clear();
        self.panics = 0;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    /// A stage that has one object whose value is 7, ready for its commit.
    fn ready(definition: &dyn Definition<Pod>, table: &dyn AnyTable<Pod>) -> Box<dyn Stage<Pod>> {
        let mut stage = definition.stage();
        stage.compute(Err(&ObjectMeta::default()));
        stage.look_up(table);
        assert_eq!(stage.settle(), 0);
        stage
    }

    #[test]
    fn stage_starts_again_if_another_was_faster_with_an_equal_value() {
        let function = |_: Result<&Pod, &ObjectMeta>, push: &mut dyn FnMut(u32)| {
            push(7);
            true
        };
        let definition = definition::<Pod, _, u32>(Arc::new(function), RandomState::default());
        let (mut table, mut garbage) = (definition.table(), Garbage::new());
        let entry = Entry::Fits(Arc::new(Pod::default()));
        let mut first = ready(&*definition, &*table);
        let second = ready(&*definition, &*table);
        assert!(first.is_current(&*table) && second.is_current(&*table));
        first.commit(&mut *table, 0, &entry, &mut garbage);
        assert!(!second.is_current(&*table));

        let mut again = ready(&*definition, &*table);
        assert!(again.is_current(&*table));
        again.commit(&mut *table, 1, &entry, &mut garbage);
        let table: Box<dyn Any> = table;
        let table = table.downcast::<Table<u32, Pod>>().expect("a table of numbers");
        assert_eq!(table.values().count(), 1);
        assert_eq!(table.found(0).expect("a list").entries.iter().count(), 2);
    }
}
