//! Which slots have which value: the lists behind an index.
//!
//! Values are told apart by their hash and their address, never compared: comparing them is the author's code, and
//! this is changed under a lock. Who stages values compares them beforehand, and shares what is equal.

use std::{any::Any, sync::Arc};

use hashbrown::HashTable;

/// What is taken out under a lock, to be dropped after it.
pub(crate) type Garbage = Vec<Arc<dyn Any + Send + Sync>>;

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
    places: Vec<Places>,
}

/// A value to be posted.
pub(crate) struct Posted<V> {
    /// Shared with the list of this value, if there is one.
    pub(crate) value: Arc<V>,
    pub(crate) hash: u64,
    /// Where that list was when somebody looked.
    pub(crate) list: Option<u32>,
}

struct List<V> {
    /// `None` while the list waits to be reused.
    value: Option<Arc<V>>,
    hash: u64,
    slots: Vec<u32>,
}

/// That a slot is in a list, and where there.
#[derive(Clone, Copy)]
struct Place {
    list: u32,
    position: u32,
}

/// The places of one slot. Nearly all have one.
enum Places {
    None,
    One(Place),
    Many(Vec<Place>),
}

// === impl Postings ===

impl<V: Send + Sync + 'static> Postings<V> {
    pub(crate) fn new() -> Self {
        Self { table: HashTable::new(), lists: Vec::new(), free: Vec::new(), places: Vec::new() }
    }

    /// The lists whose values have this hash: the number, the value and the slots of each.
    pub(crate) fn lists(&self, hash: u64) -> impl Iterator<Item = (u32, &Arc<V>, &[u32])> {
        self.table.iter_hash(hash).filter_map(move |number| {
            let list = &self.lists[*number as usize];
            let value = list.value.as_ref().filter(|_| list.hash == hash)?;
            Some((*number, value, list.slots.as_slice()))
        })
    }

    /// The values that some slot has.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<V>> {
        self.lists.iter().filter_map(|list| list.value.as_ref())
    }

    /// Gives a slot these values in place of those that it had. The space in `values` is left for reuse.
    pub(crate) fn set(&mut self, slot: u32, values: &mut Vec<Posted<V>>, garbage: &mut Garbage) {
        if let ([value], [place]) = (values.as_slice(), self.places(slot)) {
            // Nearly always an update leaves the one value as it was.
            if self.lists[place.list as usize].holds(&value.value) {
                values.clear();
                return;
            }
        }
        self.remove(slot, garbage);
        for value in values.drain(..) {
            self.add(slot, value);
        }
    }

    /// Takes all values from a slot.
    pub(crate) fn remove(&mut self, slot: u32, garbage: &mut Garbage) {
        let Some(places) = self.places.get_mut(slot as usize) else { return };
        for place in std::mem::replace(places, Places::None).as_slice() {
            self.unlink(*place, garbage);
        }
    }

    fn places(&self, slot: u32) -> &[Place] {
        self.places.get(slot as usize).map_or(&[], Places::as_slice)
    }

    fn add(&mut self, slot: u32, value: Posted<V>) {
        let list = self.list_of(value);
        if self.places(slot).iter().any(|place| place.list == list) {
            return;
        }
        let slots = &mut self.lists[list as usize].slots;
        let position = u32::try_from(slots.len()).expect("there are fewer slots than 2^32");
        slots.push(slot);
        if self.places.len() <= slot as usize {
            self.places.resize_with(slot as usize + 1, || Places::None);
        }
        self.places[slot as usize].push(Place { list, position });
    }

    /// The list of this value, made if there is none.
    fn list_of(&mut self, posted: Posted<V>) -> u32 {
        let Self { table, lists, free, .. } = self;
        let Posted { value, hash, list } = posted;
        let is_its = |list: &u32| lists.get(*list as usize).is_some_and(|list| list.holds(&value));
        let known = list.filter(is_its).or_else(|| table.find(hash, is_its).copied());
        if let Some(list) = known {
            return list;
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
    fn unlink(&mut self, place: Place, garbage: &mut Garbage) {
        let list = &mut self.lists[place.list as usize];
        list.slots.swap_remove(place.position as usize);
        if let Some(moved) = list.slots.get(place.position as usize) {
            let mut places = self.places[*moved as usize].as_mut_slice().iter_mut();
            if let Some(other) = places.find(|other| other.list == place.list) {
                other.position = place.position;
            }
        }
        if list.slots.is_empty() {
            garbage.extend(list.value.take().map(|value| value as Arc<dyn Any + Send + Sync>));
            list.slots.shrink_to(8);
            let hash = list.hash;
            if let Ok(entry) = self.table.find_entry(hash, |list| *list == place.list) {
                entry.remove();
            }
            self.free.push(place.list);
        }
    }
}

// === impl List ===

impl<V> List<V> {
    fn holds(&self, value: &Arc<V>) -> bool {
        self.value.as_ref().is_some_and(|own| Arc::ptr_eq(own, value))
    }
}

// === impl Places ===

impl Places {
    fn as_slice(&self) -> &[Place] {
        match self {
            Self::None => &[],
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(places) => places,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Place] {
        match self {
            Self::None => &mut [],
            Self::One(place) => std::slice::from_mut(place),
            Self::Many(places) => places,
        }
    }

    fn push(&mut self, place: Place) {
        match self {
            Self::None => *self = Self::One(place),
            Self::One(first) => *self = Self::Many(vec![*first, place]),
            Self::Many(places) => places.push(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts letters; the hash of a letter is its first byte, that of `x` and `y` the same.
    struct Letters {
        postings: Postings<char>,
        known: Vec<Arc<char>>,
        garbage: Garbage,
    }

    impl Letters {
        fn new() -> Self {
            Self { postings: Postings::new(), known: Vec::new(), garbage: Vec::new() }
        }

        fn hash(letter: char) -> u64 {
            if letter == 'y' { u64::from('x') } else { u64::from(letter) }
        }

        fn set(&mut self, slot: u32, letters: &str) {
            let mut values: Vec<_> = letters.chars().map(|letter| self.posted(letter)).collect();
            self.postings.set(slot, &mut values, &mut self.garbage);
        }

        fn posted(&mut self, letter: char) -> Posted<char> {
            let known = self.known.iter().find(|known| ***known == letter).cloned();
            let value = known.unwrap_or_else(|| {
                self.known.push(Arc::new(letter));
                Arc::clone(&self.known[self.known.len() - 1])
            });
            Posted { value, hash: Self::hash(letter), list: None }
        }

        fn get(&self, letter: char) -> Vec<u32> {
            let lists = self.postings.lists(Self::hash(letter));
            lists
                .filter(|(_, own, _)| ***own == letter)
                .flat_map(|(.., slots)| slots.to_vec())
                .collect()
        }
    }

    #[test]
    fn slot_is_found_by_each_of_its_values_once() {
        let mut letters = Letters::new();
        letters.set(3, "aba");
        letters.set(5, "b");
        assert_eq!(
            (letters.get('a'), letters.get('b'), letters.get('c')),
            (vec![3], vec![3, 5], vec![])
        );
    }

    #[test]
    fn values_of_one_hash_are_kept_apart() {
        let mut letters = Letters::new();
        letters.set(1, "x");
        letters.set(2, "y");
        letters.set(3, "xy");
        assert_eq!((letters.get('x'), letters.get('y')), (vec![1, 3], vec![2, 3]));
        letters.set(3, "y");
        assert_eq!((letters.get('x'), letters.get('y')), (vec![1], vec![2, 3]));
    }

    #[test]
    fn stale_hint_finds_the_right_list() {
        let mut letters = Letters::new();
        letters.set(1, "a");
        let hint = letters.postings.lists(Letters::hash('a')).next().map(|(list, ..)| list);
        let mut late = vec![Posted { list: hint, ..letters.posted('a') }];
        letters.set(1, "b");
        letters.set(2, "c");
        letters.postings.set(3, &mut late, &mut letters.garbage);
        assert_eq!(
            (letters.get('a'), letters.get('b'), letters.get('c')),
            (vec![3], vec![1], vec![2])
        );
    }

    #[test]
    fn values_that_nobody_has_are_forgotten_and_their_space_reused() {
        let mut letters = Letters::new();
        for slot in 0..100 {
            letters.set(slot, "a");
        }
        for slot in 0..100 {
            letters.set(slot, "b");
        }
        assert_eq!(letters.postings.values().map(|value| **value).collect::<String>(), "b");
        letters.postings.remove(0, &mut letters.garbage);
        assert_eq!(letters.get('b').len(), 99);
        for slot in 0..100 {
            letters.postings.remove(slot, &mut letters.garbage);
        }
        let Letters { postings, garbage, .. } = letters;
        assert_eq!(
            (postings.values().count(), postings.table.len(), postings.lists.len()),
            (0, 0, 2)
        );
        assert_eq!(garbage.len(), 2, "each value is handed out when nobody has it any more");
    }
}
