//! [`Event`]: a change of one object, as a handler receives it.
//!
//! The grammar in [`Event`] is a promise to handlers: `Added` and `Deleted` of an object alternate,
//! so a handler can count the objects that fit their type, or once did, with these two.

use std::fmt;
use std::sync::Arc;

use crate::object::{KeyRef, Object, ObjectKey, ObjectMeta};

/// A change of one object. A clone copies pointers, never an object.
///
/// For each object a handler receives a sequence that matches this grammar, in order and without a
/// gap, where *unknown* is an `Opaque` without a last known state:
///
/// > unknown* ( `OpaqueDeleted` ∣ `Added` ( `Updated` ∣ `Opaque` )* `Deleted` )
///
/// An object that was deleted and created again under its name is reported as deleted, then as
/// added, even if the informer saw neither happen: it compares uids.
///
/// Most handlers are level-triggered: the handler adds the [`key`](Self::key) to a work queue, and
/// a worker reads the current state from a [`Lister`](crate::Lister). Read the objects of the event
/// only for what the current state no longer shows: the old labels of an update, or the last state
/// of a deleted object.
///
/// client-go's handlers receive a `DeletedFinalStateUnknown` in place of an object and must check
/// for it. Here `certain: false` says the same, and the object always has its type.
///
/// # Examples
///
/// ```
/// use homeostat_informer::Event;
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn describe(event: &Event<Pod>) -> String {
///     match event {
///         Event::Added { initial: true, .. } => format!("{} exists", event.key()),
///         Event::Added { .. } => format!("{} was created", event.key()),
///         Event::Updated { .. } => format!("{} changed", event.key()),
///         Event::Deleted { certain, .. } => format!("{} is gone (seen: {certain})", event.key()),
///         Event::Opaque { .. } => format!("{} exists and cannot be decoded", event.key()),
///         Event::OpaqueDeleted { .. } => format!("{} is gone, it was never decoded", event.key()),
///     }
/// }
/// ```
#[doc(alias = "ResourceEventHandler")]
#[doc(alias = "DeletedFinalStateUnknown")]
pub enum Event<K: Object> {
    /// The object is new to this handler.
    Added {
        /// The object.
        object: Arc<K>,
        /// True if the object existed before the handler started: it is part of the initial list
        /// (client-go's `isInInitialList`).
        initial: bool,
    },
    /// The object changed.
    Updated {
        /// The state before the change: the one that this handler received last, unless it skips
        /// updates by [`HandlerOptions::updates`](crate::HandlerOptions::updates).
        old: Arc<K>,
        /// The current state.
        new: Arc<K>,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        last_known: Arc<K>,
        /// True if `last_known` is the final state. False if the informer missed the deletion and
        /// found out by a relist; the object may have changed in between (client-go's
        /// `DeletedFinalStateUnknown`).
        certain: bool,
    },
    /// The object is there, but it does not fit its Rust type: only its metadata is known.
    ///
    /// This is never a deletion. A handler that counts objects must count this object too.
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
    /// Returns the newest metadata that this event carries.
    ///
    /// Of an update it is the new state's, of an opaque object the metadata as it is now.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Added { object, .. } => object.metadata(),
            Self::Updated { new, .. } => new.metadata(),
            Self::Deleted { last_known, .. } => last_known.metadata(),
            Self::Opaque { metadata, .. } | Self::OpaqueDeleted { metadata } => metadata,
        }
    }

    /// Returns the object's namespace and name.
    ///
    /// Every variant has a key, so a handler can queue it without a `match`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use homeostat_informer::Event;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let mut pod = Pod::default();
    /// pod.metadata.namespace = Some("shop".into());
    /// pod.metadata.name = Some("web".into());
    /// let gone = Event::Deleted { last_known: Arc::new(pod), certain: false };
    /// assert_eq!(gone.key().to_string(), "shop/web");
    /// assert!(gone.object().is_some(), "the last known state");
    /// ```
    #[doc(alias = "MetaNamespaceKeyFunc")]
    pub fn key(&self) -> ObjectKey<K::Kind> {
        ObjectKey::from_metadata(self.metadata())
    }

    /// Returns the newest state that fits its type, or `None` for an opaque object. Of a deleted
    /// object it is the last known state.
    ///
    /// `Opaque` has no such state here even if its `last_known` is set: that state is no longer
    /// current. Match the variant to read it.
    pub fn object(&self) -> Option<&Arc<K>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted { last_known, .. } => Some(last_known),
            Self::Opaque { .. } | Self::OpaqueDeleted { .. } => None,
        }
    }

    /// Returns the variant's name, for `Debug`.
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

/// Prints the variant and the object's key, never its content.
impl<K: Object> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<K::Kind>::from_metadata(self.metadata());
        f.debug_tuple(self.name()).field(&key).finish()
    }
}
