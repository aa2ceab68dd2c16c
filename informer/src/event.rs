//! What a handler is told: [`Event`].

use std::{fmt, sync::Arc};

use crate::object::{KeyRef, Object, ObjectKey, ObjectMeta};

/// One change of one object, as a handler sees it. A clone copies pointers, never an object.
///
/// For each object a handler sees a word of this language, in order and without a gap, where *unknown* is an `Opaque`
/// without a last known state:
///
/// > unknown* ( `OpaqueDeleted` ∣ `Added` ( `Updated` ∣ `Opaque` )* `Deleted` )
///
/// An object that was deleted and made again under the same name is told as deleted, then as added, even when the
/// informer saw neither happen.
pub enum Event<K: Object> {
    /// The object is new to this handler.
    Added {
        /// The object.
        object: Arc<K>,
        /// Whether it was there before the handler began to follow: it is part of the first list.
        initial: bool,
    },
    /// The object changed.
    Updated {
        /// What the handler was told last.
        old: Arc<K>,
        /// What it is now.
        new: Arc<K>,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        last_known: Arc<K>,
        /// Whether `last_known` is its final state. If not, the deletion was missed and found out later, and the
        /// object may have changed in between.
        certain: bool,
    },
    /// The object is there, but it does not fit its Rust type: all that is known of it is its metadata.
    ///
    /// This is never a deletion. Whoever counts objects has to count it, or to stop counting.
    Opaque {
        /// The last state that fitted, if there was one.
        last_known: Option<Arc<K>>,
        /// The metadata as it is now.
        metadata: Arc<ObjectMeta>,
    },
    /// An object that never fitted its Rust type is gone.
    OpaqueDeleted {
        /// The last known metadata.
        metadata: Arc<ObjectMeta>,
    },
}

// === impl Event ===

impl<K: Object> Event<K> {
    /// The newest metadata that this event carries.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Added { object, .. } => object.metadata(),
            Self::Updated { new, .. } => new.metadata(),
            Self::Deleted { last_known, .. } => last_known.metadata(),
            Self::Opaque { metadata, .. } | Self::OpaqueDeleted { metadata } => metadata,
        }
    }

    /// The object's namespace and name.
    pub fn key(&self) -> ObjectKey<K::Kind> {
        ObjectKey::from_metadata(self.metadata())
    }

    /// The newest state that fits its type, if there is one: of a deleted object, its last.
    pub fn object(&self) -> Option<&Arc<K>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted { last_known, .. } => Some(last_known),
            Self::Opaque { .. } | Self::OpaqueDeleted { .. } => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Added { .. } => "Added",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
            Self::Opaque { .. } => "Opaque",
            Self::OpaqueDeleted { .. } => "OpaqueDeleted",
        }
    }
}

impl<K: Object> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => {
                Self::Added { object: Arc::clone(object), initial: *initial }
            }
            Self::Updated { old, new } => {
                Self::Updated { old: Arc::clone(old), new: Arc::clone(new) }
            }
            Self::Deleted { last_known, certain } => {
                Self::Deleted { last_known: Arc::clone(last_known), certain: *certain }
            }
            Self::Opaque { last_known, metadata } => {
                Self::Opaque { last_known: last_known.clone(), metadata: Arc::clone(metadata) }
            }
            Self::OpaqueDeleted { metadata } => {
                Self::OpaqueDeleted { metadata: Arc::clone(metadata) }
            }
        }
    }
}

/// Prints what happened to which object, never what is in it.
impl<K: Object> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<K::Kind>::from_metadata(self.metadata());
        f.debug_tuple(self.name()).field(&key).finish()
    }
}
