//! [`DeltaFifo`]: what was heard from the server and has not reached the copy yet.

mod coalescing;
mod in_order;
#[cfg(test)]
mod model;

use std::fmt;

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::{coalescing::Coalescing, in_order::InOrder};
use crate::{
    delta::Batch,
    list_watch::{Decoded, WatchEvent},
    object::{Object, ResourceVersion},
};

/// A queue between what a server says and a copy of it: one producer pushes events and lists, one consumer takes batches
/// and does them. No event is lost and none is invented, in either of two designs:
///
/// * [`in_order`](Self::in_order): every event in the order of the server, across all objects; a list is one delta, so
///   that the copy changes in one step. This is what an informer uses, and what client-go calls a `RealFIFO` with atomic
///   events.
/// * [`coalescing`](Self::coalescing): what happened to one object comes together, objects in the order in which they
///   were first heard of; a list is taken apart. This is the classic `DeltaFIFO`. An object that changes all the time
///   costs the others nothing, but two objects are seen in an order in which the server never had them.
///
/// An informer has one inside. Use it alone to keep another kind of copy: a database, a file, a cache in another process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::{collections::BTreeMap, sync::Arc};
///
/// use homeostat_informer::{Decoded, Delta, DeltaFifo, WatchEvent};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// fn config_map(name: &str, version: &str) -> Decoded<ConfigMap> {
///     let mut object = ConfigMap::default();
///     object.metadata.name = Some(name.into());
///     object.metadata.resource_version = Some(version.into());
///     Decoded::Fits(Arc::new(object))
/// }
///
/// let fifo = DeltaFifo::coalescing();
/// fifo.replace(vec![config_map("a", "1"), config_map("b", "2")], "2");
/// fifo.push([
///     WatchEvent::Applied(config_map("a", "3")),
///     WatchEvent::Deleted(config_map("b", "4")),
///     WatchEvent::Applied(config_map("a", "5")),
/// ]);
/// fifo.close();
///
/// let mut copy = BTreeMap::new();
/// let mut steps = Vec::new();
/// while let Some(batch) = fifo.pop().await {
///     for delta in &batch.deltas {
///         steps.push(format!("{delta:?}"));
///         let Some(object) = delta.object() else { continue };
///         if delta.is_deletion() {
///             copy.remove(&object.metadata().name);
///         } else {
///             copy.insert(object.metadata().name.clone(), object.clone());
///         }
///     }
///     assert!(batch.synced && batch.reached == Some("5".into()));
/// }
/// let together = [r#"Listed("a")"#, r#"Applied("a")"#, r#"Applied("a")"#, r#"Listed("b")"#, r#"Deleted("b")"#];
/// assert_eq!(steps, together);
/// assert_eq!(copy.len(), 1);
/// # }
/// ```
pub struct DeltaFifo<K: Object> {
    queue: Mutex<Queue<K>>,
    /// Told after each push: the one consumer may be waiting.
    pushed: Notify,
    /// Told after each pop: the one producer may be waiting.
    popped: Notify,
}

/// What the lock protects.
struct Queue<K: Object> {
    design: Design<K>,
    closed: bool,
}

/// How deltas are queued.
enum Design<K: Object> {
    InOrder(InOrder<K>),
    Coalescing(Coalescing<K>),
}

/// What is to be dropped when the lock is released: an object's `Drop` is the author's code.
type Garbage<K> = Vec<Decoded<K>>;

/// A batch takes the write lock of a store once; more than this many deltas would keep readers out for too long.
const BATCH: usize = 1000;

/// With this many deltas waiting, the copy lags behind so much that reading on only takes memory: two batches, so
/// that the consumer never waits for the producer.
const FULL: usize = 2 * BATCH;

// === impl DeltaFifo ===

impl<K: Object> DeltaFifo<K> {
    /// A queue that merges nothing and changes no order.
    pub fn in_order() -> Self {
        Self::new(Design::InOrder(InOrder::new()))
    }

    /// A queue that keeps together what happens to one object.
    ///
    /// It remembers the last state of each object that it has handed out, to know what is missing in a list: a pointer
    /// to it and its key.
    pub fn coalescing() -> Self {
        Self::new(Design::Coalescing(Coalescing::new()))
    }

    fn new(design: Design<K>) -> Self {
        Self {
            queue: Mutex::new(Queue { design, closed: false }),
            pushed: Notify::new(),
            popped: Notify::new(),
        }
    }

    /// Queues what a watch told. Never waits; see [`room`](Self::room).
    pub fn push(&self, events: impl IntoIterator<Item = WatchEvent<K>>) {
        // The iterator is the author's code: not under the lock.
        let events: Vec<_> = events.into_iter().collect();
        self.write(|design, garbage| match design {
            Design::InOrder(queue) => queue.push(events),
            Design::Coalescing(queue) => queue.push(events, garbage),
        });
    }

    /// Queues the whole state, from a list: what is not in it is gone.
    pub fn replace(&self, objects: Vec<Decoded<K>>, resource_version: impl Into<ResourceVersion>) {
        let version = resource_version.into();
        self.write(|design, garbage| match design {
            Design::InOrder(queue) => queue.replace(objects, version),
            Design::Coalescing(queue) => queue.replace(objects, version, garbage),
        });
    }

    /// Queues that every object is told again, as it is when its turn comes. An object of which something waits already
    /// is told anyway, and so not again.
    pub fn resync(&self) {
        self.write(|design, _| match design {
            Design::InOrder(queue) => queue.resync(),
            Design::Coalescing(queue) => queue.resync(),
        });
    }

    fn write(&self, change: impl FnOnce(&mut Design<K>, &mut Garbage<K>)) {
        let mut garbage = Vec::new();
        change(&mut self.queue.lock().design, &mut garbage);
        self.pushed.notify_one();
        drop(garbage);
    }

    /// Says that nothing more comes. What is queued still does.
    pub fn close(&self) {
        self.queue.lock().closed = true;
        self.pushed.notify_one();
    }

    /// Waits until fewer than 2000 deltas are queued. A producer that waits for this before it reads on bounds what is
    /// held in memory.
    ///
    /// # Cancel safety
    /// Takes nothing.
    pub async fn room(&self) {
        while self.len() >= FULL {
            self.popped.notified().await;
        }
    }

    /// Waits for what comes next, and takes it: up to 1000 deltas, or more if they are about one object. `None` if the
    /// queue is closed and empty.
    ///
    /// There is one consumer. What it was handed counts as done when it asks again.
    ///
    /// # Cancel safety
    /// It is taken in the same step in which the future completes.
    pub async fn pop(&self) -> Option<Batch<K>> {
        loop {
            if let Some(batch) = self.try_pop() {
                return Some(batch);
            }
            if self.queue.lock().closed {
                // What was pushed between the two looks came before the end.
                return self.try_pop();
            }
            // One consumer: a push between the look above and this wait has left its permit.
            self.pushed.notified().await;
        }
    }

    /// Takes what comes next, if there is something.
    pub fn try_pop(&self) -> Option<Batch<K>> {
        let mut garbage = Vec::new();
        let batch = match &mut self.queue.lock().design {
            Design::InOrder(queue) => queue.pop(BATCH),
            Design::Coalescing(queue) => queue.pop(BATCH, &mut garbage),
        };
        drop(garbage);
        if batch.is_some() {
            self.popped.notify_one();
        }
        batch
    }

    /// How many deltas are queued.
    pub fn len(&self) -> usize {
        match &self.queue.lock().design {
            Design::InOrder(queue) => queue.len(),
            Design::Coalescing(queue) => queue.len(),
        }
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Object> fmt::Debug for DeltaFifo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
