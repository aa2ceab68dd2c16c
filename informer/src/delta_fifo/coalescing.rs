//! [`Coalescing`]: a queue that groups deltas by object, in the order of each object's first delta.
//!
//! Costs: a push is one hash lookup per event; a list is one lookup per object and one pass over
//! all known objects, and it sorts the objects that it lacks, so that the order is the same in
//! every run; a pop is one lookup per object that it takes.
//!
//! As in client-go's `DeltaFIFO`, all deltas of an object stay, except for a second consecutive
//! deletion. Old events that a watch sends again are dropped, too. Unlike there, the queue itself
//! knows the state that the consumer has of each object, and hands out the version that the
//! consumer reaches.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::Garbage;
use super::version::Received;
use crate::delta::{Batch, Delta, is_older};
use crate::list_watch::{Decoded, WatchEvent};
use crate::object::{Object, ObjectKey, ResourceVersion};

/// A queue of objects, each with its queued deltas.
///
/// An object has an entry if deltas are queued for it or if the consumer holds it. It is in `queue`
/// exactly once if deltas are queued.
pub(super) struct Coalescing<K: Object> {
    /// The entries of all objects that are queued or known. An entry leaves when the consumer has
    /// taken a deletion.
    objects: HashMap<ObjectKey<K::Kind>, Pending<K>, RandomState>,
    /// The keys of objects with queued deltas, in the order of the first one. No key occurs twice.
    queue: VecDeque<ObjectKey<K::Kind>>,
    /// The number of queued deltas.
    len: usize,
    /// The newest version that was pushed. The consumer reaches it only with an empty queue: an
    /// object at the end of the queue may have the oldest change.
    received: Received,
    /// True if the consumer does not know the received version yet. It reaches that version when
    /// the queue is empty.
    is_news: bool,
    /// True if a list led to the received version and the consumer does not know that yet.
    is_relisted: bool,
    /// The number of queued objects of the first list; `None` before the first push.
    initial: Option<usize>,
    /// The number of the last list.
    list: u64,
}

/// The queued deltas of one object and its state at the consumer.
struct Pending<K: Object> {
    /// The queued deltas, in order.
    queued: Vec<Delta<K>>,
    /// The last state that was handed to the consumer; `None` if the consumer has no such object.
    known: Option<Decoded<K>>,
    /// The number of the last list that it was in.
    list: u64,
}

// === impl Coalescing ===

impl<K: Object> Coalescing<K> {
    /// Creates an empty queue that has not received anything.
    pub(super) fn new() -> Self {
        Self {
            objects: HashMap::default(),
            queue: VecDeque::new(),
            len: 0,
            received: Received::new(),
            is_news: false,
            is_relisted: false,
            initial: None,
            list: 0,
        }
    }

    /// Queues events. `newest` is the newest version in them.
    ///
    /// Bookmarks queue no delta. Their version counts, so that an empty queue can hand it to the
    /// consumer.
    pub(super) fn push(
        &mut self,
        events: Vec<WatchEvent<K>>,
        newest: Option<ResourceVersion>,
        garbage: &mut Garbage<K>,
    ) {
        self.is_news |= self.received.push(newest);
        for event in events {
            self.initial.get_or_insert(0);
            match event {
                WatchEvent::Applied(object) => self.enqueue(Delta::Applied(object), garbage),
                WatchEvent::Deleted(object) => self.delete(object, garbage),
                WatchEvent::Bookmark { .. } => {}
            }
        }
    }

    /// Queues a deletion. Drops it if no delta of the object is queued and the consumer does not
    /// hold the object.
    fn delete(&mut self, object: Decoded<K>, garbage: &mut Garbage<K>) {
        if self.objects.contains_key(&ObjectKey::from_metadata(object.metadata())) {
            self.enqueue(Delta::Deleted(object), garbage);
        } else {
            garbage.push(object);
        }
    }

