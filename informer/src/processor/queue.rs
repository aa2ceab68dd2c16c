//! [`Queue`]: the events that a handler has not received yet.
//!
//! It is pure: the caller holds the lock, and drops what a method returns after the lock is
//! released. A queue that does not coalesce keeps each batch as one message, which all handlers
//! share, so a push costs the same for 1 event and for 1000.
//!
//! A coalescing queue keeps one event per object where it can. Two rules hold for both kinds: the
//! events of one object stay in order, and `Added` and `Deleted` are never skipped, because
//! expectations count them. client-go's `pendingNotifications` has no coalescing and no bound.
//!
//! The queue has no bound either: a bound would stop the informer for all handlers, or deadlock a
//! handler that waits for its own cache. Its length is a metric instead.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::event::Event;
use crate::object::{Object, ObjectKey, ResourceVersion};
use crate::store::Entry;
use crate::store::cow_vec::Frozen;

/// Messages for one handler, in order.
pub(super) struct Queue<K: Object> {
    messages: VecDeque<Message<K>>,
    /// `Some` if replaced states may be skipped.
    coalescing: Option<Coalescing<K>>,
    /// True once the handler's task is gone. Nothing is queued any more.
    is_closed: bool,
}

/// The events of one step, for all handlers.
pub(crate) type SharedEvents<K> = Arc<Vec<Event<K>>>;

/// A part of the handler's input, in order.
pub(super) enum Message<K: Object> {
    /// The events of one step, in a queue that does not coalesce.
    Events(SharedEvents<K>),
    /// One event, in a queue that coalesces.
    Event(Event<K>),
    /// The objects that existed when the handler was added.
    Snapshot(Frozen<Entry<K>>),
    /// All objects, to be delivered again.
    Resync(Frozen<Entry<K>>),
    /// A version that the store has reached, for a handler of versions.
    Version(ResourceVersion),
    /// The end of the initial list.
    Synced,
}

/// The position of the last waiting event of each object.
///
/// Positions count from the first message ever queued, so that a pop changes none of them. A
/// position is never less than `first`.
struct Coalescing<K: Object> {
    places: HashMap<ObjectKey<K::Kind>, u64, RandomState>,
    /// The position of the first message.
    first: u64,
}

/// The result of a push.
pub(super) struct Pushed<K: Object> {
    /// Events that were added to the queue.
    pub(super) added: usize,
    /// Events that coalescing made superfluous, to be dropped after the lock is released.
    pub(super) garbage: Vec<Event<K>>,
}

// === impl Queue ===

impl<K: Object> Queue<K> {
    pub(super) fn new(coalesces: bool) -> Self {
        let coalescing = coalesces.then(|| Coalescing { places: HashMap::default(), first: 0 });
        Self { messages: VecDeque::new(), coalescing, is_closed: false }
    }

    /// Queues the events of one step, unless the queue is closed.
    ///
    /// Without coalescing, this shares the batch and touches no event. With coalescing, it clones
    /// each event and hashes its key.
    pub(super) fn push_events(&mut self, events: &SharedEvents<K>) -> Pushed<K> {
        if self.is_closed {
            return Pushed { added: 0, garbage: Vec::new() };
        }
        if self.coalescing.is_none() {
            self.messages.push_back(Message::Events(Arc::clone(events)));
            return Pushed { added: events.len(), garbage: Vec::new() };
        }
        let garbage: Vec<_> =
            events.iter().filter_map(|event| self.coalesce(event.clone())).collect();
        Pushed { added: events.len() - garbage.len(), garbage }
    }

    /// Queues a message that is not an event. Returns it if the queue is closed.
    pub(super) fn push(&mut self, message: Message<K>) -> Option<Message<K>> {
        if self.is_closed {
            return Some(message);
        }
        // A later event must not overtake the resync.
        if let (Some(coalescing), Message::Resync(_)) = (&mut self.coalescing, &message) {
            coalescing.places.clear();
        }
        self.messages.push_back(message);
        None
    }

    /// Takes the first message, or returns `None` if the queue is empty.
    ///
    /// The memory of a burst is released while the queue drains: when a quarter or less of it is in
    /// use, it shrinks to twice the number of messages.
    pub(super) fn pop(&mut self) -> Option<Message<K>> {
        let message = self.messages.pop_front()?;
        if let Some(coalescing) = &mut self.coalescing {
            if let Message::Event(event) = &message {
                coalescing.leave(&event.key());
            }
            coalescing.first += 1;
            coalescing.shrink();
        }
        if self.messages.capacity() > 64 && self.messages.len() <= self.messages.capacity() / 4 {
            self.messages.shrink_to(2 * self.messages.len());
        }
        Some(message)
    }

    /// Closes the queue, and returns the messages that are left.
    ///
    /// Later pushes return what they were given. It is called once, by the drop of the task.
    pub(super) fn close(&mut self) -> VecDeque<Message<K>> {
        self.is_closed = true;
        self.coalescing = None;
        mem::take(&mut self.messages)
    }

    /// Returns true if a resync waits.
    ///
    /// It visits each message. It is called once per resync period.
    pub(super) fn has_resync(&self) -> bool {
        self.messages.iter().any(|message| matches!(message, Message::Resync(_)))
    }

    /// Queues an event, or merges it into the waiting one; returns the superfluous event then.
    ///
    /// Only the last waiting event of an object can be merged into: an earlier one precedes an
    /// event that must be delivered.
    fn coalesce(&mut self, event: Event<K>) -> Option<Event<K>> {
        let coalescing = self.coalescing.as_mut()?;
        let key = event.key();
        if let Some(waiting) = coalescing.waiting(&key, &mut self.messages) {
            match merge(waiting, event) {
                Ok(superfluous) => return Some(superfluous),
                Err(event) => return self.append(key, event),
            }
        }
        self.append(key, event)
    }

