//! [`Overlay`]: what was written and may not be in the copy yet. Pure: it is told the time, and what the copy has reached.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use tokio::time::Instant;

use crate::object::{
    KeyRef, Object, ObjectKey, ObjectMeta, ResourceVersion, Uid, compare_versions, is_point,
};

/// The writes by key, one for each, and in the order in which they were told.
pub(super) struct Overlay<K: Object> {
    ttl: Duration,
    capacity: usize,
    places: HashMap<ObjectKey<K::Kind>, Place<K>, RandomState>,
    /// The keys, by the numbers of their places: the oldest first, which is also the first to expire.
    order: BTreeMap<u64, ObjectKey<K::Kind>>,
    next: u64,
    /// When what is put here now expires; `None`: never.
    expires: Option<Instant>,
    /// What the copy had reached when it was looked at last.
    reached: Option<ResourceVersion>,
    forgotten: u64,
}

struct Place<K> {
    own: Own<K>,
    number: u64,
    expires: Option<Instant>,
}

/// What became of an object by a write.
pub(super) struct Own<K> {
    uid: Uid,
    /// Of a deletion of one's own, the last version that is known: the deletion's is higher.
    version: ResourceVersion,
    outcome: Outcome<K>,
}

enum Outcome<K> {
    /// It is there in this state.
    Written(Arc<K>),
    /// We have deleted it. → forgotten when the copy shows that, or an event says it.
    Deleted,
    /// An event has said that it is gone, ahead of the copy's version. → forgotten when the copy has got there.
    Gone,
}

/// Which state of which object somebody tells of.
pub(super) struct Told<'a, Kind> {
    key: KeyRef<'a, Kind>,
    uid: &'a str,
    version: &'a str,
}

/// What is to be dropped when nothing is locked: that is the author's code.
pub(super) type Garbage<K> = Vec<Own<K>>;

/// A look-up of a key that allocates nothing.
struct Sought<'a, Kind>(KeyRef<'a, Kind>);

// === impl Overlay ===

