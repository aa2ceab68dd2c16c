//! What the store holds of one object.

use std::sync::Arc;

use crate::{
    event::Event,
    list_watch::Decoded,
    object::{Object, ObjectMeta},
};

/// An object in the store.
pub(crate) enum Entry<K> {
    /// It fits its type.
    Fits(Arc<K>),
    /// It does not. `last_known` is what handlers were told before; never set if it never fitted.
    Opaque { metadata: Arc<ObjectMeta>, last_known: Option<Arc<K>> },
}

// === impl Entry ===

impl<K> Entry<K> {
    pub(crate) fn object(&self) -> Option<&Arc<K>> {
        match self {
            Self::Fits(object) => Some(object),
            Self::Opaque { .. } => None,
        }
    }

    pub(crate) fn is_opaque(&self) -> bool {
        matches!(self, Self::Opaque { .. })
    }

    /// The object, or else its metadata.
    pub(crate) fn known(&self) -> Result<&K, &ObjectMeta> {
        match self {
            Self::Fits(object) => Ok(object),
            Self::Opaque { metadata, .. } => Err(metadata),
        }
    }
}

impl<K: Object> Entry<K> {
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Fits(object) => object.metadata(),
            Self::Opaque { metadata, .. } => metadata,
        }
    }

    /// Whether this is the same state of the same object.
    pub(crate) fn is_unchanged(&self, other: &Decoded<K>) -> bool {
        let (own, new) = (self.metadata(), other.metadata());
        self.is_opaque() == matches!(other, Decoded::Opaque { .. })
            && own.resource_version.as_ref().is_some_and(|version| !version.is_empty())
            && own.resource_version == new.resource_version
            && own.uid == new.uid
    }

    /// Whether this and the other are the same object, whatever their states. An object without a uid (a test's, or one
    /// whose uid cannot be read) is known by its key alone.
    pub(crate) fn is_same_object(&self, other: &Decoded<K>) -> bool {
        let (own, new) = (&self.metadata().uid, &other.metadata().uid);
        own == new || own.is_none() || new.is_none()
    }

    /// The entry and the event that follow when a new state arrives.
    pub(crate) fn next(old: Option<&Self>, new: Decoded<K>, initial: bool) -> (Self, Event<K>) {
        let last_known = match old {
            Some(Self::Fits(object)) => Some(Arc::clone(object)),
            Some(Self::Opaque { last_known, .. }) => last_known.clone(),
            None => None,
        };
        match (new, last_known) {
            (Decoded::Fits(new), Some(old)) => {
                (Self::Fits(Arc::clone(&new)), Event::Updated { old, new })
            }
            (Decoded::Fits(object), None) => {
                (Self::Fits(Arc::clone(&object)), Event::Added { object, initial })
            }
            (Decoded::Opaque { metadata, .. }, last_known) => (
                Self::Opaque { metadata: Arc::clone(&metadata), last_known: last_known.clone() },
                Event::Opaque { last_known, metadata },
            ),
        }
    }

    /// The event for who wants to be told again.
    pub(crate) fn again(&self) -> Option<Event<K>> {
        let object = self.object()?;
        Some(Event::Updated { old: Arc::clone(object), new: Arc::clone(object) })
    }

    /// The event that follows when the object is gone. `last` is its final state, if that was seen.
    pub(crate) fn gone(self, last: Option<Decoded<K>>) -> Event<K> {
        let (known, metadata) = match self {
            Self::Fits(object) => (Some(object), None),
            Self::Opaque { metadata, last_known } => (last_known, Some(metadata)),
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
            Self::Opaque { metadata, last_known } => {
                Self::Opaque { metadata: Arc::clone(metadata), last_known: last_known.clone() }
            }
        }
    }
}

impl<K> From<Decoded<K>> for Entry<K> {
    fn from(decoded: Decoded<K>) -> Self {
        match decoded {
            Decoded::Fits(object) => Self::Fits(object),
            Decoded::Opaque { metadata, .. } => Self::Opaque { metadata, last_known: None },
        }
    }
}
