//! [`DeltaFifo`]: what was heard from the server and has not reached the store yet.

mod in_order;

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::in_order::InOrder;
use crate::{delta::Delta, object::Object};

/// Hands every delta on, once, in the order of the server; a list is one delta, so that it replaces the store in one
/// step.
///
/// It has one producer, the reflector, and one consumer, the task that writes to the store. The consumer never waits
/// for a handler, so that the producer, which waits while the queue is full, always goes on.
pub(crate) struct DeltaFifo<K: Object> {
    queue: Mutex<Design<K>>,
    /// Told after each push: the one consumer may be waiting.
    pushed: Notify,
    /// Told after each pop: the one producer may be waiting.
    popped: Notify,
}

/// How deltas are queued.
enum Design<K: Object> {
    InOrder(InOrder<K>),
}

/// What is done in one step.
pub(crate) type Batch<K> = Vec<Delta<K>>;

/// A batch takes the write lock once; more than this many deltas would keep readers out for too long.
const BATCH: usize = 1000;

/// With this many deltas waiting, the store lags behind so much that reading on only takes memory: two batches, so
/// that the store never waits for the reflector.
const FULL: usize = 2 * BATCH;

// === impl DeltaFifo ===

impl<K: Object> DeltaFifo<K> {
    pub(crate) fn in_order() -> Self {
        Self {
            queue: Mutex::new(Design::InOrder(InOrder::new())),
            pushed: Notify::new(),
            popped: Notify::new(),
        }
    }

    /// Queues deltas. Never waits; see [`room`](Self::room).
    pub(crate) fn push(&self, deltas: impl IntoIterator<Item = Delta<K>>) {
        match &mut *self.queue.lock() {
            Design::InOrder(queue) => queue.push(deltas),
        }
        self.pushed.notify_one();
    }

    /// Waits until the queue is not full.
    ///
    /// # Cancel safety
    /// Takes nothing.
    pub(crate) async fn room(&self) {
        while self.len() >= FULL {
            self.popped.notified().await;
        }
    }

    /// Waits for the deltas that come next, and takes them.
    ///
    /// # Cancel safety
    /// They are taken in the same step in which the future completes.
    pub(crate) async fn pop(&self) -> Batch<K> {
        loop {
            let batch = match &mut *self.queue.lock() {
                Design::InOrder(queue) => queue.pop(BATCH),
            };
            if !batch.is_empty() {
                self.popped.notify_one();
                return batch;
            }
            // One consumer: a push between the look above and this wait has left its permit.
            self.pushed.notified().await;
        }
    }

    fn len(&self) -> usize {
        match &*self.queue.lock() {
            Design::InOrder(queue) => queue.len(),
        }
    }
}
