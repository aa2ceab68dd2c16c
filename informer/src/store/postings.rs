//! Which slots have which value: the lists behind an index.

use std::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Slots by value, and values by slot.
///
/// Nothing here depends on the order of a hash table: equal calls give equal answers, order included.
pub(crate) struct Postings<V> {
    /// Numbers of the lists, by the hash of their value.
    table: HashTable<u32>,
    /// One for each value that some slot has, and empty ones that wait to be reused.
    lists: Vec<List<V>>,
    /// Lists that hold no value.
    free: Vec<u32>,
    /// For each slot, the lists that it is in, each once.
    places: Vec<Vec<Place>>,
    hasher: RandomState,
}

struct List<V> {
    /// `None` while the list waits to be reused.
    value: Option<V>,
    hash: u64,
    slots: Vec<u32>,
}

/// That a slot is in a list, and where there.
#[derive(Clone, Copy)]
struct Place {
    list: u32,
    position: u32,
}

// === impl Postings ===

impl<V: Eq + Hash> Postings<V> {
    pub(crate) fn new() -> Self {
        Self {
            table: HashTable::new(),
            lists: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            hasher: RandomState::default(),
        }
    }

    /// The slots that have this value.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> &[u32]
    where
        V: Borrow<Q>,
    {
        let same = |list: &u32| {
            self.lists[*list as usize].value.as_ref().is_some_and(|own| own.borrow() == value)
        };
        match self.table.find(self.hasher.hash_one(value), same) {
            Some(list) => &self.lists[*list as usize].slots,
            None => &[],
        }
    }

    /// The values that some slot has.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.lists.iter().filter_map(|list| list.value.as_ref())
    }

    /// Gives a slot these values in place of those that it had. The slot's own space in `values` is left for reuse.
    pub(crate) fn set(&mut self, slot: u32, values: &mut Vec<V>) {
        if let ([value], [place]) = (values.as_slice(), self.places(slot)) {
            // Nearly always an update leaves the one value as it was.
            if self.lists[place.list as usize].value.as_ref() == Some(value) {
                values.clear();
                return;
            }
        }
        self.remove(slot);
        for value in values.drain(..) {
            self.add(slot, value);
        }
    }

    /// Takes all values from a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(places) = self.places.get_mut(slot as usize) else { return };
        for place in std::mem::take(places) {
            self.unlink(place);
        }
    }

    fn places(&self, slot: u32) -> &[Place] {
        self.places.get(slot as usize).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, slot: u32, value: V) {
        let list = self.list_of(value);
        if self.places(slot).iter().any(|place| place.list == list) {
            return;
        }
        let slots = &mut self.lists[list as usize].slots;
        let position = u32::try_from(slots.len()).expect("there are fewer slots than 2^32");
        slots.push(slot);
        if self.places.len() <= slot as usize {
            self.places.resize_with(slot as usize + 1, Vec::new);
        }
        self.places[slot as usize].push(Place { list, position });
    }

    /// The list of this value, made if there is none.
    fn list_of(&mut self, value: V) -> u32 {
        let Self { table, lists, free, hasher, .. } = self;
        let hash = hasher.hash_one(&value);
        let same = |list: &u32| lists[*list as usize].value.as_ref() == Some(&value);
        if let Some(list) = table.find(hash, same) {
            return *list;
        }
        let list = free.pop().unwrap_or_else(|| {
            lists.push(List { value: None, hash: 0, slots: Vec::new() });
            u32::try_from(lists.len() - 1).expect("there are fewer values than 2^32")
        });
        lists[list as usize].value = Some(value);
        lists[list as usize].hash = hash;
        table.insert_unique(hash, list, |list| lists[*list as usize].hash);
        list
    }

    /// Takes the slot at this place out of its list; the last one of the list moves there.
    fn unlink(&mut self, place: Place) {
        let list = &mut self.lists[place.list as usize];
        list.slots.swap_remove(place.position as usize);
        if let Some(moved) = list.slots.get(place.position as usize) {
            let mut places = self.places[*moved as usize].iter_mut();
            if let Some(other) = places.find(|other| other.list == place.list) {
                other.position = place.position;
            }
        }
        if list.slots.is_empty() {
            list.value = None;
            list.slots.shrink_to(8);
            let hash = list.hash;
            if let Ok(entry) = self.table.find_entry(hash, |list| *list == place.list) {
                entry.remove();
            }
            self.free.push(place.list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(postings: &mut Postings<&'static str>, slot: u32, values: &[&'static str]) {
        postings.set(slot, &mut values.to_vec());
    }

    #[test]
    fn slot_is_found_by_each_of_its_values_once() {
        let mut postings = Postings::new();
        set(&mut postings, 3, &["a", "b", "a"]);
        set(&mut postings, 5, &["b"]);
        assert_eq!(
            (postings.get("a"), postings.get("b"), postings.get("c")),
            (&[3][..], &[3, 5][..], &[][..])
        );
    }

    #[test]
    fn values_that_nobody_has_are_forgotten_and_their_space_reused() {
        let mut postings = Postings::new();
        for slot in 0..100 {
            set(&mut postings, slot, &["a"]);
        }
        for slot in 0..100 {
            set(&mut postings, slot, &["b"]);
        }
        assert_eq!(postings.values().collect::<Vec<_>>(), [&"b"]);
        postings.remove(0);
        assert_eq!(postings.get("b").len(), 99);
        for slot in 0..100 {
            postings.remove(slot);
        }
        assert_eq!(
            (postings.values().count(), postings.table.len(), postings.lists.len()),
            (0, 0, 2)
        );
    }
}
