//! [`Arrived`]: a new state of an object, and the decision between it and the stored one.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::Entry;
use super::super::stage::Stage;
use super::super::stamp::Stamp;
use super::{Changes, Inner};
use crate::delta::compare_metadata;
use crate::list_watch::Decoded;
use crate::object::{KeyRef, Object};

/// A new state of an object, and the slot of the object if the store has it.
///
/// It is valid until the next change of the store.
struct Arrived<K> {
    object: Decoded<K>,
    stamp: Stamp,
    slot: Option<u32>,
}

// === impl Inner ===

impl<K: Object> Inner<K> {
    /// Applies a state that arrived by watch. It is ignored if a newer state is known.
    ///
    /// The stages have computed the values of this object already. They are committed or skipped
    /// here, exactly once per object, so that stages and objects stay in step.
    pub(in crate::store) fn applied(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let arrived = self.arrived(object);
        // An object that fits now and did not before is a change, although its version is the same.
        let fits_now = || matches!(arrived.object, Decoded::Fits(_)) && self.is_opaque(&arrived);
        let is_old = match self.order(&arrived) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => !fits_now(),
            Some(Ordering::Greater) | None => false,
        };
        if is_old {
            skip(arrived.object, stages, changes);
        } else {
            self.put_arrived(arrived, stages, changes);
        }
    }

    /// Applies a deletion that arrived by watch.
    ///
    /// It is ignored if the store has a newer state: the deletion is of an earlier object of the
    /// same name, or a watch that started again from an old version replays it.
    ///
    /// A deletion of another object of the same name, which is not older than the cached one,
    /// removes the cached object without a final state: its own deletion was missed.
    pub(in crate::store) fn deleted(&mut self, object: Decoded<K>, changes: &mut Changes<K>) {
        let arrived = self.arrived(object);
        let is_older = self.order(&arrived) == Some(Ordering::Less);
        match arrived.slot.filter(|_| !is_older) {
            Some(slot) if self.is_same_object(slot, &arrived) => {
                self.remove(slot, Some(arrived.object), changes);
            }
            Some(slot) => {
                changes.garbage.entries.push(arrived.object.into());
                self.remove(slot, None, changes);
            }
            None => changes.garbage.entries.push(arrived.object.into()),
        }
    }

    /// Applies the state of one object from a list, even if it is older. The cached object itself
    /// changes nothing.
    pub(in crate::store) fn listed(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let current = self.get(KeyRef::from_metadata(object.metadata()));
        let same = match (current, &object) {
            (Some(Entry::Fits(own)), Decoded::Fits(object)) => Arc::ptr_eq(own, object),
            (Some(own), Decoded::Opaque { .. }) => own.is_unchanged(&object),
            _ => false,
        };
        if same {
            skip(object, stages, changes);
        } else {
            self.put(object, stages, changes);
        }
    }

    /// Stores a state that is known to be the newest.
    ///
    /// It is used for lists, whose order decides: the version is not compared.
    pub(in crate::store) fn put(
        &mut self,
        object: Decoded<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let arrived = self.arrived(object);
        self.put_arrived(arrived, stages, changes);
    }

    /// Another object of the same name, with another uid, is removed first. The handlers then
    /// receive `Deleted` for the former object and `Added` for the new one, and need not compare
    /// uids. In client-go they receive one update from the former object to the new one.
    fn put_arrived(
        &mut self,
        arrived: Arrived<K>,
        stages: &mut [Box<dyn Stage<K>>],
        changes: &mut Changes<K>,
    ) {
        let mut slot = arrived.slot;
        if let Some(old) = slot.filter(|slot| !self.is_same_object(*slot, &arrived)) {
            self.remove(old, None, changes);
            slot = None;
        }
        let Arrived { object, stamp, .. } = arrived;
        let slot = match slot {
            Some(slot) => self.update(slot, object, stamp, changes),
            None => self.insert(object, stamp, changes),
        };
        let Some(entry) = self.entries.get(slot) else { return };
        for (stage, (_, table)) in stages.iter_mut().zip(&mut self.tables) {
            stage.commit(&mut **table, slot, entry, &mut changes.garbage);
        }
    }

    /// Looks up the slot of a new state.
    ///
    /// It hashes the key once; the slot is used for all that follows.
    fn arrived(&self, object: Decoded<K>) -> Arrived<K> {
        let metadata = object.metadata();
        let (slot, stamp) = (self.find(KeyRef::from_metadata(metadata)), Stamp::new(metadata));
        Arrived { object, stamp, slot }
    }

    /// Returns the order of a new state and the one that the store has.
    ///
    /// Returns `None` if the store does not have the object, or if the versions cannot be compared.
    /// The stamps decide most cases without a read of the metadata.
    fn order(&self, arrived: &Arrived<K>) -> Option<Ordering> {
        let slot = arrived.slot?;
        let compare =
            || compare_metadata(arrived.object.metadata(), self.entries.get(slot)?.metadata());
        arrived.stamp.order(self.slots.get(slot)?.stamp, compare)
    }

    /// Returns true if the slot holds this object, in any state.
    ///
    /// The uids are compared by their stamps if both have the usual form.
    fn is_same_object(&self, slot: u32, arrived: &Arrived<K>) -> bool {
        let compare =
            || self.entries.get(slot).is_some_and(|entry| entry.is_same_object(&arrived.object));
        let own = self.slots.get(slot).map(|slot| slot.stamp);
        own.is_some_and(|own| own.is_same_object(arrived.stamp, compare))
    }

    /// Returns true if the store has the object and it does not fit its type.
    fn is_opaque(&self, arrived: &Arrived<K>) -> bool {
        arrived.slot.and_then(|slot| self.entries.get(slot)).is_some_and(Entry::is_opaque)
    }
}

/// Drops a state that changes nothing, and its staged values.
fn skip<K: Object>(object: Decoded<K>, stages: &mut [Box<dyn Stage<K>>], changes: &mut Changes<K>) {
    for stage in stages {
        stage.skip(&mut changes.garbage);
    }
    changes.garbage.entries.push(object.into());
}
