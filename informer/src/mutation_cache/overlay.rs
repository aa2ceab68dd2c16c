//! [`Overlay`]: the writes that the store may not have yet.
//!
//! It is pure: the caller passes the time and the version that the store has reached.
//!
//! A write is in one of three states, see [`Write`]. It leaves when the store reaches its
//! version, when an event shows a later state, when a newer write of the same object replaces it,
//! or when it expires or the overlay is full. Only the last two are counted as forgotten.
//!
//! ```text
//!             put                    prune: version reached
//!  (none) ─────────▶ Written ──────────────────────────────▶ (none)
//!     │  put          │   is_there: a later state was seen ──▶ (none)
//!     ├────────────▶ Deleted ── is_gone, or the store lost it ─▶ (none)
//!     │  is_gone
//!     └────────────▶ Gone ───── prune: version reached ────────▶ (none)
//! ```
//!
//! Each state also ends by expiry and by eviction. All decisions compare versions of one server. A
//! written state whose version has no order with that of the store never hides it, because an old
//! write that hides a newer object is worse than a late one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use tokio::time::Instant;

use super::write::{ObjectVersion, Write};
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion};

/// The writes, at most one for each key, in the order in which they were reported.
///
/// `places` and `order` hold the same keys. Each method that removes a write moves it to the
/// caller's [`Garbage`].
pub(super) struct Overlay<K: Object> {
    /// The time from a write to its expiry.
    ttl: Duration,
    /// The maximum number of writes; 0 turns the overlay off.
    capacity: usize,
    places: HashMap<ObjectKey<K::Kind>, Place<K>, RandomState>,
    /// The keys by the sequence number of their writes: the oldest first, which is also the first
    /// to expire.
    order: BTreeMap<u64, ObjectKey<K::Kind>>,
    /// The sequence number of the next write. Never decreases.
    next: u64,
    /// The time at which a write that is added now expires; `None` means never.
    expires: Option<Instant>,
    /// The version that the store had reached at the last `prune`.
    reached: Option<ResourceVersion>,
    /// Writes that were removed for lack of room or by their age. A deletion that only an event
    /// reported does not count.
    forgotten: u64,
}

/// A write, its place in the order, and its expiry.
struct Place<K> {
    write: Write<K>,
    /// The key of this write in `order`.
    number: u64,
    /// `None` means never.
    expires: Option<Instant>,
}

/// Removed writes, which the caller drops without a lock: `Drop` of an object is the author's code.
pub(super) type Garbage<K> = Vec<Write<K>>;

/// A key for lookups that allocates nothing.
struct LookupKey<'a, Kind>(KeyRef<'a, Kind>);

// === impl Overlay ===

impl<K: Object> Overlay<K> {
    /// Creates an empty overlay. A capacity of 0 turns it off: `put` keeps nothing.
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

