//! [`Table`]: the half of an index that readers see.
//!
//! A table changes only under the store's write lock, together with the objects.

use std::any::Any;
use std::sync::Arc;

use super::Entry;
use super::garbage::{Garbage, shrink};
use super::postings::{Found, Next, Posted, Postings};
use crate::object::Object;

/// A [`Table`] of any type of values.
pub(super) trait AnyTable<K>: Any + Send + Sync {
    /// Removes all values of a slot.
    ///
    /// The removed values and entries go to the garbage, which the caller drops without a lock.
    fn remove(&mut self, slot: u32, garbage: &mut Garbage<K>);

    /// Gives the values of slot `last` to slot `to`, which has none, and forgets slot `last`.
    fn move_last(&mut self, last: u32, to: u32);

    /// Returns the number of places for slots and values, used or not.
    #[cfg(test)]
    fn capacity(&self) -> usize;
}

/// The values of each slot, and the entries of each value.
///
/// A slot is placed, unplaced or empty. An unplaced slot has no values in `postings`.
///
/// While a slot is unplaced, `Index::has_opaque` returns true for every value: the object may have
/// any of them.
pub(super) struct Table<V, K> {
    postings: Postings<V, K>,
    /// The slots of objects whose values are not known: the object does not fit its type, or the
    /// author's code panicked.
    unplaced: Bits,
    /// The number of unplaced slots.
    unplaced_count: usize,
}

/// A set of slots.
///
/// One bit per slot. It grows with the highest slot that is set.
#[derive(Default)]
struct Bits(Vec<u64>);

// === impl Table ===

impl<V: Send + Sync + 'static, K: Object> Table<V, K> {
    /// Creates an empty table, to be filled with the existing objects.
    pub(super) fn new() -> Self {
        Self { postings: Postings::new(), unplaced: Bits::default(), unplaced_count: 0 }
    }

    /// Returns the lists whose values have this hash.
    pub(super) fn lists(&self, hash: u64) -> impl Iterator<Item = (u32, &Arc<V>)> {
        self.postings.lists(hash)
    }

    /// Returns the number of values that ever got a list.
    pub(super) fn created(&self) -> u64 {
        self.postings.created()
    }

    /// Returns true if one of these values may have got a list after the first `seen` ones, from
    /// another stage.
    pub(super) fn may_have_any<'v>(
        &self,
        mut posted: impl Iterator<Item = &'v Posted<V>>,
        seen: u64,
    ) -> bool
    where
        V: 'v,
    {
        self.created() != seen && posted.any(|posted| self.postings.may_have(posted, seen))
    }

    /// Returns the entries of a list.
    pub(super) fn found(&self, list: u32) -> Option<Found<K>> {
        self.postings.found(list)
    }

    /// Returns the values that at least one object has, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<V>> {
        self.postings.values()
    }

    /// Returns true if the values of at least one object are not known. Takes constant time.
    pub(super) fn has_unplaced(&self) -> bool {
        self.unplaced_count > 0
    }

    /// Sets the values of a slot, and the entry that the lists of these values show.
    pub(super) fn place(
        &mut self,
        slot: u32,
        values: Next<'_, V>,
        entry: &Entry<K>,
        garbage: &mut Garbage<K>,
    ) {
        self.set_unplaced(slot, false);
        self.postings.set(slot, values, entry, garbage);
    }

    /// Marks the values of a slot as not known.
    pub(super) fn mark_unplaced(&mut self, slot: u32, garbage: &mut Garbage<K>) {
        self.set_unplaced(slot, true);
        self.postings.remove(slot, garbage);
    }

    /// Keeps the count in step with the set. Returns true if the slot was unplaced.
    fn set_unplaced(&mut self, slot: u32, unplaced: bool) -> bool {
        if !unplaced && self.unplaced_count == 0 {
            return false;
        }
        let was = self.unplaced.set(slot, unplaced);
        self.unplaced_count += usize::from(unplaced);
        self.unplaced_count -= usize::from(was);
        was
    }
}

impl<V: Send + Sync + 'static, K: Object> AnyTable<K> for Table<V, K> {
    fn remove(&mut self, slot: u32, garbage: &mut Garbage<K>) {
        self.set_unplaced(slot, false);
        self.postings.remove(slot, garbage);
    }

    fn move_last(&mut self, last: u32, to: u32) {
        if last != to {
            let unplaced = self.set_unplaced(last, false);
            self.set_unplaced(to, unplaced);
            self.postings.renumber(last, to);
        }
        self.postings.truncate(last);
        self.unplaced.truncate(last);
    }

    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.postings.capacity() + self.unplaced.0.capacity()
    }
}

// === impl Bits ===

impl Bits {
    /// Returns true if the bit was set before.
    fn set(&mut self, slot: u32, to: bool) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.0.len() <= word {
            if !to {
                return false;
            }
            self.0.resize(word + 1, 0);
        }
        let was = self.0[word] & bit != 0;
        if to {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
        was
    }

    /// Forgets the slots from `end` on, which are not in the set.
    fn truncate(&mut self, end: u32) {
        self.0.truncate((end as usize).div_ceil(64));
        shrink(&mut self.0);
    }
}
