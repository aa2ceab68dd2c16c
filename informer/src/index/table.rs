//! [`Table`]: the half of an index that readers see.

use std::{any::Any, sync::Arc};

use crate::store::postings::{Garbage, Posted, Postings};

/// A [`Table`] of any type of values.
pub(crate) trait AnyTable: Any + Send + Sync {
    /// Takes all values from a slot.
    fn forget(&mut self, slot: u32, garbage: &mut Garbage);

    /// Whether this slot has been written since the table was made. Known until [`built`](Self::built).
    fn is_touched(&self, slot: u32) -> bool;

    /// All that was there when the table was made is in it.
    fn built(&mut self);
}

/// Values by slot, and slots by value.
pub(crate) struct Table<V> {
    postings: Postings<V>,
    /// Whether the values of a slot's object are not known: it does not fit its type, or the author's code panicked.
    unplaced: Bits,
    /// How many of those there are.
    unplaced_count: usize,
    /// While the table is being filled with what was there before it: the slots that were written since.
    touched: Option<Bits>,
}

/// A set of slots.
#[derive(Default)]
struct Bits(Vec<u64>);

// === impl Table ===

impl<V: Send + Sync + 'static> Table<V> {
    /// A table that is to be filled with what is there.
    pub(crate) fn new() -> Self {
        Self {
            postings: Postings::new(),
            unplaced: Bits::default(),
            unplaced_count: 0,
            touched: Some(Bits::default()),
        }
    }

    /// The lists whose values have this hash.
    pub(crate) fn lists(&self, hash: u64) -> impl Iterator<Item = (u32, &Arc<V>, &[u32])> {
        self.postings.lists(hash)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<V>> {
        self.postings.values()
    }

    pub(crate) fn has_unplaced(&self) -> bool {
        self.unplaced_count > 0
    }

    /// Gives a slot its values.
    pub(crate) fn place(&mut self, slot: u32, values: &mut Vec<Posted<V>>, garbage: &mut Garbage) {
        self.touch(slot);
        self.set_unplaced(slot, false);
        self.postings.set(slot, values, garbage);
    }

    /// Says that the values of a slot are not known.
    pub(crate) fn misplace(&mut self, slot: u32, garbage: &mut Garbage) {
        self.touch(slot);
        self.set_unplaced(slot, true);
        self.postings.remove(slot, garbage);
    }

    fn set_unplaced(&mut self, slot: u32, unplaced: bool) {
        if self.unplaced.set(slot, unplaced) != unplaced {
            if unplaced {
                self.unplaced_count += 1;
            } else {
                self.unplaced_count -= 1;
            }
        }
    }

    fn touch(&mut self, slot: u32) {
        if let Some(touched) = &mut self.touched {
            touched.set(slot, true);
        }
    }
}

impl<V: Send + Sync + 'static> AnyTable for Table<V> {
    fn forget(&mut self, slot: u32, garbage: &mut Garbage) {
        self.touch(slot);
        self.set_unplaced(slot, false);
        self.postings.remove(slot, garbage);
    }

    fn is_touched(&self, slot: u32) -> bool {
        self.touched.as_ref().is_some_and(|touched| touched.get(slot))
    }

    fn built(&mut self) {
        self.touched = None;
    }
}

// === impl Bits ===

impl Bits {
    fn get(&self, slot: u32) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Returns whether it was set before.
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
}