    /// Returns true if reads can skip the overlay.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the number of writes, at most the capacity.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of writes that left before the store reached them.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Removes the writes that the store has reached and those that have expired.
    ///
    /// Must be called first in each operation, with the version that the store has at that moment.
    /// If that version went back, the store follows another history (a restored server), and every
    /// write is removed.
    ///
    /// It costs one pass over all writes if the store's version has changed since the last call,
    /// and a look at the oldest write otherwise.
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
            let over = self.places.extract_if(|_, place| back || place.write.is_reached(reached));
            for (_, place) in over {
                self.order.remove(&place.number);
                garbage.push(place.write);
            }
            self.reached = Some(reached.clone());
        }
        while let Some((_, key)) = self.order.first_key_value() {
            let expires = self.places.get(key).and_then(|place| place.expires);
            if expires.is_none_or(|expires| now < expires) {
                break;
            }
            self.evict_oldest(garbage);
        }
    }

    /// Adds a write, unless a newer state of the object is known.
    ///
    /// A write that loses is garbage, not an error: two tasks may report writes of one object in
    /// any order.
    pub(super) fn put(
        &mut self,
        key: ObjectKey<K::Kind>,
        write: Write<K>,
        garbage: &mut Garbage<K>,
    ) {
        let is_late = self.reached.as_ref().is_some_and(|reached| write.is_reached(reached));
        let old = self.places.get(&key).map(|place| &place.write);
        if is_late || self.capacity == 0 || old.is_some_and(|old| !write.replaces(old)) {
            garbage.push(write);
            return;
        }
        self.remove(key.as_key_ref(), garbage);
        while self.places.len() >= self.capacity {
            self.evict_oldest(garbage);
        }
        let number = self.next;
        self.next += 1;
        self.order.insert(number, key.clone());
        self.places.insert(key, Place { write, number, expires: self.expires });
    }

    /// Returns the write for `key`. `is_there` is `true` if the store has an object with that key,
    /// decoded or opaque.
    ///
    /// The own deletion of an object has no version of its own. It ends when the store, having
    /// reached the last known version of the object, does not have the object.
    pub(super) fn look(
        &mut self,
        key: KeyRef<'_, K::Kind>,
        is_there: bool,
        garbage: &mut Garbage<K>,
    ) -> Option<Write<K>> {
        let write = &self.places.get(&LookupKey(key))?.write;
        if !is_there && write.is_seen_gone(self.reached.as_ref()) {
            self.remove(key, garbage);
            return None;
        }
        Some(write.clone())
    }

    /// Returns all writes in the order in which they were reported.
    ///
    /// It clones one `Arc` per write.
    pub(super) fn all(&self) -> impl Iterator<Item = (KeyRef<'_, K::Kind>, Write<K>)> {
        self.order.values().filter_map(|key| {
            self.places.get(key).map(|place| (key.as_key_ref(), place.write.clone()))
        })
    }

    /// Handles an event that shows the object in this state.
    ///
    /// A state of the object that is at least as new as the write makes the write superfluous.
    pub(super) fn is_there(&mut self, seen: &ObjectVersion<'_, K::Kind>, garbage: &mut Garbage<K>) {
        if self.write_for(seen.key()).is_some_and(|write| write.is_over_with(seen)) {
            self.remove(seen.key(), garbage);
        }
    }

    /// Handles an event that shows the deletion of the object.
    ///
    /// With a coalescing queue the store may not have reached that version. An older write of the
    /// object may still be reported, so the deletion is remembered until then.
    ///
    /// The remembered deletion has the version of the event. It leaves when the store reaches that
    /// version.
    pub(super) fn is_gone(&mut self, seen: &ObjectVersion<'_, K::Kind>, garbage: &mut Garbage<K>) {
        if self.write_for(seen.key()).is_some_and(|write| write.is_over_without(seen)) {
            self.remove(seen.key(), garbage);
        }
        if seen.is_ahead_of(self.reached.as_ref()) {
            self.put(seen.key().to_key(), Write::gone(seen), garbage);
        }
    }

    /// Returns the write of a key without a change of its place.
    fn write_for(&self, key: KeyRef<'_, K::Kind>) -> Option<&Write<K>> {
        self.places.get(&LookupKey(key)).map(|place| &place.write)
    }

    /// Removes the write of a key, if there is one, from both maps.
    fn remove(&mut self, key: KeyRef<'_, K::Kind>, garbage: &mut Garbage<K>) {
        if let Some(place) = self.places.remove(&LookupKey(key)) {
            self.order.remove(&place.number);
            garbage.push(place.write);
        }
    }

    /// Removes the write that was reported first, and counts it as forgotten.
    ///
    /// The order is that of the reports, so that the write with the least time left goes first.
    fn evict_oldest(&mut self, garbage: &mut Garbage<K>) {
        if let Some((_, key)) = self.order.pop_first()
            && let Some(place) = self.places.remove(&key)
        {
            self.forgotten += u64::from(place.write.is_reported());
            garbage.push(place.write);
        }
    }
}

// === impl LookupKey ===

impl<Kind> Hash for LookupKey<'_, Kind> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hashes like `ObjectKey`.
        self.0.hash(state);
    }
}

impl<Kind> Equivalent<ObjectKey<Kind>> for LookupKey<'_, Kind> {
    fn equivalent(&self, key: &ObjectKey<Kind>) -> bool {
        key.as_key_ref() == self.0
    }
}
