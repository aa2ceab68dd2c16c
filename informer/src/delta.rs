//! What a queue hands on, and whoever keeps a copy does: [`Delta`], in [`Batch`]es.

use std::{cmp::Ordering, fmt};

use crate::{
    list_watch::{Decoded, WatchEvent},
    object::{KeyRef, Object, ObjectMeta, ResourceVersion, compare_versions, is_point},
};

/// One step of a copy towards the server.
#[non_exhaustive]
pub enum Delta<K: Object> {
    /// The whole state, from a list: what is not in it is gone. Done in one step. Only from a queue in order.
    Replaced {
        /// All that there is. An object that is there twice counts in its newer state.
        objects: Vec<Decoded<K>>,
        /// The state of the server that the list shows. It may be lower than what was reached: then the server has
        /// another history.
        resource_version: ResourceVersion,
    },
    /// An object was made or changed.
    Applied(Decoded<K>),
    /// An object is gone; its final state.
    Deleted(Decoded<K>),
    /// An object is there in this state, says a list, whatever was known of it. Only from a queue that coalesces.
    Listed(Decoded<K>),
    /// An object is gone, says a list that it is not in; the last state that is known. Only from a queue that coalesces.
    Vanished(Decoded<K>),
    /// Nothing has happened to this object, but somebody wants to be told of it again. Only from a queue that coalesces.
    Resynced(Decoded<K>),
    /// The same for every object. Only from a queue in order, which does not know them.
    ResyncedAll,
    /// The server has got this far. Only from a queue in order.
    Bookmark(ResourceVersion),
}

/// What is done in one step.
#[non_exhaustive]
pub struct Batch<K: Object> {
    /// In the order in which they are done. It may be empty, if only a version was reached.
    pub deltas: Vec<Delta<K>>,
    /// The version of the server that whoever has done this has reached; `None` if it is no other than before.
    pub reached: Option<ResourceVersion>,
    /// Whether a list is a part of what was reached, so that the version counts even if it is lower than before.
    pub relisted: bool,
    /// Whether whoever has done this has done all of the first list.
    pub synced: bool,
}

// === impl Delta ===

impl<K: Object> Delta<K> {
    /// The object, if this is about one.
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

    /// Whether the object is gone afterwards.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::Deleted(_) | Self::Vanished(_))
    }

    /// The version that the server had reached when it said this.
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

/// Prints what happened to which object, never what is in it.
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

/// These, in the order of the server.
impl<K: Object> From<Vec<Delta<K>>> for Batch<K> {
    fn from(deltas: Vec<Delta<K>>) -> Self {
        let relisted = deltas.iter().any(|delta| matches!(delta, Delta::Replaced { .. }));
        let reached = newest(deltas.iter().map(Delta::version));
        Self { deltas, reached, relisted, synced: relisted }
    }
}

// === versions ===

/// The version that the server had reached when it had sent all of this.
pub(crate) fn newest_of<K: Object>(events: &[WatchEvent<K>]) -> Option<ResourceVersion> {
    newest(events.iter().map(|event| match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => version_of(object),
        WatchEvent::Bookmark { resource_version, .. } => Some(resource_version.as_str()),
    }))
}

fn newest<'a>(versions: impl Iterator<Item = Option<&'a str>>) -> Option<ResourceVersion> {
    let mut newest: Option<&str> = None;
    for version in versions.flatten().filter(|version| is_point(version)) {
        let back = newest.and_then(|newest| compare_versions(version, newest));
        if back != Some(Ordering::Less) {
            newest = Some(version);
        }
    }
    newest.map(ResourceVersion::from)
}

fn version_of<K: Object>(object: &Decoded<K>) -> Option<&str> {
    object.metadata().resource_version.as_deref()
}

/// Whether one state is known to be older than the other.
pub(crate) fn is_older(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let (one, other) = (one.resource_version.as_deref(), other.resource_version.as_deref());
    let order = one.zip(other).and_then(|(one, other)| compare_versions(one, other));
    order == Some(Ordering::Less)
}
