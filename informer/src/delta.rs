//! [`Delta`] and [`Batch`]: the changes that a queue hands to a copy of the server's objects.
//!
//! A delta is relative: it is correct only for a copy that has applied every earlier delta of the
//! same queue. The version arithmetic at the end of this module is the only place that orders two
//! states of an object. It never guesses: versions that are not decimal numbers have no order, and
//! the later arrival then wins.

use std::cmp::Ordering;
use std::fmt;

use crate::list_watch::{Decoded, WatchEvent};
use crate::object::{KeyRef, Object, ObjectMeta, ResourceVersion};

/// A change of a copy, on its way to the server's state.
///
/// Each queue design sends a subset of the variants: both send `Applied` and `Deleted`, and the
/// other variants name their design. A consumer that serves both designs handles all of them.
///
/// client-go's `DeltaType` has the counterparts `Replaced`, `Added`, `Updated`, `Deleted` and
/// `Sync`. Here a queue does not separate creation from change, because only the copy knows which
/// one it is.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use homeostat_informer::fifo::Delta;
/// use homeostat_informer::list_watch::Decoded;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web".into());
/// let vanished = Delta::Vanished(Decoded::Fits(Arc::new(pod)));
/// assert!(vanished.is_deletion());
/// assert_eq!(format!("{vanished:?}"), r#"Vanished("web")"#);
///
/// let bookmark = Delta::<Pod>::Bookmark("9".into());
/// assert!(bookmark.object().is_none() && !bookmark.is_deletion());
/// ```
#[doc(alias = "DeltaType")]
#[doc(alias = "Deltas")]
#[non_exhaustive]
pub enum Delta<K: Object> {
    /// The full state, from a list: an object that is not in it is deleted. Applied in one step.
    /// Only from [`DeltaFifo::in_order`](crate::fifo::DeltaFifo::in_order).
    Replaced {
        /// All objects. Of an object that occurs twice the newer state counts.
        objects: Vec<Decoded<K>>,
        /// The server's version that the list shows. It may be lower than before: the server has
        /// another history then.
        resource_version: ResourceVersion,
    },
    /// An object was created or changed.
    Applied(Decoded<K>),
    /// An object was deleted; its final state.
    Deleted(Decoded<K>),
    /// A list contains this object in this state. Only from
    /// [`DeltaFifo::coalescing`](crate::fifo::DeltaFifo::coalescing).
    Listed(Decoded<K>),
    /// A list does not contain this object any more; its last known state (client-go's
    /// `DeletedFinalStateUnknown`). Only from
    /// [`DeltaFifo::coalescing`](crate::fifo::DeltaFifo::coalescing).
    Vanished(Decoded<K>),
    /// Redelivers an unchanged object. Only from
    /// [`DeltaFifo::coalescing`](crate::fifo::DeltaFifo::coalescing).
    Resynced(Decoded<K>),
    /// Redelivers every object. Only from
    /// [`DeltaFifo::in_order`](crate::fifo::DeltaFifo::in_order), which does not know the objects.
    ResyncedAll,
    /// The server has reached this version. Only from
    /// [`DeltaFifo::in_order`](crate::fifo::DeltaFifo::in_order).
    Bookmark(ResourceVersion),
}

/// The deltas that a copy applies in one step.
///
/// Readers of the copy must see all of it or nothing, because the copy is at the version `reached`
/// only after the last delta.
///
/// # Examples
///
/// A batch made by hand, for a test of a copy:
///
/// ```
/// use homeostat_informer::fifo::{Batch, Delta};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let list = Delta::<Pod>::Replaced { objects: vec![], resource_version: "4".into() };
/// let batch = Batch::from(vec![list, Delta::Bookmark("7".into())]);
/// assert_eq!(batch.reached, Some("7".into()));
/// assert!(batch.relisted && batch.synced);
/// ```
#[non_exhaustive]
#[doc(alias = "Deltas")]
pub struct Batch<K: Object> {
    /// The deltas, in order. Empty if only a version was reached.
    pub deltas: Vec<Delta<K>>,
    /// Version of the copy after applying this batch; `None` if unchanged.
    pub reached: Option<ResourceVersion>,
    /// True if a list led to `reached`: the version counts even if it is lower than before.
    pub relisted: bool,
    /// True if the copy contains the initial list after applying this batch.
    pub synced: bool,
}

// === impl Delta ===

impl<K: Object> Delta<K> {
    /// Returns the object, or `None` if the delta is not about a single one.
    ///
    /// The object of a deletion is its final or last known state.
    pub fn object(&self) -> Option<&Decoded<K>> {
        match self {
            Self::Applied(object)
            | Self::Deleted(object)
            | Self::Listed(object)
            | Self::Vanished(object)
            | Self::Resynced(object) => Some(object),
            Self::Replaced { .. } | Self::ResyncedAll | Self::Bookmark(_) => None,
        }
    }

