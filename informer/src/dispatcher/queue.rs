//! [`Queue`]: what a handler has still to be told.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::Arc,
};

use foldhash::fast::RandomState;

use crate::{
    event::Event,
    object::{Object, ObjectKey, ResourceVersion},
    store::{Entry, slab::Frozen},
};

/// Messages for one handler, in order.
pub(super) struct Queue<K: Object> {
    messages: VecDeque<Message<K>>,
    /// If states that nobody has seen may be left out.
    coalescing: Option<Coalescing<K>>,
    is_closed: bool,
}

pub(super) enum Message<K: Object> {
    Events(Vec<Event<K>>),
    /// One event, in a queue that coalesces.
    Event(Event<K>),
    /// What was there when the handler was added.
    Snapshot(Frozen<Entry<K>>),
    /// What is there, to be told once more.
    Resync(Frozen<Entry<K>>),
    Version(ResourceVersion),
    /// All that was there at first has been sent.
    Synced,
}

/// Where the last event of each object waits.
struct Coalescing<K: Object> {
    places: HashMap<ObjectKey<K::Kind>, u64, RandomState>,
    /// The place of the first message.
    first: u64,
}

/// What became of what was pushed.
pub(super) struct Pushed<K: Object> {
    /// How many events the queue has more.
    pub(super) added: usize,
    /// What is not needed; to be dropped where nothing is locked.
    pub(super) garbage: Vec<Event<K>>,
}

// === impl Queue ===

impl<K: Object> Queue<K> {
    pub(super) fn new(coalesces: bool) -> Self {
        let coalescing = coalesces.then(|| Coalescing { places: HashMap::default(), first: 0 });
        Self { messages: VecDeque::new(), coalescing, is_closed: false }
    }

    pub(super) fn push_events(&mut self, events: Vec<Event<K>>) -> Pushed<K> {
        if self.is_closed {
            return Pushed { added: 0, garbage: events };
        }
        if self.coalescing.is_none() {
            let added = events.len();
            self.messages.push_back(Message::Events(events));
            return Pushed { added, garbage: Vec::new() };
        }
        let pushed = events.len();
        let garbage: Vec<_> = events.into_iter().filter_map(|event| self.coalesce(event)).collect();
        Pushed { added: pushed - garbage.len(), garbage }
    }

    /// Queues anything but events. Returns it if nobody takes it any more.
    pub(super) fn push(&mut self, message: Message<K>) -> Option<Message<K>> {
        if self.is_closed {
            return Some(message);
        }
        // What happens from now on must not be told before what is there now.
        if let (Some(coalescing), Message::Resync(_)) = (&mut self.coalescing, &message) {
            coalescing.places.clear();
        }
        self.messages.push_back(message);
        None
    }

    pub(super) fn pop(&mut self) -> Option<Message<K>> {
        let message = self.messages.pop_front()?;
        if let Some(coalescing) = &mut self.coalescing {
            if let Message::Event(event) = &message {
                coalescing.leave(&event.key());
            }
            coalescing.first += 1;
        }
        Some(message)
    }

    /// Takes what is left, and takes nothing more.
    pub(super) fn close(&mut self) -> VecDeque<Message<K>> {
        self.is_closed = true;
        mem::take(&mut self.messages)
    }

    /// Whether a resync waits.
    pub(super) fn has_resync(&self) -> bool {
        self.messages.iter().any(|message| matches!(message, Message::Resync(_)))
    }

    /// Queues an event, or lets the one that waits tell what it says; returns what is superfluous then.
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

    fn append(&mut self, key: ObjectKey<K::Kind>, event: Event<K>) -> Option<Event<K>> {
        let coalescing = self.coalescing.as_mut()?;
        coalescing.places.insert(key, coalescing.first + self.messages.len() as u64);
        self.messages.push_back(Message::Event(event));
        None
    }
}

// === impl Coalescing ===

impl<K: Object> Coalescing<K> {
    /// The last event of an object that waits.
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

    /// The first message, an event of this object, is taken.
    fn leave(&mut self, key: &ObjectKey<K::Kind>) {
        if self.places.get(key) == Some(&self.first) {
            self.places.remove(key);
        }
    }
}

/// Lets `waiting` tell what `next` says, if only a state between the two gets lost, and returns the rest. Lives are never
/// merged: each `Added` has its `Deleted`. Nor is the step from what fits to what does not, or back.
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
    /// How many events this is; a version counts as one.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Events(events) => events.len(),
            Self::Event(_) | Self::Version(_) => 1,
            Self::Snapshot(frozen) | Self::Resync(frozen) => frozen.len(),
            Self::Synced => 0,
        }
    }
}

/// What a handler is told of an object that is there already.
pub(super) fn initial_events<K: Object>(entry: &Entry<K>) -> impl Iterator<Item = Event<K>> {
    let added = |object: &Arc<K>| Event::Added { object: Arc::clone(object), initial: true };
    let (known, opaque) = match entry {
        Entry::Fits(object) => (Some(added(object)), None),
        Entry::Opaque { last_known, .. } => (last_known.as_ref().map(added), Some(again(entry))),
    };
    known.into_iter().chain(opaque)
}

/// What a handler is told once more.
pub(super) fn again<K: Object>(entry: &Entry<K>) -> Event<K> {
    match entry {
        Entry::Fits(object) => Event::Updated { old: Arc::clone(object), new: Arc::clone(object) },
        Entry::Opaque { metadata, last_known } => {
            Event::Opaque { last_known: last_known.clone(), metadata: Arc::clone(metadata) }
        }
    }
}
