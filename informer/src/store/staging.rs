//! [`Staging`]: runs the author's index functions on the objects of a step, while no lock is held.
//!
//! The locks, in the order in which a step takes them: the staging slot (for a moment), the read
//! lock of the objects (to look values up), the writer's lock (kept until the step is finished),
//! the write lock of the objects (to commit). The author's code runs only while none of them is
//! held.

use std::sync::Arc;

use homeostat_core::user_code;
use parking_lot::MutexGuard;

use super::Store;
use super::garbage::Garbage;
use super::indices::Definitions;
use super::stage::Stage;
use super::writer::Writer;
use crate::list_watch::Decoded;
use crate::object::{Object, ObjectMeta};

/// The values that the author's index functions computed for the objects of a step.
///
/// Empty between two steps. The store keeps its memory, so that a step allocates little.
pub(super) struct Staging<K> {
    definitions: Definitions<K>,
    /// A stage for each definition.
    pub(super) stages: Vec<Box<dyn Stage<K>>>,
    /// The number of stages, from the first, that have computed the values of this step.
    staged: usize,
    /// The memory for what the step replaces. Empty until the commit, which takes it.
    pub(super) garbage: Garbage<K>,
}

// === impl Store ===

impl<K: Object> Store<K> {
    /// Returns the staging area of the last step, or a new one.
    ///
    /// Steps of one store usually come from one task, so that the area is there. A second writer at
    /// the same time gets a new one.
    pub(super) fn take_staging(&self) -> Staging<K> {
        self.staging.lock().take().unwrap_or_else(Staging::new)
    }

    /// Keeps an empty staging area for the next step.
    pub(super) fn keep_staging(&self, staging: Staging<K>) {
        // Another step may have left its own meanwhile. It is dropped after the lock is released.
        let _other = self.staging.lock().replace(staging);
    }

    /// Runs every index function on these objects, and returns the writer's lock once every index
    /// is staged.
    ///
    /// The loop ends because each turn takes the definitions of the writer: it repeats only if an
    /// index was added or removed since, or if a piece of a new index or another step was faster.
    /// `objects` is iterated once per index and turn.
    pub(super) fn stage<'a>(
        &self,
        staging: &mut Staging<K>,
        objects: &(impl Iterator<Item = &'a Decoded<K>> + Clone),
    ) -> MutexGuard<'_, Writer<K>> {
        loop {
            for stage in &mut staging.stages[staging.staged..] {
                objects.clone().map(known).for_each(|known| stage.compute(known));
            }
            self.settle(staging);
            let writer = self.writer.lock();
            let is_complete = Arc::ptr_eq(&writer.definitions, &staging.definitions);
            if is_complete && self.is_current(staging) {
                return writer;
            }
            let definitions = Arc::clone(&writer.definitions);
            drop(writer);
            if is_complete {
                // The filling of a new index, or another step, was faster with an equal value.
                staging.clear();
            } else {
                // An index was added or removed: before this step, or while the others computed.
                staging.follow(definitions);
            }
        }
    }

    /// Returns false if a value of this step may have got a list since its look-up.
    fn is_current(&self, staging: &Staging<K>) -> bool {
        if staging.stages.is_empty() {
            return true;
        }
        let inner = self.inner.read();
        staging.stages.iter().zip(&*staging.definitions).all(|(stage, (id, _))| {
            let table = inner.tables.iter().find(|(other, _)| other == id);
            table.is_none_or(|(_, table)| stage.is_current(&**table))
        })
    }

    /// Compares the values that were computed since the last call with those of their tables.
    fn settle(&self, staging: &mut Staging<K>) {
        let first = std::mem::replace(&mut staging.staged, staging.stages.len());
        let stages = &mut staging.stages[first..];
        if stages.is_empty() {
            return;
        }
        let inner = self.inner.read();
        for (stage, (id, _)) in stages.iter_mut().zip(&staging.definitions[first..]) {
            if let Some((_, table)) = inner.tables.iter().find(|(other, _)| other == id) {
                stage.look_up(&**table);
            }
        }
        drop(inner);
        let panics: u64 = stages.iter_mut().map(|stage| stage.settle()).sum();
        if panics > 0 {
            self.count_index_panics(panics);
        }
    }
}

/// Returns the object, or its metadata if it does not fit its type.
fn known<K>(object: &Decoded<K>) -> Result<&K, &ObjectMeta> {
    match object {
        Decoded::Fits(object) => Ok(object),
        Decoded::Opaque { metadata, .. } => Err(metadata),
    }
}

// === impl Staging ===

impl<K> Staging<K> {
    fn new() -> Self {
        Self {
            definitions: Definitions::default(),
            stages: Vec::new(),
            staged: 0,
            garbage: Garbage::new(),
        }
    }

    /// Adds stages for new indices, and drops those of removed ones.
    ///
    /// Stages that have computed their values keep them. Only the stages of new indices compute in
    /// the next turn.
    fn follow(&mut self, definitions: Definitions<K>) {
        let known = std::mem::replace(&mut self.definitions, definitions);
        let (mut kept, mut staged, mut gone) = (Vec::new(), 0, Vec::new());
        for (place, (stage, (id, _))) in self.stages.drain(..).zip(&*known).enumerate() {
            if self.definitions.iter().any(|(other, _)| other == id) {
                staged += usize::from(place < self.staged);
                kept.push(stage);
            } else {
                gone.push(stage);
            }
        }
        let added = self.definitions.iter().skip(kept.len());
        kept.extend(added.map(|(_, definition)| definition.stage()));
        (self.stages, self.staged) = (kept, staged);
        // This may be the last handle on the author's function.
        if user_code("drop", || drop((known, gone))).is_err() {
            tracing::error!("the drop of an index function or value panicked; its memory is lost");
        }
    }

    /// Drops the values of all stages and keeps their memory. It runs the author's `Drop`, so that
    /// the caller holds no lock.
    pub(super) fn clear(&mut self) {
        // First: after a panic the next step must compute its values.
        self.staged = 0;
        self.garbage.clear();
        self.stages.iter_mut().for_each(|stage| stage.clear());
    }
}
