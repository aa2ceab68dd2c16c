//! Staging: the half of an index that runs the author's code, while nothing is locked.
//!
//! What is computed for a batch of objects is committed afterwards, under the lock, without a call of the author's:
//! a value that equals one in the table has become that one, so that addresses are enough to tell values apart.

use std::{
    any::Any,
    collections::VecDeque,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::table::{AnyTable, Table};
use crate::{
    object::ObjectMeta,
    store::postings::{Garbage, Posted},
};

/// What an index is made of, shared by all who stage.
pub(crate) trait Definition<K>: Send + Sync {
    fn table(&self) -> Box<dyn AnyTable>;
    fn stage(&self) -> Box<dyn Stage<K>>;
}

/// The values of a batch of objects, in one index. In this order: `compute` each, `look_up`, `settle`, and then
/// `commit` or `skip` each.
pub(crate) trait Stage<K>: Send {
    /// Runs the author's function on an object, or on the metadata of one that does not fit its type.
    fn compute(&mut self, known: Result<&K, &ObjectMeta>);

    /// Finds what in the table may be equal. Under the lock.
    fn look_up(&mut self, table: &dyn AnyTable);

    /// Compares. Returns how many objects have no entry because the author's code panicked.
    fn settle(&mut self) -> u64;

    /// Gives a slot the values of the first object. Under the lock.
    fn commit(&mut self, table: &mut dyn AnyTable, slot: u32, garbage: &mut Garbage);

    /// Passes the first object over.
    fn skip(&mut self, garbage: &mut Garbage);

    /// Forgets everything.
    fn clear(&mut self);
}

struct Computed<F, V> {
    function: Arc<F>,
    hasher: RandomState,
    values: PhantomData<fn() -> V>,
}

struct Batch<F, V> {
    function: Arc<F>,
    hasher: RandomState,
    /// How many values belong to each object; `None` if they are not known.
    counts: VecDeque<Option<usize>>,
    computed: VecDeque<(u64, V)>,
    /// The numbers of computed values, and what in the table may be equal to them.
    alike: VecDeque<(usize, u32, Arc<V>)>,
    posted: VecDeque<Posted<V>>,
    panics: u64,
    /// The values being committed; kept for its space.
    scratch: Vec<Posted<V>>,
}

/// An index by `function`: it pushes the values of an object, or returns false if they are not known.
pub(crate) fn definition<K, F, V>(function: Arc<F>, hasher: RandomState) -> Arc<dyn Definition<K>>
where
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
{
    Arc::new(Computed { function, hasher, values: PhantomData })
}

// === impl Computed ===

impl<K, F, V> Definition<K> for Computed<F, V>
where
    V: Eq + Hash + Send + Sync + 'static,
    F: Fn(Result<&K, &ObjectMeta>, &mut dyn FnMut(V)) -> bool + Send + Sync + 'static,
{
    fn table(&self) -> Box<dyn AnyTable> {
        Box::new(Table::<V>::new())
    }

    fn stage(&self) -> Box<dyn Stage<K>> {
        Box::new(Batch::<F, V>::new(Arc::clone(&self.function), self.hasher.clone()))
    }
}

// === impl Batch ===

impl<F, V: Eq> Batch<F, V> {
    fn new(function: Arc<F>, hasher: RandomState) -> Self {
        Self {
            function,
            hasher,
            counts: VecDeque::new(),
            computed: VecDeque::new(),
            alike: VecDeque::new(),
            posted: VecDeque::new(),
            panics: 0,
            scratch: Vec::new(),
        }
    }

    /// Posts the computed values from `number` to `end`. What is equal is shared: with what is in the table, and with
    /// what was posted before in this batch.
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

    fn in_table(&mut self, number: usize, value: &V) -> Option<(u32, Arc<V>)> {
        while self.alike.front().is_some_and(|(of, ..)| *of <= number) {
            let (of, list, known) = self.alike.pop_front()?;
            if of == number && *known == *value {
                return Some((list, known));
            }
        }
        None
    }

    /// The value that will be pushed to `posted` next.
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

    /// Drops the next `rest` computed values, and what was posted after the first `before`.
    fn give_up(&mut self, rest: usize, before: usize) {
        let drop_all = || {
            drop(self.computed.drain(..rest));
            self.posted.truncate(before);
        };
        let dropped = catch_unwind(AssertUnwindSafe(drop_all));
        self.panics += u64::from(dropped.is_err());
    }
}

impl<K, F, V> Stage<K> for Batch<F, V>
where
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
        let ran = catch_unwind(AssertUnwindSafe(run));
        self.panics += u64::from(ran.is_err());
        let is_known = matches!(ran, Ok(true));
        if !is_known {
            // Dropping them is the author's code too.
            let dropped = catch_unwind(AssertUnwindSafe(|| self.computed.truncate(before)));
            self.panics += u64::from(dropped.is_err());
        }
        self.counts.push_back(is_known.then(|| self.computed.len() - before));
    }

    fn look_up(&mut self, table: &dyn AnyTable) {
        let table: &dyn Any = table;
        let table: &Table<V> = table.downcast_ref().expect("stages and tables are in step");
        for (number, (hash, _)) in self.computed.iter().enumerate() {
            let lists = table.lists(*hash);
            self.alike.extend(lists.map(|(list, value, _)| (number, list, Arc::clone(value))));
        }
    }

    fn settle(&mut self) -> u64 {
        let mut posts = HashTable::new();
        let mut number = 0;
        for object in 0..self.counts.len() {
            let Some(count) = self.counts[object] else { continue };
            let (before, end) = (self.posted.len(), number + count);
            let post = || self.post(&mut number, end, &mut posts);
            if catch_unwind(AssertUnwindSafe(post)).is_err() {
                self.panics += 1;
                self.counts[object] = None;
                posts.retain(|place| *place < before);
                self.give_up(end - std::mem::replace(&mut number, end), before);
            }
        }
        self.alike.clear();
        std::mem::take(&mut self.panics)
    }

    fn commit(&mut self, table: &mut dyn AnyTable, slot: u32, garbage: &mut Garbage) {
        let table: &mut dyn Any = table;
        let table: &mut Table<V> = table.downcast_mut().expect("stages and tables are in step");
        match self.counts.pop_front().flatten() {
            Some(count) => {
                self.scratch.extend(self.posted.drain(..count));
                table.place(slot, &mut self.scratch, garbage);
            }
            None => table.misplace(slot, garbage),
        }
    }

    fn skip(&mut self, garbage: &mut Garbage) {
        if let Some(count) = self.counts.pop_front().flatten() {
            let values = self.posted.drain(..count);
            garbage.extend(values.map(|posted| posted.value as Arc<dyn Any + Send + Sync>));
        }
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.computed.clear();
        self.alike.clear();
        self.posted.clear();
        self.scratch.clear();
        self.panics = 0;
    }
}
