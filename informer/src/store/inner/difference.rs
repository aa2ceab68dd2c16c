//! [`Difference`]: the comparison of a full state with the store.
//!
//! It is computed before the write lock is taken, so that readers do not wait while 100,000 objects
//! are compared. The write that follows touches only what has changed.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{Inner, Stamp};
use crate::delta::is_older;
use crate::list_watch::Decoded;
use crate::object::{KeyRef, Object, ResourceVersion};

/// The difference between a full state and the store.
///
/// It is valid while no step is committed: its slots are those of the store at this moment.
pub(in crate::store) struct Difference {
    /// For each object, true if it changes nothing: the store has the same state, or the list
    /// contains a newer one.
    pub(in crate::store) stays: Vec<bool>,
    /// The slots of the objects that no longer exist, in descending order: a removal moves the last
    /// object, which is not one of the others.
    pub(in crate::store) gone: Vec<u32>,
}

// === impl Inner ===

impl<K: Object> Inner<K> {
    /// Returns the difference between the full state at `version` and the store. If the version
    /// goes back, the server has another history, in which the same version of an object may be a
    /// different state.
    ///
    /// Takes time in proportion to the objects of the list and of the store, and changes nothing.
    ///
    /// An object that the list contains twice counts once, in its newer state.
    pub(in crate::store) fn difference(
        &self,
        objects: &[Decoded<K>],
        version: &ResourceVersion,
    ) -> Difference {
        let own = self.resource_version.as_ref();
        let back = own.is_some_and(|own| version.compare(own) == Some(Ordering::Less));
        let mut stays = superseded(objects, &self.hasher);
        let mut seen = vec![false; self.entries.len()];
        for (object, stays) in objects.iter().zip(&mut stays) {
            let Some(slot) = self.find(KeyRef::from_metadata(object.metadata())) else { continue };
            seen[slot as usize] = true;
            *stays |= !back && self.is_unchanged(slot, object);
        }
        let gone = (0..).zip(seen).filter(|(_, seen)| !seen).map(|(slot, _)| slot);
        let mut gone: Vec<u32> = gone.collect();
        gone.reverse();
        Difference { stays, gone }
    }

    /// Returns true if the slot holds this state of the object.
    ///
    /// The stamp answers first. Only if it cannot, the metadata is read.
    fn is_unchanged(&self, slot: u32, object: &Decoded<K>) -> bool {
        let Some(entry) = self.entries.get(slot) else { return false };
        let is_opaque = matches!(object, Decoded::Opaque { .. });
        let stamp = self.slots.get(slot).map(|slot| slot.stamp);
        let is_same = stamp.is_some_and(|own| own.is_same_state(Stamp::new(object.metadata())));
        is_same && entry.is_opaque() == is_opaque || entry.is_unchanged(object)
    }
}

/// Returns, for each object of a full state, true if the list also contains a newer state of it. If
/// the versions cannot be compared, the later entry counts as newer.
///
/// It costs one hash per object. A list with pages can contain an object twice, if the object
/// changed while the pages were read.
fn superseded<K: Object>(objects: &[Decoded<K>], hasher: &RandomState) -> Vec<bool> {
    let key = |place: usize| KeyRef::<K::Kind>::from_metadata(objects[place].metadata());
    let mut superseded = vec![false; objects.len()];
    let mut places = HashTable::with_capacity(objects.len());
    for place in 0..objects.len() {
        let hash = hasher.hash_one(key(place));
        match places.find_mut(hash, |other: &usize| key(*other) == key(place)) {
            None => {
                places.insert_unique(hash, place, |place| hasher.hash_one(key(*place)));
            }
            Some(other) => {
                let loser = if is_older(objects[place].metadata(), objects[*other].metadata()) {
                    place
                } else {
                    std::mem::replace(other, place)
                };
                superseded[loser] = true;
            }
        }
    }
    superseded
}
