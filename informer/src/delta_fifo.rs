//! [`DeltaFifo`]: the queue between a server and a copy of its objects.
//!
//! The queue decouples the reflector, which reads the watch, from the store, whose handlers and
//! indices are the author's code: a slow batch does not stop the reading before 2000 deltas wait.
//! Both designs are plain structs without a lock; [`DeltaFifo`] adds the one lock and the two
//! notifications. The lock is held for moves, hash lookups and comparisons of versions. Objects
//! that a change replaces leave the lock as garbage, because `Drop` of an object is the author's
//! code.

mod coalescing;
mod in_order;
#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod model;
mod version;

use std::fmt;

use self::coalescing::Coalescing;
use self::in_order::InOrder;
use crate::delta::{Batch, newest_of};
use crate::list_watch::{Decoded, WatchEvent};
use crate::object::{Object, ResourceVersion};
use crate::sync::{Mutex, Notify};

/// A queue between a server and a copy of its objects. One producer pushes events and lists, one
/// consumer takes batches and applies them. No event is lost and none is invented. There are two
/// designs:
///
/// * [`in_order`](Self::in_order): every event in the order of the server, across all objects. A
///   list is one delta, so that the copy changes in one step. An informer uses this design by
///   default; client-go calls it `RealFIFO` with atomic events.
/// * [`coalescing`](Self::coalescing): the deltas of one object come together; objects come in the
///   order of their first waiting delta. A list is taken apart. This is client-go's classic
///   `DeltaFIFO`. An object that changes often does not delay the others, but the copy passes
///   through states that the server never had. An event that is older than the last state of its
///   object is dropped: a watch that starts again may repeat it.
///
/// Use it without an informer to keep another kind of copy: a database, a file, a cache in another
/// process.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::{collections::BTreeMap, sync::Arc};
///
/// use homeostat_informer::fifo::{Delta, DeltaFifo};
/// use homeostat_informer::list_watch::{Decoded, WatchEvent};
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
/// let deltas_of_a = [r#"Listed("a")"#, r#"Applied("a")"#, r#"Applied("a")"#];
/// let deltas_of_b = [r#"Listed("b")"#, r#"Deleted("b")"#];
/// assert_eq!(steps[..3], deltas_of_a);
/// assert_eq!(steps[3..], deltas_of_b);
/// assert_eq!(copy.len(), 1);
/// # }
/// ```
///
/// # Choosing a design
///
/// * Use `in_order` when the copy must never show a state that the server never had. A push and a
///   pop cost O(1) per delta, and the queue holds every event.
/// * Use `coalescing` when single objects change far more often than the others. A push costs a
///   hash lookup per event, a list costs a sort of the objects that it lacks, and the queue holds
///   an entry per object of the copy.
///
/// Neither design merges the updates of an object: a consumer that is slow sees each one. To see
/// only the newest state, coalesce behind the copy, for example with a work queue of keys.
#[doc(alias = "DeltaFIFO")]
#[doc(alias = "RealFIFO")]
pub struct DeltaFifo<K: Object> {
    queue: Mutex<Queue<K>>,
    /// Notified after each push: the consumer may be waiting.
    pushed: Notify,
    /// Notified after each pop: the producer may be waiting.
    popped: Notify,
}

/// The state that the lock protects.
struct Queue<K: Object> {
    /// Never changes its variant after construction.
    design: Design<K>,
    /// Set by `close`, never reset.
    closed: bool,
}

/// The two designs.
enum Design<K: Object> {
    InOrder(InOrder<K>),
    Coalescing(Coalescing<K>),
}

/// Objects to be dropped after the lock is released: `Drop` is the author's code.
type Garbage<K> = Vec<Decoded<K>>;

/// The maximum number of deltas in a batch. The store applies a batch under one write lock; a
/// larger batch would block readers for too long.
const BATCH: usize = 1000;

/// The number of queued deltas at which the producer waits. Two batches, so that the consumer never
/// waits for the producer.
const FULL: usize = 2 * BATCH;

