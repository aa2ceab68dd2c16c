//! [`Applier`]: applies batches to the store, and hands the changes to the handlers.
//!
//! The queue, the store and the handlers meet here and nowhere else. Locks are taken in this order:
//! the store's writer lock, the processor, a handler's queue. The author's code runs under none of
//! them.
//!
//! ```text
//!  DeltaFifo ─ batch ─▶ Applier ─▶ step of the Store ─▶ changes ─▶ Processor ─▶ queues of handlers
//!                          │
//!                          └─▶ version, synced ─▶ tasks that wait
//! ```
//!
//! One task runs it, so that the batches are applied in order and without a lock around the whole.
//! A batch is split at each full state, which is a step of its own.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::delta::{Batch, Delta};
use crate::delta_fifo::DeltaFifo;
use crate::metrics::{Applied, Metrics};
use crate::object::Object;
use crate::processor::{self, Handler, Listener, Processor};
use crate::reflector::Health;
use crate::store::{Step, Store};

/// The only writer of an informer's store, and the owner of its handlers' queues.
///
/// A step and the delivery of its changes happen under the store's writer lock. Adding a handler
/// takes the same lock, so that the handler gets a snapshot and then every change, without a gap or
/// a repetition.
pub(crate) struct Applier<K: Object> {
    store: Arc<Store<K>>,
    /// Locked after the store's writer lock, and never while the author's code runs.
    processor: Mutex<Processor<K>>,
}

/// The task of an informer that moves batches from the queue to the store.
///
/// An informer has one. It ends when the queue is closed, or when the informer stops.
pub(crate) struct ApplyTask<K: Object> {
    pub(crate) applier: Arc<Applier<K>>,
    pub(crate) fifo: Arc<DeltaFifo<K>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    /// Set to true when the initial list is in the store.
    pub(crate) synced: watch::Sender<bool>,
}

// === impl Applier ===

impl<K: Object> Applier<K> {
    /// Returns an applier without handlers.
    pub(crate) fn new(store: Arc<Store<K>>) -> Self {
        Self { store, processor: Mutex::new(Processor::new()) }
    }

    /// Applies a batch. In each step objects, indices and version change together, and the
    /// handlers' queues get the events before the next step.
    ///
    /// Returns true once a full state has been applied.
    ///
    /// The tasks that wait for a version are woken once, after the last step of the batch.
    pub(crate) fn apply_batch(&self, mut batch: Batch<K>) -> bool {
        let is_replaced = |delta: &Delta<K>| matches!(delta, Delta::Replaced { .. });
        while let Some(at) = batch.deltas.iter().position(is_replaced) {
            let after = batch.deltas.split_off(at + 1);
            let replaced = batch.deltas.pop();
            self.store.step(Batch::from(batch.deltas)).map(|step| self.deliver(step));
            if let Some(Delta::Replaced { objects, resource_version }) = replaced {
                self.deliver(self.store.replace(objects, resource_version));
            }
            batch = Batch::from(after);
        }
        let synced = match self.store.step(batch) {
            Some(step) => self.deliver(step),
            None => self.store.has_synced(),
        };
        self.store.notify_changed();
        synced
    }

    /// Applies deltas that are in the order of the server.
    #[cfg(test)]
    pub(crate) fn apply(&self, deltas: Vec<Delta<K>>) -> bool {
        self.apply_batch(Batch::from(deltas))
    }

    /// Queues the changes of a step for the handlers, then releases the writer's lock. Returns true
    /// once a full state has been applied.
    ///
    /// The events are moved into the queues. What is left in the step, such as replaced states, is
    /// dropped by its `finish`, after the release of the lock.
    fn deliver(&self, mut step: Step<'_, K>) -> bool {
        let changes = &mut step.changes;
        let events = Arc::new(mem::take(&mut changes.events));
        let mut processor = self.processor.lock();
        changes.events = processor.send(&events, &changes.versions);
        if changes.first_sync {
            processor.mark_synced();
        }
        drop(processor);
        let synced = step.finish();
        processor::drop_events(events);
        synced
    }

    /// Adds a handler: it gets what is in the store now, and then every change, without a gap or a
    /// repetition.
    ///
    /// The writer's lock is held from the snapshot to the end of the registration, so that no step
    /// lies in between.
    pub(crate) fn add_listener(&self, listener: Listener<K>) {
        let pause = self.store.pause();
        let (found, version) = self.store.freeze_with_version();
        self.processor.lock().add(listener, found.entries, version, pause.has_synced());
    }

    /// Returns the handlers of events, in the order in which they were added.
    pub(crate) fn handlers(&self) -> Vec<Arc<Handler>> {
        self.processor.lock().handlers()
    }
}

// === impl ApplyTask ===

impl<K: Object> ApplyTask<K> {
    /// Applies batches until the queue is closed.
    ///
    /// The metrics are recorded after the batch, without a lock. An informer without a recorder
    /// counts nothing.
    ///
    /// # Cancel safety
    ///
    /// A batch is applied in the same step in which it was taken from the queue.
    pub(crate) async fn run(self) {
        let Self { applier, fifo, metrics, health, synced } = self;
        let store = &applier.store;
        while let Some(batch) = fifo.pop().await {
            let taken = metrics.taken(|| batch.deltas.len() + fifo.len());
            let has_synced = applier.apply_batch(batch);
            if metrics.is_recorded() {
                let applied = Applied {
                    queued: fifo.len(),
                    skipped_nameless: health.skipped_nameless(),
                    opaque: store.count().1,
                    index_panics: store.index_panics(),
                    version: store.resource_version(),
                };
                metrics.applied(&taken, &applied);
                applier.handlers().iter().for_each(|handler| handler.show());
            }
            synced.send_if_modified(|synced| has_synced && !mem::replace(synced, true));
        }
    }
}

#[cfg(test)]
mod tests;
