//! [`Filter`]: the events of the objects that a handler accepts.
//!
//! | Reported before | Accepted now | Event |
//! |---|---|---|
//! | nothing, or as opaque | yes | `Added` |
//! | as an object | yes | `Updated` |
//! | as an object | no | `Deleted`, certain, with the last accepted state |
//! | as opaque | no | `OpaqueDeleted` |
//! | nothing | no | none |
//!
//! The decision depends on the reports and not on the old state: client-go's
//! `FilteringResourceEventHandler` calls the filter for the old object too, and a filter whose
//! answer changes over time loses deletions there.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::options::Accepts;
use crate::event::Event;
use crate::object::{Object, ObjectKey};

/// Turns the events of all objects into those of the accepted objects.
///
/// It keeps the keys of the objects that were reported, so that the handler's events match the
/// grammar of [`Event`] whatever the author's function returns.
///
/// It is used by the handler's task alone, so it needs no lock. It holds no object, only keys: 1
/// entry for each object that the handler knows.
pub(super) struct Filter<K: Object> {
    /// The author's code. Called before `reported` changes, so that its panic changes nothing.
    accepts: Accepts<K>,
    reported: HashMap<ObjectKey<K::Kind>, Reported, RandomState>,
}

/// The last report about an object.
///
/// An object has no entry if it was not reported yet, or if its deletion was reported.
#[derive(Clone, Copy, PartialEq)]
enum Reported {
    /// An accepted state. The entry stays this while the object is opaque; a deletion or a rejected
    /// state removes it.
    Object,
    /// It exists and does not fit its type: it may be accepted. → `Object` with an accepted
    /// state; a deletion or a rejected state removes it.
    Opaque,
}

// === impl Filter ===

impl<K: Object> Filter<K> {
    /// Returns a filter that has reported nothing.
    pub(super) fn new(accepts: Accepts<K>) -> Self {
        Self { accepts, reported: HashMap::default() }
    }

    /// Returns the event for the handler, or `None`.
    ///
    /// An opaque object is always passed on: the author's function takes objects that decode.
    ///
    /// # Panics
    ///
    /// If the author's function panics. Nothing has changed then, and the event is lost.
    pub(super) fn pass(&mut self, event: Event<K>) -> Option<Event<K>> {
        match event {
            Event::Added { object, initial } => self.arrived(None, object, initial),
            Event::Updated { old, new } => self.arrived(Some(old), new, false),
            Event::Opaque { last_known, metadata } => {
                let entry = self.reported.entry(ObjectKey::from_metadata(&metadata));
                let known = *entry.or_insert(Reported::Opaque) == Reported::Object;
                Some(Event::Opaque { last_known: last_known.filter(|_| known), metadata })
            }
            Event::Deleted { last_known, certain } => {
                match self.forget(&ObjectKey::from_metadata(last_known.metadata()))? {
                    Reported::Object => Some(Event::Deleted { last_known, certain }),
                    Reported::Opaque => Some(opaque_deleted(&*last_known)),
                }
            }
            Event::OpaqueDeleted { metadata } => {
                self.forget(&ObjectKey::from_metadata(&metadata))?;
                Some(Event::OpaqueDeleted { metadata })
            }
        }
    }

    /// Forgets an object, and returns the last report about it. Frees the memory of a burst.
    fn forget(&mut self, key: &ObjectKey<K::Kind>) -> Option<Reported> {
        let previous = self.reported.remove(key)?;
        if self.reported.capacity() > 64 && self.reported.len() <= self.reported.capacity() / 16 {
            self.reported.shrink_to(2 * self.reported.len());
        }
        Some(previous)
    }

    /// Decides by the last report and the answer of the author's function: added, updated, deleted
    /// or nothing.
    fn arrived(&mut self, old: Option<Arc<K>>, new: Arc<K>, initial: bool) -> Option<Event<K>> {
        let accepted = (self.accepts)(&new);
        // Not `Object::key`: an author may have overridden it.
        let key = ObjectKey::from_metadata(new.metadata());
        let previous =
            if accepted { self.reported.insert(key, Reported::Object) } else { self.forget(&key) };
        match (previous, old, accepted) {
            (Some(Reported::Object), Some(old), true) => Some(Event::Updated { old, new }),
            (Some(Reported::Object), Some(last_known), false) => {
                Some(Event::Deleted { last_known, certain: true })
            }
            (_, _, true) => Some(Event::Added { object: new, initial }),
            (Some(_), _, false) => Some(opaque_deleted(&*new)),
            (None, _, false) => None,
        }
    }
}

/// Returns the event for an object of which the handler knows no accepted state.
fn opaque_deleted<K: Object>(object: &K) -> Event<K> {
    Event::OpaqueDeleted { metadata: Arc::new(object.metadata().clone()) }
}
