//! [`Filter`]: what a handler is told that wants only some of the objects.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;

use super::options::Accepts;
use crate::{
    event::Event,
    object::{Object, ObjectKey},
};

/// Makes of the events of all objects those of the objects that an author wants.
///
/// It remembers what the handler has been told, so that it hears a word of the same language, whatever the author's
/// function says when.
pub(super) struct Filter<K: Object> {
    accepts: Accepts<K>,
    told: HashMap<ObjectKey<K::Kind>, Told, RandomState>,
}

/// What the handler knows of an object.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Object,
    /// That there is one, which does not fit its type: it may be wanted.
    Opaque,
}

// === impl Filter ===

impl<K: Object> Filter<K> {
    pub(super) fn new(accepts: Accepts<K>) -> Self {
        Self { accepts, told: HashMap::default() }
    }

    /// What to tell the handler instead.
    pub(super) fn pass(&mut self, event: Event<K>) -> Option<Event<K>> {
        match event {
            Event::Added { object, initial } => self.arrived(None, object, initial),
            Event::Updated { old, new } => self.arrived(Some(old), new, false),
            Event::Opaque { last_known, metadata } => {
                let told = self.told.entry(ObjectKey::from_metadata(&metadata));
                let known = *told.or_insert(Told::Opaque) == Told::Object;
                Some(Event::Opaque { last_known: last_known.filter(|_| known), metadata })
            }
            Event::Deleted { last_known, certain } => match self.told.remove(&last_known.key())? {
                Told::Object => Some(Event::Deleted { last_known, certain }),
                Told::Opaque => Some(opaque_deleted(&*last_known)),
            },
            Event::OpaqueDeleted { metadata } => {
                self.told.remove(&ObjectKey::from_metadata(&metadata))?;
                Some(Event::OpaqueDeleted { metadata })
            }
        }
    }

    fn arrived(&mut self, old: Option<Arc<K>>, new: Arc<K>, initial: bool) -> Option<Event<K>> {
        let accepted = (self.accepts)(&new);
        let key = new.key();
        let told =
            if accepted { self.told.insert(key, Told::Object) } else { self.told.remove(&key) };
        match (told, old, accepted) {
            (Some(Told::Object), Some(old), true) => Some(Event::Updated { old, new }),
            (Some(Told::Object), Some(last_known), false) => {
                Some(Event::Deleted { last_known, certain: true })
            }
            (_, _, true) => Some(Event::Added { object: new, initial }),
            (Some(_), _, false) => Some(opaque_deleted(&*new)),
            (None, _, false) => None,
        }
    }
}

fn opaque_deleted<K: Object>(object: &K) -> Event<K> {
    Event::OpaqueDeleted { metadata: Arc::new(object.metadata().clone()) }
}