    /// Queues an event at the end and remembers its position.
    fn append(&mut self, key: ObjectKey<K::Kind>, event: Event<K>) -> Option<Event<K>> {
        let coalescing = self.coalescing.as_mut()?;
        coalescing.places.insert(key, coalescing.first + self.messages.len() as u64);
        self.messages.push_back(Message::Event(event));
        None
    }
}

// === impl Coalescing ===

impl<K: Object> Coalescing<K> {
    /// Returns the last waiting event of an object.
    ///
    /// Returns `None` if the event has been taken or a resync has cleared the positions.
    fn waiting<'a>(
        &self,
        key: &ObjectKey<K::Kind>,
        messages: &'a mut VecDeque<Message<K>>,
    ) -> Option<&'a mut Event<K>> {
        let place = usize::try_from(self.places.get(key)? - self.first).ok()?;
        match messages.get_mut(place)? {
            Message::Event(event) => Some(event),
            _ => None,
        }
    }

    /// Forgets the position of the first message, an event of this object.
    fn leave(&mut self, key: &ObjectKey<K::Kind>) {
        if self.places.get(key) == Some(&self.first) {
            self.places.remove(key);
        }
    }

    /// Frees the memory of a burst.
    fn shrink(&mut self) {
        if self.places.capacity() > 64 && self.places.len() <= self.places.capacity() / 16 {
            self.places.shrink_to(2 * self.places.len());
        }
    }
}

/// Merges `next` into `waiting` if only an intermediate state gets lost, and returns the
/// superfluous event.
///
/// `Added` and `Deleted` are never merged, nor is a change between an object that fits its type and
/// an opaque one.
///
/// | Waiting | Next | Merged |
/// |---|---|---|
/// | `Added`, `Updated` | `Updated` | the waiting event, with the next state |
/// | `Opaque` | `Opaque` | the waiting event, with the next metadata |
/// | anything else | | no |
fn merge<K: Object>(waiting: &mut Event<K>, next: Event<K>) -> Result<Event<K>, Event<K>> {
    match (&mut *waiting, next) {
        (
            Event::Added { object: state, .. } | Event::Updated { new: state, .. },
            Event::Updated { old, new },
        ) => {
            let between = mem::replace(state, new);
            Ok(Event::Updated { old, new: between })
        }
        (Event::Opaque { metadata: state, .. }, Event::Opaque { last_known, metadata }) => {
            let between = mem::replace(state, metadata);
            Ok(Event::Opaque { last_known, metadata: between })
        }
        (_, next) => Err(next),
    }
}

// === impl Message ===

impl<K: Object> Message<K> {
    /// Returns the number of events; a version counts as one.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Events(events) => events.len(),
            Self::Event(_) | Self::Version(_) => 1,
            Self::Snapshot(frozen) | Self::Resync(frozen) => frozen.len(),
            Self::Synced => 0,
        }
    }
}

/// Returns the events for an object that exists when the handler is added.
///
/// An opaque object with a last known state gives two events, `Added` and `Opaque`, so that the
/// sequence is the same for a handler that was there from the start.
pub(super) fn initial_events<K: Object>(entry: &Entry<K>) -> impl Iterator<Item = Event<K>> {
    let added = |object: &Arc<K>| Event::Added { object: Arc::clone(object), initial: true };
    let (known, opaque) = match entry {
        Entry::Fits(object) => (Some(added(object)), None),
        Entry::Opaque(opaque) => (opaque.last_known.as_ref().map(added), Some(redelivery(entry))),
    };
    known.into_iter().chain(opaque)
}

/// Returns the event that redelivers an object.
///
/// An object that fits is an update between two equal states, which share their memory. Handlers
/// recognize a resync by `Arc::ptr_eq`.
pub(super) fn redelivery<K: Object>(entry: &Entry<K>) -> Event<K> {
    match entry {
        Entry::Fits(object) => Event::Updated { old: Arc::clone(object), new: Arc::clone(object) },
        Entry::Opaque(opaque) => Event::Opaque {
            last_known: opaque.last_known.clone(),
            metadata: Arc::clone(&opaque.metadata),
        },
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn added(number: usize) -> Event<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = Some(number.to_string());
        Event::Added { object: Arc::new(pod), initial: false }
    }

    fn fill_and_drain(coalesces: bool) -> Queue<Pod> {
        let mut queue = Queue::new(coalesces);
        for number in 0..5000 {
            assert_eq!(queue.push_events(&Arc::new(vec![added(number)])).added, 1);
        }
        for _ in 10..5000 {
            assert!(queue.pop().is_some());
        }
        queue
    }

    #[test]
    fn memory_of_a_burst_is_freed_while_the_queue_is_drained() {
        for coalesces in [false, true] {
            let queue = fill_and_drain(coalesces);
            assert!(queue.messages.capacity() <= 64, "{}", queue.messages.capacity());
            let places = queue.coalescing.map_or(0, |coalescing| coalescing.places.capacity());
            assert!(places <= 256, "{places} places for 10 events");
        }
    }

    #[test]
    fn closed_queue_keeps_no_memory() {
        let mut queue = fill_and_drain(true);
        assert_eq!(queue.close().len(), 10);
        assert_eq!((queue.messages.capacity(), queue.coalescing.is_none()), (0, true));
        assert_eq!(queue.push_events(&Arc::new(vec![added(1)])).added, 0);
        assert!(queue.close().is_empty());
    }
}