// === impl DeltaFifo ===

impl<K: Object> DeltaFifo<K> {
    /// Creates a queue that merges nothing and keeps the order.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::fifo::{Delta, DeltaFifo};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let fifo = DeltaFifo::<Pod>::in_order();
    /// fifo.replace(vec![], "5");
    /// let batch = fifo.try_pop().expect("a list is one delta");
    /// assert!(matches!(&batch.deltas[..], [Delta::Replaced { .. }]));
    /// assert!(batch.relisted && batch.synced);
    /// assert_eq!(batch.reached, Some("5".into()));
    /// assert!(fifo.try_pop().is_none());
    /// ```
    #[doc(alias = "NewRealFIFO")]
    pub fn in_order() -> Self {
        Self::new(Design::InOrder(InOrder::new()))
    }

    /// Creates a queue that keeps the deltas of one object together.
    ///
    /// It holds the key and a pointer to the last state of each object that it has handed out, to
    /// know which objects a list lacks.
    #[doc(alias = "NewDeltaFIFO")]
    pub fn coalescing() -> Self {
        Self::new(Design::Coalescing(Coalescing::new()))
    }

    /// Creates an open, empty queue of this design.
    fn new(design: Design<K>) -> Self {
        Self {
            queue: Mutex::new(Queue { design, closed: false }),
            pushed: Notify::new(),
            popped: Notify::new(),
        }
    }

    /// Queues the events of a watch. Never waits; see [`wait_for_room`](Self::wait_for_room).
    ///
    /// The events must be in the order of the server. The queue locks once for all of them. The
    /// queue is unbounded: nothing is dropped when it is full.
    ///
    /// A coalescing queue drops the deletion of an object that it does not know; there is nothing
    /// to delete.
    pub fn push(&self, events: impl IntoIterator<Item = WatchEvent<K>>) {
        // The iterator is the author's code: not under the lock.
        let events: Vec<_> = events.into_iter().collect();
        let newest = newest_of(&events);
        self.push_all(events, newest);
    }

    /// Queues events, the newest version in which is known.
    pub(crate) fn push_all(&self, events: Vec<WatchEvent<K>>, newest: Option<ResourceVersion>) {
        self.write(|design, garbage| match design {
            Design::InOrder(queue) => queue.push(events, newest),
            Design::Coalescing(queue) => queue.push(events, newest, garbage),
        });
    }

    /// Returns the version that was received: everything up to it has been pushed.
    pub(crate) fn received(&self) -> Option<ResourceVersion> {
        match &self.queue.lock().design {
            Design::InOrder(queue) => queue.received().cloned(),
            Design::Coalescing(queue) => queue.received().cloned(),
        }
    }

    /// Queues the full state from a list: an object that is not in it is deleted.
    ///
    /// Call it with the complete state only. A list that lacks an object by mistake deletes it from
    /// the copy.
    ///
    /// `resource_version` becomes the version of the queue, even if it is lower than the last one:
    /// the server then has another history, for example after a restore from a backup.
    ///
    /// # Examples
    ///
    /// An object that a later list lacks is reported as vanished, not as deleted:
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use homeostat_informer::fifo::{Delta, DeltaFifo};
    /// use homeostat_informer::list_watch::Decoded;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let mut pod = Pod::default();
    /// pod.metadata.name = Some("web".into());
    /// let fifo = DeltaFifo::coalescing();
    /// fifo.replace(vec![Decoded::Fits(Arc::new(pod))], "1");
    /// fifo.try_pop();
    ///
    /// fifo.replace(vec![], "2");
    /// let batch = fifo.try_pop().expect("the object is gone");
    /// assert!(matches!(&batch.deltas[..], [Delta::Vanished(_)]));
    /// ```
    #[doc(alias = "Replace")]
    pub fn replace(&self, objects: Vec<Decoded<K>>, resource_version: impl Into<ResourceVersion>) {
        let version = resource_version.into();
        self.write(|design, garbage| match design {
            Design::InOrder(queue) => queue.replace(objects, version),
            Design::Coalescing(queue) => queue.replace(objects, version, garbage),
        });
    }

