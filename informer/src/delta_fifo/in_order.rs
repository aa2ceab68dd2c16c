//! Deltas in the order of the server, across all objects.
//!
//! The queue is a `VecDeque`. Each delta costs O(1) to push and to pop, whatever its object. The
//! versions stand beside the deltas as marks and not in them: a version counts for the consumer
//! only when it has taken every delta before it, and a batch may end between two of them.
//!
//! It is the design of client-go's `RealFIFO` with `AtomicFIFO`: every change in the order of the
//! server, and a full state as one delta.

use std::collections::VecDeque;

use super::version::Received;
use crate::delta::{Batch, Delta};
use crate::list_watch::{Decoded, WatchEvent};
use crate::object::{Object, ResourceVersion};

/// A queue that drops nothing and merges nothing.
///
/// Invariant: `marks` is sorted by `end`, each `end` is at most `pushed`, and a mark leaves with
/// the delta that it ends with.
pub(super) struct InOrder<K: Object> {
    /// In the order of the server. `pushed - deltas.len()` deltas have been taken.
    deltas: VecDeque<Delta<K>>,
    /// The newest version that was pushed, which may still be queued.
    received: Received,
    /// The versions that the queued deltas lead to, in order.
    marks: VecDeque<Mark>,
    /// Deltas that were ever queued.
    pushed: u64,
    /// True once the first list, if anything began with one, has been handed out; `None` before the
    /// first delta.
    synced: Option<bool>,
}

/// The consumer has reached `version` when it has taken the first `end` deltas.
///
/// There is at most one mark per push.
struct Mark {
    end: u64,
    version: ResourceVersion,
}

// === impl InOrder ===

impl<K: Object> InOrder<K> {
    /// Creates an empty queue that has not received anything.
    pub(super) fn new() -> Self {
        Self {
            deltas: VecDeque::new(),
            received: Received::new(),
            marks: VecDeque::new(),
            pushed: 0,
            synced: None,
        }
    }

    /// Queues events. `newest` is the newest version in them.
    ///
    /// Events before any full state count as synced: a list-watch of the author's may begin with an
    /// empty history.
    pub(super) fn push(&mut self, events: Vec<WatchEvent<K>>, newest: Option<ResourceVersion>) {
        if !events.is_empty() {
            self.synced.get_or_insert(true);
        }
        self.pushed += events.len() as u64;
        self.deltas.extend(events.into_iter().map(Delta::from));
        if self.received.push(newest) {
            self.mark();
        }
    }

    /// Queues a full state as one delta.
    ///
    /// It merges nothing: deltas before it are applied first, and then replaced.
    pub(super) fn replace(&mut self, objects: Vec<Decoded<K>>, version: ResourceVersion) {
        self.synced.get_or_insert(false);
        self.pushed += 1;
        self.received.replace(version.clone());
        self.mark();
        self.deltas.push_back(Delta::Replaced { objects, resource_version: version });
    }

    /// Queues one delta for all objects. It has no version: the server did not move.
    pub(super) fn resync(&mut self) {
        self.pushed += 1;
        self.deltas.push_back(Delta::ResyncedAll);
    }

    /// Marks the end of the queue with the received version.
    fn mark(&mut self) {
        if let Some(version) = self.received.version().cloned() {
            self.marks.push_back(Mark { end: self.pushed, version });
        }
    }

    /// Takes the next deltas, at most `limit`. A full state comes alone.
    ///
    /// A batch with a full state reports `relisted`; it never contains another delta, because the
    /// copy replaces all objects in a step of its own.
    ///
    /// Returns `None` if the queue is empty.
    pub(super) fn pop(&mut self, limit: usize) -> Option<Batch<K>> {
        let small = |delta: &Delta<K>| !matches!(delta, Delta::Replaced { .. });
        let run = self.deltas.iter().take(limit).take_while(|delta| small(delta)).count();
        let count = if run == 0 { self.deltas.len().min(1) } else { run };
        if count == 0 {
            return None;
        }
        let relisted = run == 0;
        if relisted {
            self.synced = Some(true);
        }
        let deltas = self.deltas.drain(..count).collect();
        let reached = self.reached();
        Some(Batch { deltas, reached, relisted, synced: self.synced == Some(true) })
    }

    /// Returns the version that the deltas taken so far lead to, unless it was returned before.
    ///
    /// Of several versions that a batch passes the last one counts.
    fn reached(&mut self) -> Option<ResourceVersion> {
        let taken = self.pushed - self.deltas.len() as u64;
        let mut reached = None;
        while self.marks.front().is_some_and(|mark| mark.end <= taken) {
            reached = self.marks.pop_front().map(|mark| mark.version);
        }
        reached
    }

    /// Returns the version that was pushed last, taken or not.
    pub(super) fn received(&self) -> Option<&ResourceVersion> {
        self.received.version()
    }

    /// Returns the number of queued deltas. A full state counts as one.
    pub(super) fn len(&self) -> usize {
        self.deltas.len()
    }
}
