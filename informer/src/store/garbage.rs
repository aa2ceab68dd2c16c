//! [`Garbage`]: what a step has replaced. It is dropped after the locks are released: freeing an
//! object takes as long as decoding it, and runs the author's code.

use std::any::Any;
use std::sync::Arc;

use super::Entry;

/// The entries and index values that were removed under a lock.
pub(crate) struct Garbage<K> {
    /// The replaced entries that are in no event.
    pub(super) entries: Vec<Entry<K>>,
    /// The index values that no object has any more.
    pub(super) values: Vec<Arc<dyn Any + Send + Sync>>,
}

// === impl Garbage ===

impl<K> Garbage<K> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), values: Vec::new() }
    }

    /// Takes the garbage and its memory; an empty one stays.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    /// Drops the garbage and keeps the memory for some. It runs the author's `Drop`, so that the
    /// caller holds no lock.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.values.clear();
        shrink(&mut self.entries);
        shrink(&mut self.values);
    }
}

/// Frees the memory of a vector of which at most a quarter is used.
pub(super) fn shrink<T>(values: &mut Vec<T>) {
    if values.capacity() > 64 && values.len() <= values.capacity() / 4 {
        values.shrink_to(2 * values.len());
    }
}
