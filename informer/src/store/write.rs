//! The write half of the store: stage, lock, commit, unlock, drop.
//!
//! A step returns with the writer's lock held, so that its caller can deliver the [`Changes`]
//! before the next step.
//!
//! ```text
//!  take_staging ─▶ stage ─▶ lock writer ─▶ lock inner ─▶ commit ─▶ unlock inner
//!                 (author's code)                                      │
//!        keep_staging ◀─ drop garbage ◀─ unlock writer ◀─ deliver changes
//! ```
//!
//! Readers wait only while the objects are changed, which is a few pointer writes per delta. The
//! writer's lock is held longer, until the changes are in the queues of the handlers: so every
//! handler receives the steps in the same order, and a handler that is added in between gets either
//! the object in its snapshot or the event, not both.

use homeostat_core::user_code;
use parking_lot::MutexGuard;

use super::Store;
use super::inner::Changes;
use super::staging::Staging;
use super::writer::Writer;
use crate::delta::{Batch, Delta};
use crate::list_watch::Decoded;
use crate::object::{Object, ResourceVersion};

/// A step that has been committed. The writer's lock is held until [`finish`](Self::finish): no
/// step follows before the changes are delivered.
#[must_use = "the next step waits until this one is finished"]
pub(crate) struct Step<'s, K: Object> {
    // Dropped first, so that objects are dropped after the lock is released.
    writer: MutexGuard<'s, Writer<K>>,
    store: &'s Store<K>,
    staging: Staging<K>,
    /// The changes, to be delivered to the handlers.
    pub(crate) changes: Changes<K>,
}

/// The writer's lock: no step happens while it is held.
pub(crate) struct Pause<'s, K> {
    writer: MutexGuard<'s, Writer<K>>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    /// Commits a batch that has no `Replaced`: objects, indices and version change together.
    ///
    /// Returns `None` if the batch is empty.
    ///
    /// The index functions run before any lock is taken. A panic in them costs the object its
    /// values in that index, and nothing else.
    pub(crate) fn step(&self, batch: Batch<K>) -> Option<Step<'_, K>> {
        let Batch { deltas, reached, relisted, synced } = batch;
        if deltas.is_empty() && reached.is_none() {
            return None;
        }
        let mut staging = self.take_staging();
        let writer = self.stage(&mut staging, &deltas.iter().filter_map(applied));
        let mut changes = Changes::new(staging.garbage.take());
        let mut inner = self.inner.write();
        for delta in deltas {
            let stages = &mut staging.stages;
            changes.initial = !writer.synced && matches!(delta, Delta::Listed(_));
            match delta {
                Delta::Applied(object) => inner.applied(object, stages, &mut changes),
                Delta::Listed(object) => inner.listed(object, stages, &mut changes),
                Delta::Deleted(object) => inner.deleted(object, &mut changes),
                Delta::Vanished(object) => inner.vanished(object, &mut changes),
                Delta::Resynced(object) => inner.resynced(object, &mut changes),
                Delta::ResyncedAll => inner.resynced_all(&mut changes),
                Delta::Bookmark(_) | Delta::Replaced { .. } => {}
            }
        }
        inner.advance(reached, relisted, &mut changes);
        drop(inner);
        Some(self.committed(writer, staging, changes, synced))
    }

    /// Commits a full state and deletes the objects that are not in it.
    ///
    /// An object that is unchanged, or of which the list has a newer state, is dropped and gives no
    /// event. The comparison takes the locks only to read, and is repeated if another step was
    /// committed before the lock was taken for the commit.
    ///
    /// The events are in this order: the objects that are gone, then the new and changed ones in
    /// the order of the list.
    ///
    /// The loop ends when no other step was committed between the comparison and the lock. The
    /// steps of an informer come from one task, so that the comparison is repeated only if another
    /// task writes to the same store.
    pub(crate) fn replace(
        &self,
        objects: Vec<Decoded<K>>,
        version: ResourceVersion,
    ) -> Step<'_, K> {
        let mut staging = self.take_staging();
        let (writer, difference) = loop {
            let (steps, difference) = {
                let writer = self.writer.lock();
                (writer.steps, self.inner.read().difference(&objects, &version))
            };
            let fates = objects.iter().zip(&difference.stays);
            let changed = fates.filter_map(|(object, stays)| (!stays).then_some(object));
            let writer = self.stage(&mut staging, &changed);
            if writer.steps == steps {
                break (writer, difference);
            }
            // Another step has been committed since the comparison: compare again.
            drop(writer);
            staging.clear();
        };
        let mut changes = Changes::new(staging.garbage.take());
        let mut inner = self.inner.write();
        for slot in difference.gone {
            inner.remove(slot, None, &mut changes);
        }
        changes.initial = !writer.synced;
        for (object, stays) in objects.into_iter().zip(difference.stays) {
            if stays {
                changes.garbage.entries.push(object.into());
            } else {
                inner.put(object, &mut staging.stages, &mut changes);
            }
        }
        inner.reach(version, &mut changes);
        drop(inner);
        self.committed(writer, staging, changes, true)
    }

    /// Counts the step, and marks the store as synced if the step completes a full state.
    ///
    /// The first full state sets `first_sync`, which completes the initial list of every handler.
    fn committed<'s>(
        &'s self,
        mut writer: MutexGuard<'s, Writer<K>>,
        staging: Staging<K>,
        mut changes: Changes<K>,
        synced: bool,
    ) -> Step<'s, K> {
        writer.steps += 1;
        changes.first_sync = synced && !writer.synced;
        writer.synced |= synced;
        Step { writer, store: self, staging, changes }
    }

    /// Takes the writer's lock: no step happens until the result is dropped.
    pub(crate) fn pause(&self) -> Pause<'_, K> {
        Pause { writer: self.writer.lock() }
    }

    /// Returns true once a full state has been applied.
    pub(crate) fn has_synced(&self) -> bool {
        self.pause().has_synced()
    }
}

/// Returns the object of a delta that needs index values; `None` for deletions, resyncs and
/// bookmarks.
fn applied<K: Object>(delta: &Delta<K>) -> Option<&Decoded<K>> {
    match delta {
        Delta::Applied(object) | Delta::Listed(object) => Some(object),
        _ => None,
    }
}

// === impl Step ===

impl<K: Object> Step<'_, K> {
    /// Releases the lock, then drops the replaced objects: freeing them takes as long as decoding
    /// them, and runs the author's code.
    ///
    /// Returns true once a full state has been applied.
    pub(crate) fn finish(self) -> bool {
        let Self { writer, store, mut staging, changes } = self;
        let synced = writer.synced;
        drop(writer);
        let Changes { events, garbage, .. } = changes;
        staging.garbage = garbage;
        let drop_all = || {
            staging.clear();
            drop(events);
        };
        if user_code("drop", drop_all).is_err() {
            tracing::error!("the drop of an object or index value panicked; its memory is lost");
        }
        store.keep_staging(staging);
        synced
    }
}

// === impl Pause ===

impl<K> Pause<'_, K> {
    pub(crate) fn has_synced(&self) -> bool {
        self.writer.synced
    }
}
