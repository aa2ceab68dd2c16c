//! [`Write`]: a write to one object, and the versions that end it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::object::{KeyRef, ObjectMeta, ResourceVersion, Uid};

/// A write to one object: its outcome, and the version that decides when it is over.
pub(super) struct Write<K> {
    uid: Uid,
    /// The version of the written state. For the caller's own deletion it is the last known
    /// version; the version of the deletion itself is higher.
    version: ResourceVersion,
    outcome: Outcome<K>,
}

enum Outcome<K> {
    /// The object was written in this state.
    Written(Arc<K>),
    /// The caller deleted the object. → forgotten when the store or an event shows the deletion.
    Deleted,
    /// An event reported the deletion, ahead of the store's version. → forgotten when the store
    /// reaches that version.
    Gone,
}

/// The key, uid and version of an object's state.
pub(super) struct ObjectVersion<'a, Kind> {
    key: KeyRef<'a, Kind>,
    uid: &'a str,
    version: ResourceVersion,
}

// === impl Write ===

impl<K> Write<K> {
    /// A write that the server answered with `object`.
    pub(super) fn written<Kind>(seen: &ObjectVersion<'_, Kind>, object: Arc<K>) -> Self {
        Self::of(seen, Outcome::Written(object))
    }

    /// A deletion that the server has confirmed.
    pub(super) fn deleted<Kind>(seen: &ObjectVersion<'_, Kind>) -> Self {
        Self::of(seen, Outcome::Deleted)
    }

    /// A deletion that an event has reported.
    pub(super) fn gone<Kind>(seen: &ObjectVersion<'_, Kind>) -> Self {
        Self::of(seen, Outcome::Gone)
    }

    fn of<Kind>(seen: &ObjectVersion<'_, Kind>, outcome: Outcome<K>) -> Self {
        Self { uid: seen.uid.into(), version: seen.version.clone(), outcome }
    }

    /// Returns the written object; `None` for a deletion.
    pub(super) fn into_object(self) -> Option<Arc<K>> {
        match self.outcome {
            Outcome::Written(object) => Some(object),
            Outcome::Deleted | Outcome::Gone => None,
        }
    }

    /// Returns true if the caller reported this write, `false` if only an event did.
    pub(super) fn is_reported(&self) -> bool {
        !matches!(self.outcome, Outcome::Gone)
    }

    /// Returns true if this write is newer than the store's state. If the versions cannot be
    /// compared, it is not.
    ///
    /// A deletion hides the stored object of the same uid whatever its version: the store has not
    /// seen the deletion yet.
    pub(super) fn is_newer_than(&self, stored: &ObjectMeta) -> bool {
        let uid = stored.uid.as_deref().unwrap_or_default();
        let version = stored.resource_version.as_deref().unwrap_or_default().into();
        let order = order(&self.version, &version);
        match self.outcome {
            Outcome::Written(_) => order == Some(Ordering::Greater),
            Outcome::Deleted | Outcome::Gone => {
                self.is_same(uid) || order.is_some_and(Ordering::is_ge)
            }
        }
    }

