//! [`View`]: what the handler of one resource has seen, across the informers of several versions.
//!
//! Each informer starts its own sequence of events. The view turns them into one sequence per
//! object: an object that the handler knows already is not added a second time, and one that is
//! missing from the new informer's initial list is deleted.
//!
//! Without it, a handler would receive `Added` for each object at each change of version, and no
//! `Deleted` for objects that were deleted during the change. The price is one map entry per
//! object, with pointers to the states.
//!
//! | Handler knows | New informer shows | Event |
//! |---|---|---|
//! | nothing | the object | `Added` |
//! | the same version | the object | none |
//! | another version | the object | `Updated` |
//! | another uid | the object | `Deleted`, not certain, then `Added` |
//! | the object | nothing, until its list is complete | `Deleted`, not certain |

use std::collections::HashMap;
use std::sync::Arc;

use super::SetEvent;
use crate::event::Event;
use crate::object::{Object, ObjectKey, ObjectMeta};

/// The objects that the handler knows.
pub(super) struct View<K: Object> {
    objects: HashMap<ObjectKey<K::Kind>, Seen<K>>,
    /// False before the first complete list: objects of it are `initial`.
    is_handed_over: bool,
}

/// An object as the handler knows it.
struct Seen<K> {
    /// The last version that fitted its type.
    last: Option<Arc<K>>,
    /// The metadata, if the object does not fit its type at present.
    opaque: Option<Arc<ObjectMeta>>,
    /// False during a handover until the new informer shows the object.
    is_confirmed: bool,
}

// === impl View ===

impl<K: Object> View<K> {
    /// Creates a view that knows nothing, before the first informer.
    pub(super) fn new() -> Self {
        Self { objects: HashMap::new(), is_handed_over: false }
    }

    /// Expects the initial list of another informer.
    ///
    /// Every known object must be confirmed by the new informer.
    pub(super) fn begin_handover(&mut self) {
        self.is_handed_over = true;
        self.objects.values_mut().for_each(|seen| seen.is_confirmed = false);
    }

    /// Deletes the objects that the other informer did not show, in the order of their keys.
    ///
    /// It also ends the initial list of the first informer: objects that come later are not
    /// `initial`.
    pub(super) fn end_handover(&mut self, deliver: &impl Fn(SetEvent<K>)) {
        self.is_handed_over = true;
        let mut gone: Vec<_> = self.objects.extract_if(|_, seen| !seen.is_confirmed).collect();
        // The iteration order of a map is random.
        gone.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, seen) in gone {
            deliver(SetEvent::Object(seen.gone(false)));
        }
    }

    /// Delivers the changes between what the handler knows and the state after `event`.
    ///
    /// It runs under the lock of the resource's view, which orders the calls of the handler.
    pub(super) fn apply(&mut self, event: Event<K>, deliver: &impl Fn(SetEvent<K>)) {
        let key = event.key();
        match event {
            Event::Added { object, initial } => {
                self.show(key, object, initial && !self.is_handed_over, deliver);
            }
            Event::Updated { new, .. } => self.show(key, new, false, deliver),
            Event::Opaque { metadata, .. } => self.hide(key, metadata, deliver),
            Event::Deleted { certain, last_known } => {
                if let Some(mut seen) = self.objects.remove(&key) {
                    // The final state, unless the handler never saw one that fits.
                    seen.last = seen.last.map(|_| last_known);
                    deliver(SetEvent::Object(seen.gone(certain)));
                }
            }
            Event::OpaqueDeleted { .. } => {
                if let Some(seen) = self.objects.remove(&key) {
                    deliver(SetEvent::Object(seen.gone(false)));
                }
            }
        }
    }

    /// The object fits its type.
    ///
    /// An object that was opaque, and of which the handler has had a state, is updated from that
    /// state.
    fn show(
        &mut self,
        key: ObjectKey<K::Kind>,
        new: Arc<K>,
        initial: bool,
        deliver: &impl Fn(SetEvent<K>),
    ) {
        self.remove_other(&key, new.metadata(), deliver);
        let seen = Seen { last: Some(Arc::clone(&new)), opaque: None, is_confirmed: true };
        let former = self.objects.insert(key, seen);
        let event = match former {
            None | Some(Seen { last: None, .. }) => Event::Added { object: new, initial },
            Some(Seen { last: Some(old), opaque, is_confirmed }) => {
                // The other informer lists an object that the handler has in this version.
                let is_known = !is_confirmed && opaque.is_none();
                if is_known && is_same_version(old.metadata(), new.metadata()) {
                    return;
                }
                Event::Updated { old, new }
            }
        };
        deliver(SetEvent::Object(event));
    }

    /// The object does not fit its type.
    ///
    /// The last state that fitted stays, for the event of a later deletion.
    fn hide(
        &mut self,
        key: ObjectKey<K::Kind>,
        metadata: Arc<ObjectMeta>,
        deliver: &impl Fn(SetEvent<K>),
    ) {
        self.remove_other(&key, &metadata, deliver);
        let former = self.objects.remove(&key);
        let is_known = former.as_ref().is_some_and(|seen| {
            let opaque = seen.opaque.as_ref().filter(|_| !seen.is_confirmed);
            opaque.is_some_and(|known| is_same_version(known, &metadata))
        });
        let last = former.and_then(|seen| seen.last);
        let opaque = Some(Arc::clone(&metadata));
        self.objects.insert(key, Seen { last: last.clone(), opaque, is_confirmed: true });
        if !is_known {
            deliver(SetEvent::Object(Event::Opaque { last_known: last, metadata }));
        }
    }

    /// Deletes the object of this name if it has another uid.
    fn remove_other(
        &mut self,
        key: &ObjectKey<K::Kind>,
        metadata: &ObjectMeta,
        deliver: &impl Fn(SetEvent<K>),
    ) {
        let is_other = self.objects.get(key).is_some_and(|seen| seen.uid() != uid(metadata));
        if is_other && let Some(seen) = self.objects.remove(key) {
            deliver(SetEvent::Object(seen.gone(false)));
        }
    }
}

// === impl Seen ===

impl<K: Object> Seen<K> {
    fn uid(&self) -> &str {
        let opaque = self.opaque.as_deref();
        opaque.or_else(|| self.last.as_deref().map(Object::metadata)).map_or("", uid)
    }

    /// Returns the event of the deletion.
    ///
    /// An object of which the handler has seen no state that fits gives `OpaqueDeleted`.
    fn gone(self, certain: bool) -> Event<K> {
        match (self.last, self.opaque) {
            (Some(last_known), _) => Event::Deleted { last_known, certain },
            (None, metadata) => Event::OpaqueDeleted { metadata: metadata.unwrap_or_default() },
        }
    }
}

fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

fn is_same_version(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.resource_version.is_some() && one.resource_version == other.resource_version
}