    /// Returns true if the delta deletes its object.
    ///
    /// `Replaced` is not a deletion, although it deletes each object that is not in it.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::Deleted(_) | Self::Vanished(_))
    }

    /// Returns the version that the server had reached with this delta.
    ///
    /// `None` for the deltas of a coalescing queue that come from a list: an object of a list may
    /// be older than the list, and other objects of it may still be queued.
    fn version(&self) -> Option<&str> {
        match self {
            Self::Applied(object) | Self::Deleted(object) => version_of(object),
            Self::Bookmark(version) | Self::Replaced { resource_version: version, .. } => {
                Some(version.as_str())
            }
            Self::Listed(_) | Self::Vanished(_) | Self::Resynced(_) | Self::ResyncedAll => None,
        }
    }
}

impl<K: Object> From<WatchEvent<K>> for Delta<K> {
    fn from(event: WatchEvent<K>) -> Self {
        match event {
            WatchEvent::Applied(object) => Self::Applied(object),
            WatchEvent::Deleted(object) => Self::Deleted(object),
            WatchEvent::Bookmark { resource_version, .. } => Self::Bookmark(resource_version),
        }
    }
}

/// Prints the change and the object's key, never its content.
impl<K: Object> fmt::Debug for Delta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Replaced { objects, resource_version } => {
                return f
                    .debug_struct("Replaced")
                    .field("objects", &objects.len())
                    .field("resource_version", resource_version)
                    .finish();
            }
            Self::Bookmark(version) => return f.debug_tuple("Bookmark").field(version).finish(),
            Self::Applied(_) => "Applied",
            Self::Deleted(_) => "Deleted",
            Self::Listed(_) => "Listed",
            Self::Vanished(_) => "Vanished",
            Self::Resynced(_) => "Resynced",
            Self::ResyncedAll => "ResyncedAll",
        };
        let key = self.object().map(|object| KeyRef::<K::Kind>::from_metadata(object.metadata()));
        match key {
            Some(key) => f.debug_tuple(name).field(&key).finish(),
            None => f.write_str(name),
        }
    }
}

// === impl Batch ===

impl<K: Object> fmt::Debug for Batch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("deltas", &self.deltas)
            .field("reached", &self.reached)
            .field("relisted", &self.relisted)
            .field("synced", &self.synced)
            .finish()
    }
}

/// Makes a batch of deltas in the order of the server.
impl<K: Object> From<Vec<Delta<K>>> for Batch<K> {
    fn from(deltas: Vec<Delta<K>>) -> Self {
        let relisted = deltas.iter().any(|delta| matches!(delta, Delta::Replaced { .. }));
        let reached = newest(deltas.iter().map(Delta::version));
        Self { deltas, reached, relisted, synced: relisted }
    }
}

// === versions ===

/// Returns the version that the server had reached with the last of these events.
pub(crate) fn newest_of<K: Object>(events: &[WatchEvent<K>]) -> Option<ResourceVersion> {
    newest(events.iter().map(|event| match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => version_of(object),
        WatchEvent::Bookmark { resource_version, .. } => Some(resource_version.as_str()),
    }))
}

/// Returns the newest version of these objects, which are in no order.
pub(crate) fn newest_object<K: Object>(objects: &[Decoded<K>]) -> Option<ResourceVersion> {
    newest(objects.iter().map(version_of))
}

/// Returns the last version that is not known to be older than an earlier one. Versions that are no
/// point in history (empty or `0`) are ignored.
fn newest<'a>(versions: impl Iterator<Item = Option<&'a str>>) -> Option<ResourceVersion> {
    let mut newest: Option<&str> = None;
    for version in versions.flatten().filter(|version| !matches!(*version, "" | "0")) {
        let order = newest.and_then(|newest| ResourceVersion::compare_text(version, newest));
        if order != Some(Ordering::Less) {
            newest = Some(version);
        }
    }
    newest.map(ResourceVersion::from)
}

/// Returns the object's `resourceVersion`, as the server wrote it.
fn version_of<K: Object>(object: &Decoded<K>) -> Option<&str> {
    object.metadata().resource_version.as_deref()
}

/// Returns the order of two states of one object, or `None` if it is unknown.
pub(crate) fn compare_metadata(one: &ObjectMeta, other: &ObjectMeta) -> Option<Ordering> {
    let (one, other) = (one.resource_version.as_deref()?, other.resource_version.as_deref()?);
    ResourceVersion::compare_text(one, other)
}

/// Returns true if `one` is known to be the older state.
///
/// False if the order is unknown, so that an update from a server with other versions is never
/// dropped.
pub(crate) fn is_older(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    compare_metadata(one, other) == Some(Ordering::Less)
}