    /// Queues every object again. An object for which a delta already waits is not queued a second
    /// time.
    ///
    /// A resync sends no request to the server and finds no missed event: it redelivers what the
    /// copy has. Use it to repeat work whose result something else may have undone.
    ///
    /// The in-order design queues one [`Delta::ResyncedAll`](crate::fifo::Delta::ResyncedAll),
    /// because it does not know the objects; it does so for each call.
    #[doc(alias = "Resync")]
    pub fn resync(&self) {
        self.write(|design, _| match design {
            Design::InOrder(queue) => queue.resync(),
            Design::Coalescing(queue) => queue.resync(),
        });
    }

    /// Changes the queue under the lock and notifies the consumer. The garbage is dropped after the
    /// lock is released.
    fn write(&self, change: impl FnOnce(&mut Design<K>, &mut Garbage<K>)) {
        let mut garbage = Vec::new();
        change(&mut self.queue.lock().design, &mut garbage);
        self.pushed.notify_one();
        drop(garbage);
    }

    /// Closes the queue: `pop` returns `None` once it is empty.
    ///
    /// A closed queue still accepts pushes, and `pop` delivers them before it returns `None`.
    pub fn close(&self) {
        self.queue.lock().closed = true;
        self.pushed.notify_one();
        self.popped.notify_one();
    }

    /// Waits until fewer than 2000 deltas are queued, which is two batches, or the queue is closed.
    /// A producer that waits for this before it reads on bounds the memory of the queue.
    ///
    /// A list counts as one delta in the in-order design, and as one per object in the coalescing
    /// design.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    pub async fn wait_for_room(&self) {
        while self.len() >= FULL && !self.queue.lock().closed {
            self.popped.notified().await;
        }
    }

    /// Waits for the next batch and takes it: up to 1000 deltas, or more if they are about one
    /// object. Returns `None` if the queue is closed and empty.
    ///
    /// There is one consumer. A batch counts as applied when the consumer calls this again.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: a batch is taken in the same step in which the future completes.
    ///
    /// # Examples
    ///
    /// A consumer that ends when the producer is done:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use homeostat_informer::fifo::DeltaFifo;
    /// use homeostat_informer::list_watch::WatchEvent;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let fifo = DeltaFifo::<Pod>::in_order();
    /// fifo.replace(vec![], "5");
    /// let resource_version = "8".into();
    /// fifo.push([WatchEvent::Bookmark { resource_version, initial_events_end: false }]);
    /// fifo.close();
    ///
    /// let mut reached = None;
    /// while let Some(batch) = fifo.pop().await {
    ///     reached = batch.reached.or(reached);
    /// }
    /// assert_eq!(reached, Some("8".into()));
    /// # }
    /// ```
    #[doc(alias = "Pop")]
    pub async fn pop(&self) -> Option<Batch<K>> {
        loop {
            if let Some(batch) = self.try_pop() {
                return Some(batch);
            }
            if self.queue.lock().closed {
                // A push between the two calls came before the close.
                return self.try_pop();
            }
            // One consumer: a push between `try_pop` and this wait has stored a permit.
            self.pushed.notified().await;
        }
    }

    /// Takes the next batch, or returns `None` if the queue is empty.
    ///
    /// `None` does not mean that the queue is closed; [`pop`](Self::pop) waits for a batch or the
    /// end.
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

    /// Returns the number of queued deltas.
    ///
    /// It is a snapshot: the producer and the consumer may change it at once. Use it for metrics.
    pub fn len(&self) -> usize {
        match &self.queue.lock().design {
            Design::InOrder(queue) => queue.len(),
            Design::Coalescing(queue) => queue.len(),
        }
    }

    /// Returns true if no delta is queued.
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
