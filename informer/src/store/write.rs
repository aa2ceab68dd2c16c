//! The write half of the store: stage, lock, commit, tell the handlers, unlock, drop.

use std::{panic::AssertUnwindSafe, sync::Arc};

use parking_lot::MutexGuard;

use super::{Store, inner::Changes};
use crate::{
    delta::{Batch, Delta},
    dispatcher::{Channel, Handler, Outlet, Outlets},
    index::{Definition, Stage},
    list_watch::Decoded,
    object::{Object, ObjectMeta, ResourceVersion},
};

/// What writing takes, besides the lock.
pub(super) struct Writer<K: Object> {
    /// In the order of `Inner::tables`.
    definitions: Arc<[Arc<dyn Definition<K>>]>,
    outlets: Outlets<K>,
    /// Whether the store has been whole once.
    synced: bool,
    /// How many steps have changed the store.
    steps: u64,
}

/// What the author's index functions said about the objects of a step.
pub(super) struct Staging<K> {
    stages: Vec<Box<dyn Stage<K>>>,
    /// How many of them have computed what this step brings.
    staged: usize,
}

/// A new index takes in what was there before it in pieces of so many objects, each under the lock.
const PIECE: usize = 1024;

// === impl Store ===

impl<K: Object> Store<K> {
    /// Steps of the copy towards the server: in each, objects, indices and version change together, and the handlers'
    /// queues get the events.
    ///
    /// Returns whether the store has been whole once.
    pub(crate) fn apply_batch(&self, mut batch: Batch<K>) -> bool {
        let whole = |delta: &Delta<K>| matches!(delta, Delta::Replaced { .. });
        while let Some(at) = batch.deltas.iter().position(whole) {
            let after = batch.deltas.split_off(at + 1);
            if let Some(Delta::Replaced { objects, resource_version }) = batch.deltas.pop() {
                let _later: bool = self.step(Batch::from(batch.deltas));
                self.replace(objects, resource_version);
            }
            batch = Batch::from(after);
        }
        let synced = self.step(batch);
        // To nobody, this does nothing; it looks for waiters after the change, and they for the change once they wait.
        let _nobody_waits: Result<(), _> = self.changed.send(());
        synced
    }

    /// The same, of what comes in the order of the server.
    pub(crate) fn apply(&self, deltas: Vec<Delta<K>>) -> bool {
        self.apply_batch(Batch::from(deltas))
    }

    /// Returns whether the store has been whole once.
    fn step(&self, batch: Batch<K>) -> bool {
        let Batch { deltas, reached, relisted, synced } = batch;
        if deltas.is_empty() && reached.is_none() {
            return self.writer.lock().synced;
        }
        let mut staging = self.staging();
        let mut writer = self.stage(&mut staging, &deltas.iter().filter_map(applied));
        let mut changes = Changes::new();
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
        writer.finish(&mut changes, synced);
        let synced = writer.synced;
        drop(writer);
        self.drop_unlocked(changes, staging);
        synced
    }

    fn replace(&self, objects: Vec<Decoded<K>>, version: ResourceVersion) {
        let mut staging = self.staging();
        let (mut writer, difference) = loop {
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
            // Somebody else has written meanwhile: compare once more.
            drop(writer);
            staging.clear();
        };
        let mut changes = Changes::new();
        let mut inner = self.inner.write();
        for slot in difference.gone {
            inner.gone(slot, None, &mut changes);
        }
        changes.initial = !writer.synced;
        for (object, stays) in objects.into_iter().zip(difference.stays) {
            if stays {
                changes.garbage.push(object.into());
            } else {
                inner.put(object, &mut staging.stages, &mut changes);
            }
        }
        inner.reach(version, &mut changes);
        drop(inner);
        writer.finish(&mut changes, true);
        drop(writer);
        self.drop_unlocked(changes, staging);
    }