    /// Takes a list apart: queues each object of it, and a `Vanished` for each object that is not
    /// in it.
    ///
    /// An object whose last queued delta is a deletion does not vanish a second time.
    ///
    /// An object that is queued already gets one more delta, after the queued ones.
    pub(super) fn replace(
        &mut self,
        objects: Vec<Decoded<K>>,
        version: ResourceVersion,
        garbage: &mut Garbage<K>,
    ) {
        self.list += 1;
        for object in objects {
            self.listed(object, garbage);
        }
        let list = self.list;
        let missing = |(key, pending): (&ObjectKey<K::Kind>, &Pending<K>)| {
            let gone = pending.list != list && !pending.ends_with_deletion();
            gone.then(|| Some((key.clone(), pending.last_known()?.clone()))).flatten()
        };
        let mut missing: Vec<_> = self.objects.iter().filter_map(missing).collect();
        // The iteration order of a map is random.
        missing.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, object) in missing {
            self.enqueue(Delta::Vanished(object), garbage);
        }
        self.initial.get_or_insert(self.queue.len());
        self.received.replace(version);
        (self.is_news, self.is_relisted) = (true, true);
    }

    /// Queues one object of the current list.
    fn listed(&mut self, object: Decoded<K>, garbage: &mut Garbage<K>) {
        let pending = self.objects.get(&ObjectKey::from_metadata(object.metadata()));
        let twin =
            pending.filter(|pending| pending.list == self.list).and_then(Pending::last_known);
        // If the list contains an object twice, the newer state is kept.
        if twin.is_some_and(|twin| is_older(object.metadata(), twin.metadata())) {
            garbage.push(object);
        } else {
            self.enqueue(Delta::Listed(object), garbage);
        }
    }

    /// Queues every object that the consumer holds and that has no queued delta. A queued delta is
    /// newer and is delivered anyway.
    pub(super) fn resync(&mut self) {
        let idle = |pending: &&Pending<K>| pending.queued.is_empty();
        let known = self.objects.values().filter(idle).filter_map(|pending| pending.known.clone());
        let mut known: Vec<_> =
            known.map(|object| (ObjectKey::from_metadata(object.metadata()), object)).collect();
        known.sort_by(|(one, _): &(ObjectKey<K::Kind>, _), (other, _)| one.cmp(other));
        for (_, object) in known {
            self.enqueue(Delta::Resynced(object), &mut Vec::new());
        }
    }

    /// Appends a delta to its object's, and the object to the queue if it is not in it.
    fn enqueue(&mut self, delta: Delta<K>, garbage: &mut Garbage<K>) {
        let Some(object) = delta.object() else { return };
        let key = ObjectKey::from_metadata(object.metadata());
        let list = if matches!(delta, Delta::Listed(_)) { self.list } else { 0 };
        let pending = self.objects.entry(key.clone()).or_insert_with(Pending::new);
        if pending.is_newer_than(&delta) {
            garbage.push(object.clone());
            return;
        }
        pending.list = pending.list.max(list);
        if pending.queued.is_empty() {
            self.queue.push_back(key);
        }
        let before = pending.queued.len();
        pending.append(delta, garbage);
        self.len += pending.queued.len() - before;
    }

    /// Takes the deltas of the next objects: all deltas of each object, and at most `limit` deltas
    /// in total unless the first object alone has more.
    ///
    /// Returns `None` if nothing is queued and no version is news. A batch without deltas carries a
    /// version that came with bookmarks only.
    ///
    /// The version is part of the batch that empties the queue: before that, an object at the end
    /// of the queue may have a change that is older than the version.
    pub(super) fn pop(&mut self, limit: usize, garbage: &mut Garbage<K>) -> Option<Batch<K>> {
        let mut deltas = Vec::new();
        while let Some(key) = self.queue.front() {
            let Some(pending) = self.objects.get_mut(key) else { break };
            if !deltas.is_empty() && deltas.len() + pending.queued.len() > limit {
                break;
            }
            deltas.append(&mut pending.queued);
            garbage
                .extend(std::mem::replace(&mut pending.known, deltas.last().and_then(state_after)));
            let gone = pending.known.is_none();
            if let (Some(key), true) = (self.queue.pop_front(), gone) {
                self.objects.remove(&key);
            }
            self.initial = self.initial.map(|left| left.saturating_sub(1));
        }
        self.len -= deltas.len();
        let (reached, relisted) = self.reached();
        (!deltas.is_empty() || reached.is_some()).then_some(Batch {
            deltas,
            reached,
            relisted,
            synced: self.initial == Some(0),
        })
    }

    /// Returns the version that the consumer reaches now, unless it knows it, and true if a list
    /// led there.
    fn reached(&mut self) -> (Option<ResourceVersion>, bool) {
        if !self.queue.is_empty() || !std::mem::take(&mut self.is_news) {
            return (None, false);
        }
        (self.received.version().cloned(), std::mem::take(&mut self.is_relisted))
    }

    /// Returns the newest version that was pushed, whatever the consumer has taken.
    pub(super) fn received(&self) -> Option<&ResourceVersion> {
        self.received.version()
    }

    /// Returns the number of queued deltas, in constant time.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// Returns the state that the consumer holds after it applies this delta.
fn state_after<K: Object>(last: &Delta<K>) -> Option<Decoded<K>> {
    last.object().filter(|_| !last.is_deletion()).cloned()
}

// === impl Pending ===

impl<K: Object> Pending<K> {
    fn new() -> Self {
        Self { queued: Vec::new(), known: None, list: 0 }
    }

    /// Appends a delta. Of two consecutive deletions only one is kept: the one that a watch
    /// reported, or else the later one.
    fn append(&mut self, delta: Delta<K>, garbage: &mut Garbage<K>) {
        match self.queued.last_mut() {
            Some(last @ Delta::Vanished(_)) if delta.is_deletion() => {
                garbage.extend(std::mem::replace(last, delta).object().cloned());
            }
            Some(Delta::Deleted(_)) if delta.is_deletion() => {
                garbage.extend(delta.object().cloned());
            }
            _ => self.queued.push(delta),
        }
    }

    /// Returns true if the delta is an old one that a watch sends again. The consumer ignores it,
    /// so that the state after it would not be what the consumer holds.
    fn is_newer_than(&self, delta: &Delta<K>) -> bool {
        let (Delta::Applied(object) | Delta::Deleted(object)) = delta else { return false };
        let last = self.last_known().filter(|_| !self.ends_with_deletion());
        last.is_some_and(|last| is_older(object.metadata(), last.metadata()))
    }

    /// Returns true if the object will be gone when the queued deltas are applied.
    fn ends_with_deletion(&self) -> bool {
        self.queued.last().is_some_and(Delta::is_deletion)
    }

    /// Returns the newest state that was received.
    ///
    /// The last queued delta decides; without one, the state that the consumer has.
    fn last_known(&self) -> Option<&Decoded<K>> {
        self.queued.last().and_then(Delta::object).or(self.known.as_ref())
    }
}

#[cfg(test)]
impl<K: Object> Coalescing<K> {
    /// Returns the keys of the objects that have an entry.
    pub(super) fn known(&self) -> Vec<String> {
        self.objects.keys().map(ToString::to_string).collect()
    }
}