impl<K: Object> Overlay<K> {
    pub(super) fn new(ttl: Duration, capacity: usize) -> Self {
        Self {
            ttl,
            capacity,
            places: HashMap::default(),
            order: BTreeMap::new(),
            next: 0,
            expires: None,
            reached: None,
            forgotten: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Drops what the copy has reached, and what has been here for too long. To be called first, with what the copy has
    /// reached at the very moment of what follows.
    ///
    /// A copy that has gone back follows another history, to which none of our writes belong.
    pub(super) fn prune(
        &mut self,
        now: Instant,
        reached: Option<&ResourceVersion>,
        garbage: &mut Garbage<K>,
    ) {
        self.expires = now.checked_add(self.ttl);
        if let Some(reached) = reached.filter(|reached| self.reached.as_ref() != Some(*reached)) {
            let back = self.reached.as_ref().and_then(|last| reached.compare(last));
            let back = back == Some(Ordering::Less);
            let over = self.places.extract_if(|_, place| back || place.own.is_reached(reached));
            for (_, place) in over {
                self.order.remove(&place.number);
                garbage.push(place.own);
            }
            self.reached = Some(reached.clone());
        }
        while let Some((_, key)) = self.order.first_key_value() {
            let expires = self.places.get(key).and_then(|place| place.expires);
            if expires.is_none_or(|expires| now < expires) {
                break;
            }
            self.forget_first(garbage);
        }
    }

    /// Takes what a write came to, unless something newer is known.
    pub(super) fn put(&mut self, key: ObjectKey<K::Kind>, own: Own<K>, garbage: &mut Garbage<K>) {
        let is_late = self.reached.as_ref().is_some_and(|reached| own.is_reached(reached));
        let old = self.places.get(&key).map(|place| &place.own);
        if is_late || self.capacity == 0 || old.is_some_and(|old| !own.replaces(old)) {
            garbage.push(own);
            return;
        }
        self.remove(key.as_key_ref(), garbage);
        while self.places.len() >= self.capacity {
            self.forget_first(garbage);
        }
        let number = self.next;
        self.next += 1;
        self.order.insert(number, key.clone());
        self.places.insert(key, Place { own, number, expires: self.expires });
    }

    /// What was written of the object. `is_there` says whether the copy has one of its key, in whatever state.
    pub(super) fn look(
        &mut self,
        key: KeyRef<'_, K::Kind>,
        is_there: bool,
        garbage: &mut Garbage<K>,
    ) -> Option<Own<K>> {
        let own = &self.places.get(&Sought(key))?.own;
        if !is_there && own.is_seen_gone(self.reached.as_ref()) {
            self.remove(key, garbage);
            return None;
        }
        Some(own.clone())
    }

    /// Everything that was written, in the order in which it was told.
    pub(super) fn all(&self) -> impl Iterator<Item = (KeyRef<'_, K::Kind>, Own<K>)> {
        self.order.values().filter_map(|key| {
            self.places.get(key).map(|place| (key.as_key_ref(), place.own.clone()))
        })
    }

    /// An event says that the object is there, in this state.
    pub(super) fn is_there(&mut self, told: Told<'_, K::Kind>, garbage: &mut Garbage<K>) {
        let Some(own) = self.own(told.key) else { return };
        let is_over = match own.outcome {
            Outcome::Written(_) => own.is_below(told.version),
            // Another object of the same name: ours is no more.
            Outcome::Deleted | Outcome::Gone => {
                own.is_other(told.uid) && own.is_below(told.version)
            }
        };
        if is_over {
            self.remove(told.key, garbage);
        }
    }

    /// An event says that the object is gone; this is its last state.
    ///
    /// The copy may not have reached the version of that, if its queue coalesces. Then what was written of the object
    /// may still be told, and has to be known as late.
    pub(super) fn is_gone(&mut self, told: Told<'_, K::Kind>, garbage: &mut Garbage<K>) {
        if let Some(own) = self.own(told.key)
            && (own.is_same(told.uid) || own.is_below(told.version))
        {
            self.remove(told.key, garbage);
        }
        let below = |reached: &ResourceVersion| {
            order(reached.as_str(), told.version) == Some(Ordering::Less)
        };
        if is_point(told.version) && self.reached.as_ref().is_none_or(below) {
            let gone = Own::of(told, Outcome::Gone);
            self.put(told.key.to_key(), gone, garbage);
        }
    }

    fn own(&self, key: KeyRef<'_, K::Kind>) -> Option<&Own<K>> {
        self.places.get(&Sought(key)).map(|place| &place.own)
    }

    fn remove(&mut self, key: KeyRef<'_, K::Kind>, garbage: &mut Garbage<K>) {
        if let Some(place) = self.places.remove(&Sought(key)) {
            self.order.remove(&place.number);
            garbage.push(place.own);
        }
    }

    fn forget_first(&mut self, garbage: &mut Garbage<K>) {
        if let Some((_, key)) = self.order.pop_first()
            && let Some(place) = self.places.remove(&key)
        {
            self.forgotten += u64::from(!matches!(place.own.outcome, Outcome::Gone));
            garbage.push(place.own);
        }
    }
}

// === impl Own ===

impl<K> Own<K> {
    /// The server has answered with this.
    pub(super) fn written<Kind>(told: Told<'_, Kind>, object: Arc<K>) -> Self {
        Self::of(told, Outcome::Written(object))
    }

    /// The server has answered that this is no more.
    pub(super) fn deleted<Kind>(told: Told<'_, Kind>) -> Self {
        Self::of(told, Outcome::Deleted)
    }

    fn of<Kind>(told: Told<'_, Kind>, outcome: Outcome<K>) -> Self {
        Self { uid: told.uid.into(), version: told.version.into(), outcome }
    }

    /// The object, if it is there.
    pub(super) fn into_object(self) -> Option<Arc<K>> {
        match self.outcome {
            Outcome::Written(object) => Some(object),
            Outcome::Deleted | Outcome::Gone => None,
        }
    }

    /// Whether this is newer than what the copy has of the object. Where nobody can tell, the copy counts.
    pub(super) fn is_newer_than(&self, stored: &ObjectMeta) -> bool {
        let uid = stored.uid.as_deref().unwrap_or_default();
        let version = stored.resource_version.as_deref().unwrap_or_default();
        let order = order(self.version.as_str(), version);
        match self.outcome {
            Outcome::Written(_) => order == Some(Ordering::Greater),
            Outcome::Deleted | Outcome::Gone => {
                self.is_same(uid) || order.is_some_and(Ordering::is_ge)
            }
        }
    }

    /// Whether this takes the place of what was told before.
    fn replaces(&self, old: &Self) -> bool {
        let order = order(self.version.as_str(), old.version.as_str());
        let is_same = old.is_same(self.uid.as_str());
        match (&self.outcome, &old.outcome) {
            (Outcome::Written(_), Outcome::Written(_)) => order.is_none_or(Ordering::is_gt),
            // An object that is gone does not come back; another one of its name may.
            (Outcome::Written(_), _) => !is_same && order.is_none_or(Ordering::is_gt),
            (_, Outcome::Written(_)) => is_same || order.is_none_or(Ordering::is_ge),
            (_, _) => order.is_none_or(Ordering::is_gt),
        }
    }

    /// Whether a copy that has got this far shows what this is, or something later.
    fn is_reached(&self, reached: &ResourceVersion) -> bool {
        // The version of a deletion of our own is not known; it is higher than this.
        !matches!(self.outcome, Outcome::Deleted) && self.is_below(reached.as_str())
    }

    /// Whether a copy that has got this far, and has not this object, has seen its deletion: it has had the object.
    pub(super) fn is_seen_gone(&self, reached: Option<&ResourceVersion>) -> bool {
        matches!(self.outcome, Outcome::Deleted)
            && reached.is_some_and(|reached| self.is_below(reached.as_str()))
    }

    /// Whether this version is not below ours.
    fn is_below(&self, version: &str) -> bool {
        order(self.version.as_str(), version).is_some_and(Ordering::is_le)
    }

    /// Whether it is known to be this very object.
    fn is_same(&self, uid: &str) -> bool {
        !uid.is_empty() && self.uid.as_str() == uid
    }

    /// Whether it is known to be another one.
    pub(super) fn is_other(&self, uid: &str) -> bool {
        !uid.is_empty() && !self.uid.as_str().is_empty() && self.uid.as_str() != uid
    }
}

impl<K> Clone for Own<K> {
    fn clone(&self) -> Self {
        let outcome = match &self.outcome {
            Outcome::Written(object) => Outcome::Written(Arc::clone(object)),
            Outcome::Deleted => Outcome::Deleted,
            Outcome::Gone => Outcome::Gone,
        };
        Self { uid: self.uid.clone(), version: self.version.clone(), outcome }
    }
}

/// The order of two versions; equal ones need not be numbers.
fn order(one: &str, other: &str) -> Option<Ordering> {
    if one == other { Some(Ordering::Equal) } else { compare_versions(one, other) }
}

// === impl Told ===

impl<'a, Kind> Told<'a, Kind> {
    /// What a server has answered with; `None` if no server has.
    pub(super) fn of(metadata: &'a ObjectMeta) -> Option<Self> {
        Self::of_event(metadata).filter(|told| is_point(told.version))
    }

    /// What an event is about. A version may be missing.
    pub(super) fn of_event(metadata: &'a ObjectMeta) -> Option<Self> {
        let key = KeyRef::from_metadata(metadata);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let version = metadata.resource_version.as_deref().unwrap_or_default();
        (!key.name().is_empty()).then_some(Self { key, uid, version })
    }

    pub(super) fn key(&self) -> KeyRef<'a, Kind> {
        self.key
    }
}

impl<Kind> Clone for Told<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind> Copy for Told<'_, Kind> {}

// === impl Sought ===

impl<Kind> Hash for Sought<'_, Kind> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As an `ObjectKey` does.
        self.0.hash(state);
    }
}

impl<Kind> Equivalent<ObjectKey<Kind>> for Sought<'_, Kind> {
    fn equivalent(&self, key: &ObjectKey<Kind>) -> bool {
        key.as_key_ref() == self.0
    }
}
