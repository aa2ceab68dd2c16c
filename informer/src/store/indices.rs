//! Adding and removing indices while the store changes.
//!
//! An index is added in three steps: its definition and an empty table become part of the store, so
//! that every later step stages values for it; the objects that existed at that time are frozen;
//! they are filled in by pieces. Readers can use the index only after that, because the handle is
//! returned last.

use std::sync::Arc;

use homeostat_core::user_code;

use super::inner::Existing;
use super::stage::{Definition, Stage};
use super::table_ref::TableId;
use super::{Entry, Store};
use crate::object::{KeyRef, Object};

/// The definitions of the indices, in ascending order of their ids. A change replaces the slice, so
/// two equal pointers mean that no index was added or removed.
pub(super) type Definitions<K> = Arc<[(TableId, Arc<dyn Definition<K>>)]>;

/// The number of existing objects that a new index adds per lock, which is held for some 100 µs.
///
/// The pause between two pieces lets readers and steps in: a store with 100,000 objects gets a new
/// index in about 100 pieces.
const PIECE: usize = 1024;

// === impl Store ===

impl<K: Object> Store<K> {
    /// Adds an index over the existing objects and all that follow. The index is complete when this
    /// returns.
    ///
    /// The author's function runs without a lock, for one piece at a time. If it panics for an
    /// object, that object has no values, and the others have theirs.
    pub(super) fn add_index(&self, definition: Arc<dyn Definition<K>>) -> TableId {
        let mut stage = definition.stage();
        let (id, entries) = {
            let mut writer = self.writer.lock();
            let id = writer.next_id;
            writer.next_id += 1;
            let table = definition.table();
            let known = writer.definitions.iter().cloned();
            writer.definitions = known.chain([(id, definition)]).collect();
            let mut inner = self.inner.write();
            inner.tables.push((id, table));
            (id, inner.entries.freeze())
        };
        let mut entries = (0..).zip(entries.iter()).peekable();
        while entries.peek().is_some() {
            let piece: Vec<_> = entries.by_ref().take(PIECE).map(existing).collect();
            self.fill(id, &piece, &mut *stage);
        }
        id
    }

    /// Adds a piece of the existing objects to a new index.
    ///
    /// If a step is faster with a value of these objects, the piece starts again, in smaller
    /// pieces: a short one is filled between two steps, however many there are.
    fn fill(&self, id: TableId, mut piece: &[Existing<'_, K>], stage: &mut dyn Stage<K>) {
        let mut length = piece.len();
        while !piece.is_empty() {
            let (now, later) = piece.split_at(length.min(piece.len()));
            if self.try_fill(id, now, stage) {
                piece = later;
            } else {
                stage.clear();
                length = length.div_ceil(2);
            }
        }
    }

    /// Returns false, and changes nothing, if a step was faster.
    fn try_fill(&self, id: TableId, piece: &[Existing<'_, K>], stage: &mut dyn Stage<K>) -> bool {
        for object in piece {
            stage.compute(object.entry.known());
        }
        self.look_up(id, stage);
        self.count_index_panics(stage.settle());
        // A step holds this lock from its look at the tables to its commit.
        let writer = self.writer.lock();
        let mut inner = self.inner.write();
        let table = inner.tables.iter().find(|(other, _)| *other == id);
        if !table.is_none_or(|(_, table)| stage.is_current(&**table)) {
            return false;
        }
        let garbage = inner.fill(id, piece, stage);
        drop((inner, writer));
        // Dropped after the locks are released.
        drop(garbage);
        true
    }

    /// Removes an index; no handle on it is left.
    ///
    /// It is called by the drop of the last handle. The table is dropped after the locks are
    /// released, because values are the author's.
    pub(crate) fn remove_index(&self, id: TableId) {
        let mut writer = self.writer.lock();
        let rest = writer.definitions.iter().filter(|(other, _)| *other != id).cloned().collect();
        let definitions = std::mem::replace(&mut writer.definitions, rest);
        let mut inner = self.inner.write();
        let place = inner.tables.iter().position(|(other, _)| *other == id);
        let table = place.map(|place| inner.tables.remove(place));
        drop((inner, writer));
        // Drops the author's function and values, and the entries that only the index still has.
        if user_code("drop", || drop((definitions, table))).is_err() {
            tracing::error!("the drop of an index function or value panicked; its memory is lost");
        }
    }

    /// Nothing is looked up if the index was removed meanwhile.
    fn look_up(&self, id: TableId, stage: &mut dyn Stage<K>) {
        let inner = self.inner.read();
        if let Some((_, table)) = inner.tables.iter().find(|(other, _)| *other == id) {
            stage.look_up(&**table);
        }
    }
}

/// Pairs an entry with its slot at the time of the snapshot. [`Inner::fill`](super::Inner::fill)
/// checks if it is still there.
fn existing<K: Object>((slot, entry): (u32, &Entry<K>)) -> Existing<'_, K> {
    Existing { slot, key: KeyRef::from_metadata(entry.metadata()), entry }
}