    /// Returns true if this write replaces `old`.
    ///
    /// | This | Earlier | Replaces it |
    /// |---|---|---|
    /// | written | written | if its version is higher |
    /// | written | deleted | if its uid differs and its version is higher |
    /// | deleted | written | if the uid is the same or the version is not lower |
    /// | deleted | deleted | if its version is higher |
    ///
    /// Versions without an order count as higher: the later report wins.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        let order = order(&self.version, &old.version);
        let is_same = old.is_same(self.uid.as_str());
        match (&self.outcome, &old.outcome) {
            (Outcome::Written(_), Outcome::Written(_)) => order.is_none_or(Ordering::is_gt),
            // A deleted object does not come back, but another object may take its name.
            (Outcome::Written(_), _) => !is_same && order.is_none_or(Ordering::is_gt),
            (_, Outcome::Written(_)) => is_same || order.is_none_or(Ordering::is_ge),
            (_, _) => order.is_none_or(Ordering::is_gt),
        }
    }

    /// Returns true if a store at version `reached` has this write or a later state.
    pub(super) fn is_reached(&self, reached: &ResourceVersion) -> bool {
        // The version of the caller's own deletion is unknown; it is higher than this one.
        !matches!(self.outcome, Outcome::Deleted) && self.is_at_most(reached)
    }

    /// Returns true if a store at version `reached` without the object has seen its deletion,
    /// because it has had the object.
    pub(super) fn is_seen_gone(&self, reached: Option<&ResourceVersion>) -> bool {
        matches!(self.outcome, Outcome::Deleted)
            && reached.is_some_and(|reached| self.is_at_most(reached))
    }

    /// Returns true if this write is superfluous once the object was seen in this state.
    pub(super) fn is_over_with<Kind>(&self, seen: &ObjectVersion<'_, Kind>) -> bool {
        let is_at_most = self.is_at_most(&seen.version);
        match self.outcome {
            Outcome::Written(_) => is_at_most,
            // An object with another uid has this name, so the deleted one is gone.
            Outcome::Deleted | Outcome::Gone => self.is_other(seen.uid) && is_at_most,
        }
    }

    /// Returns true if this write is superfluous once this deletion was seen.
    pub(super) fn is_over_without<Kind>(&self, seen: &ObjectVersion<'_, Kind>) -> bool {
        self.is_same(seen.uid) || self.is_at_most(&seen.version)
    }

    /// Returns true if `version` is this write's version or a later one.
    fn is_at_most(&self, version: &ResourceVersion) -> bool {
        order(&self.version, version).is_some_and(Ordering::is_le)
    }

    /// Returns true if `uid` is known and is this object's uid.
    fn is_same(&self, uid: &str) -> bool {
        !uid.is_empty() && self.uid.as_str() == uid
    }

    /// Returns true if both uids are known and differ.
    pub(super) fn is_other(&self, uid: &str) -> bool {
        !uid.is_empty() && !self.uid.as_str().is_empty() && self.uid.as_str() != uid
    }
}

impl<K> Clone for Write<K> {
    fn clone(&self) -> Self {
        let outcome = match &self.outcome {
            Outcome::Written(object) => Outcome::Written(Arc::clone(object)),
            Outcome::Deleted => Outcome::Deleted,
            Outcome::Gone => Outcome::Gone,
        };
        Self { uid: self.uid.clone(), version: self.version.clone(), outcome }
    }
}

// === impl ObjectVersion ===

impl<'a, Kind> ObjectVersion<'a, Kind> {
    /// Reads the metadata of a server's response; `None` if it has no name or no version.
    pub(super) fn of(metadata: &'a ObjectMeta) -> Option<Self> {
        Self::of_event(metadata).filter(|seen| seen.version.is_point())
    }

    /// Reads the metadata of an event's object; `None` if it has no name. The version may be empty.
    pub(super) fn of_event(metadata: &'a ObjectMeta) -> Option<Self> {
        let key = KeyRef::from_metadata(metadata);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let version = metadata.resource_version.as_deref().unwrap_or_default().into();
        (!key.name().is_empty()).then_some(Self { key, uid, version })
    }

    /// Returns true if a store at version `reached` is known to be older than this state.
    pub(super) fn is_ahead_of(&self, reached: Option<&ResourceVersion>) -> bool {
        let is_below =
            |reached: &ResourceVersion| order(reached, &self.version) == Some(Ordering::Less);
        self.version.is_point() && reached.is_none_or(is_below)
    }

    /// Returns the key of the object.
    pub(super) fn key(&self) -> KeyRef<'a, Kind> {
        self.key
    }
}

/// Compares two versions. Equal ones need not be numbers; others that are not numbers have no
/// order.
///
/// `None` makes each caller choose the safe side for its question.
fn order(one: &ResourceVersion, other: &ResourceVersion) -> Option<Ordering> {
    if one == other { Some(Ordering::Equal) } else { one.compare(other) }
}