    /// Lets every index compute what these objects bring, and returns the writer, for whom nothing is missing.
    fn stage<'a>(
        &self,
        staging: &mut Staging<K>,
        objects: &(impl Iterator<Item = &'a Decoded<K>> + Clone),
    ) -> MutexGuard<'_, Writer<K>> {
        loop {
            let writer = self.writer.lock();
            if writer.definitions.len() == staging.staged {
                return writer;
            }
            // An index was added: before this step, or while the others computed.
            let definitions = Arc::clone(&writer.definitions);
            drop(writer);
            staging.grow(&definitions);
            let (first, end) = (staging.staged, definitions.len());
            let stages = &mut staging.stages[first..end];
            for stage in &mut *stages {
                objects.clone().map(known).for_each(|known| stage.compute(known));
            }
            self.settle(first, stages);
            staging.staged = end;
        }
    }

    /// Compares what these stages, the first of which is that of index `first`, have computed with their tables.
    fn settle(&self, first: usize, stages: &mut [Box<dyn Stage<K>>]) {
        let inner = self.inner.read();
        for (stage, table) in stages.iter_mut().zip(&inner.tables[first..]) {
            stage.look_up(&**table);
        }
        drop(inner);
        for stage in stages {
            let panics = stage.settle();
            if panics > 0 {
                self.count_index_panics(panics);
            }
        }
    }

    fn staging(&self) -> Staging<K> {
        let kept = self.staging.lock().take();
        kept.unwrap_or_else(|| Staging { stages: Vec::new(), staged: 0 })
    }

    /// Only now goes what was replaced: freeing it takes as long as decoding it, and is the author's code.
    fn drop_unlocked(&self, changes: Changes<K>, mut staging: Staging<K>) {
        let drop_all = || {
            drop(changes);
            staging.clear();
        };
        if std::panic::catch_unwind(AssertUnwindSafe(drop_all)).is_err() {
            tracing::error!("an object or the value of an index panicked while it was dropped");
        }
        // Another one may be there by now: that goes after the lock.
        let _other = self.staging.lock().replace(staging);
    }

    /// Adds a handler's queue: what is there now, and then every change, without a gap or a repetition.
    pub(crate) fn add_outlet(&self, outlet: Outlet<K>) {
        let mut writer = self.writer.lock();
        let inner = self.inner.read();
        let (frozen, version) = (inner.slab.freeze(), inner.resource_version.clone());
        drop(inner);
        let synced = writer.synced;
        writer.outlets.add(outlet, frozen, version, synced);
    }

    /// Tells one handler of everything once more, in its place among the changes.
    pub(crate) fn resync(&self, channel: &Channel<K>, handler: &Handler) {
        let _writer = self.writer.lock();
        channel.resync(self.freeze(), handler);
    }

    /// Adds an index over what is there and what will come; returns its number. When this returns, it is complete.
    pub(crate) fn add_index(&self, definition: Arc<dyn Definition<K>>) -> usize {
        let mut stage = definition.stage();
        let (number, frozen) = {
            let mut writer = self.writer.lock();
            let number = writer.definitions.len();
            let table = definition.table();
            writer.definitions = writer.definitions.iter().cloned().chain([definition]).collect();
            let mut inner = self.inner.write();
            inner.tables.push(table);
            (number, inner.slab.freeze())
        };
        let mut entries = frozen.iter().peekable();
        while entries.peek().is_some() {
            let piece: Vec<_> = entries.by_ref().take(PIECE).collect();
            for (_, entry) in &piece {
                stage.compute(entry.known());
            }
            self.settle(number, std::slice::from_mut(&mut stage));
            let slots = piece.iter().map(|(slot, _)| *slot);
            // Dropped when the lock is released.
            let _garbage = self.inner.write().fill(number, slots, &mut *stage);
        }
        self.inner.write().tables[number].built();
        number
    }
}

fn applied<K: Object>(delta: &Delta<K>) -> Option<&Decoded<K>> {
    match delta {
        Delta::Applied(object) | Delta::Listed(object) => Some(object),
        _ => None,
    }
}

/// The object, or else its metadata.
fn known<K>(object: &Decoded<K>) -> Result<&K, &ObjectMeta> {
    match object {
        Decoded::Fits(object) => Ok(object),
        Decoded::Opaque { metadata, .. } => Err(metadata),
    }
}

// === impl Staging ===

impl<K> Staging<K> {
    fn grow(&mut self, definitions: &[Arc<dyn Definition<K>>]) {
        for definition in definitions.iter().skip(self.stages.len()) {
            self.stages.push(definition.stage());
        }
    }

    fn clear(&mut self) {
        self.staged = 0;
        self.stages.iter_mut().for_each(|stage| stage.clear());
    }
}

// === impl Writer ===

impl<K: Object> Writer<K> {
    pub(super) fn new() -> Self {
        Self { definitions: Arc::new([]), outlets: Outlets::new(), synced: false, steps: 0 }
    }

    pub(super) fn handlers(&self) -> Vec<Arc<Handler>> {
        self.outlets.handlers()
    }

    /// Tells the handlers.
    fn finish(&mut self, changes: &mut Changes<K>, whole: bool) {
        self.steps += 1;
        self.outlets.send(&mut changes.events, &changes.versions);
        if whole && !self.synced {
            self.synced = true;
            self.outlets.synced();
        }
    }
}
