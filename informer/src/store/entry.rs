//! [`Entry`]: one object in the store, and the events that follow from its changes.
//!
//! An entry remembers what the handlers know about its object, so that each event follows from the
//! old entry and the new state alone, and the sequence matches the grammar of [`Event`].
//!
//! | Old entry | New state | Event |
//! |---|---|---|
//! | none | fits | `Added` |
//! | none | does not fit | `Opaque` without a last known state |
//! | fits | fits | `Updated` |
//! | fits | does not fit | `Opaque` with the last known state |
//! | opaque, with a last known state | fits | `Updated` from that state |
//! | opaque, without one | fits | `Added` |
//! | a last known state | deleted | `Deleted`; certain if the watch sent a state that fits |
//! | no last known state | deleted | `OpaqueDeleted` |

use std::sync::Arc;

use crate::event::Event;
use crate::list_watch::Decoded;
use crate::object::{Object, ObjectMeta};

/// An object in the store.
///
/// A clone copies a pointer. An entry is replaced by the one that [`following`](Self::following)
/// makes, with the event of [`into_event`](Self::into_event), or leaves with that of
/// [`into_deletion_event`](Self::into_deletion_event).
pub(crate) enum Entry<K> {
    /// The object fits its type. → `Opaque` with a state that does not fit.
    Fits(Arc<K>),
    /// The object does not fit its type. → `Fits` with a state that fits.
    Opaque(Arc<Opaque<K>>),
}

/// An object that does not fit its type.
pub(crate) struct Opaque<K> {
    pub(crate) metadata: Arc<ObjectMeta>,
    /// The last state that was delivered to the handlers; `None` if no state fitted.
    pub(crate) last_known: Option<Arc<K>>,
}

// === impl Entry ===

impl<K> Entry<K> {
    /// Returns the object if it fits its type. An opaque entry returns `None`, also if a last known
    /// state exists.
    pub(crate) fn object(&self) -> Option<&Arc<K>> {
        match self {
            Self::Fits(object) => Some(object),
            Self::Opaque(_) => None,
        }
    }

    /// Returns true if the object does not fit its type.
    pub(crate) fn is_opaque(&self) -> bool {
        matches!(self, Self::Opaque(_))
    }

    /// Returns true if both share their memory.
    pub(crate) fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fits(own), Self::Fits(other)) => Arc::ptr_eq(own, other),
            (Self::Opaque(own), Self::Opaque(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// Returns the address of the entry's memory, which identifies it while it lives.
    pub(crate) fn address(&self) -> usize {
        match self {
            Self::Fits(object) => Arc::as_ptr(object).addr(),
            Self::Opaque(opaque) => Arc::as_ptr(opaque).addr(),
        }
    }

    /// Returns the last state that was delivered to the handlers.
    fn last_known(&self) -> Option<&Arc<K>> {
        match self {
            Self::Fits(object) => Some(object),
            Self::Opaque(opaque) => opaque.last_known.as_ref(),
        }
    }

    /// Returns the object, or its metadata if the object does not fit its type.
    ///
    /// This is the input of index functions.
    pub(crate) fn known(&self) -> Result<&K, &ObjectMeta> {
        match self {
            Self::Fits(object) => Ok(object),
            Self::Opaque(opaque) => Err(&opaque.metadata),
        }
    }
}

impl<K: Object> Entry<K> {
    /// Returns the metadata of the current state.
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Fits(object) => object.metadata(),
            Self::Opaque(opaque) => &opaque.metadata,
        }
    }

    /// Returns true if both are the same state of the same object.
    ///
    /// A state without a `resourceVersion` is never unchanged.
    pub(crate) fn is_unchanged(&self, other: &Decoded<K>) -> bool {
        let (own, new) = (self.metadata(), other.metadata());
        self.is_opaque() == matches!(other, Decoded::Opaque { .. })
            && own.resource_version.as_ref().is_some_and(|version| !version.is_empty())
            && own.resource_version == new.resource_version
            && own.uid == new.uid
    }

    /// Returns true if both are the same object, in any state. An object without a uid (in a test,
    /// or with an unreadable uid) is identified by its key alone.
    pub(crate) fn is_same_object(&self, other: &Decoded<K>) -> bool {
        let (own, new) = (&self.metadata().uid, &other.metadata().uid);
        own == new || own.is_none() || new.is_none()
    }

    /// Returns the entry for a new state of the object.
    ///
    /// An opaque entry keeps the last state that the handlers received, so that the next state that
    /// fits is an update from there.
    pub(crate) fn following(old: Option<&Self>, new: Decoded<K>) -> Self {
        match new {
            Decoded::Fits(object) => Self::Fits(object),
            Decoded::Opaque { metadata, .. } => {
                let last_known = old.and_then(Self::last_known).cloned();
                Self::Opaque(Arc::new(Opaque { metadata, last_known }))
            }
        }
    }

    /// Returns the event for a new entry that replaces `old`, if there is one. What is left of
    /// `old` is added to `garbage`.
    ///
    /// Each state moves: an update with two states that fit copies no `Arc`.
    pub(crate) fn into_event(
        self,
        old: Option<Self>,
        initial: bool,
        garbage: &mut Vec<Self>,
    ) -> Event<K> {
        match (self, old) {
            // The usual update touches neither reference count.
            (Self::Fits(new), Some(Self::Fits(old))) => Event::Updated { old, new },
            (Self::Fits(new), old) => {
                let last_known = old.as_ref().and_then(Self::last_known).cloned();
                garbage.extend(old);
                match last_known {
                    Some(old) => Event::Updated { old, new },
                    None => Event::Added { object: new, initial },
                }
            }
            (Self::Opaque(new), old) => {
                garbage.extend(old);
                let last_known = new.last_known.clone();
                Event::Opaque { last_known, metadata: Arc::clone(&new.metadata) }
            }
        }
    }

    /// Returns the event that delivers the unchanged object again, for a resync.
    pub(crate) fn resync_event(&self) -> Option<Event<K>> {
        let object = self.object()?;
        Some(Event::Updated { old: Arc::clone(object), new: Arc::clone(object) })
    }

    /// Returns the event for the deletion of the object. `last` is its final state, if the watch
    /// reported it.
    pub(crate) fn into_deletion_event(self, last: Option<Decoded<K>>) -> Event<K> {
        let (known, metadata) = match self {
            Self::Fits(object) => (Some(object), None),
            Self::Opaque(opaque) => (opaque.last_known.clone(), Some(Arc::clone(&opaque.metadata))),
        };
        match (known, last) {
            (Some(_), Some(Decoded::Fits(last_known))) => {
                Event::Deleted { last_known, certain: true }
            }
            (Some(last_known), _) => Event::Deleted { last_known, certain: false },
            (None, last) => {
                let metadata = match last {
                    Some(Decoded::Opaque { metadata, .. }) => Some(metadata),
                    Some(Decoded::Fits(object)) => Some(Arc::new(object.metadata().clone())),
                    None => metadata,
                };
                Event::OpaqueDeleted { metadata: metadata.unwrap_or_default() }
            }
        }
    }
}

impl<K> Clone for Entry<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Fits(object) => Self::Fits(Arc::clone(object)),
            Self::Opaque(opaque) => Self::Opaque(Arc::clone(opaque)),
        }
    }
}

impl<K> From<Decoded<K>> for Entry<K> {
    fn from(decoded: Decoded<K>) -> Self {
        match decoded {
            Decoded::Fits(object) => Self::Fits(object),
            Decoded::Opaque { metadata, .. } => {
                Self::Opaque(Arc::new(Opaque { metadata, last_known: None }))
            }
        }
    }
}
