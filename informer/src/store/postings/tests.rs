use super::*;

/// Posts letters. The hash of a letter is its code point; `x` and `y` have the same hash.
struct Letters {
    postings: Postings<char, u32>,
    known: Vec<Arc<char>>,
    garbage: Garbage<u32>,
}

impl Letters {
    fn new() -> Self {
        Self { postings: Postings::new(), known: Vec::new(), garbage: Garbage::new() }
    }

    fn hash(letter: char) -> u64 {
        u64::from(if letter == 'y' { 'x' } else { letter })
    }

    /// The entry of a slot holds the number of the slot.
    fn set(&mut self, slot: u32, letters: &str) {
        let mut values: VecDeque<_> = letters.chars().map(|letter| self.posted(letter)).collect();
        let entry = Entry::Fits(Arc::new(slot));
        let count = values.len();
        self.postings.set(slot, Next { values: &mut values, count }, &entry, &mut self.garbage);
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
        let found = lists.filter(|(_, own)| ***own == letter);
        let found: Vec<_> = found.filter_map(|(list, _)| self.postings.found(list)).collect();
        let entries = found.iter().flat_map(|found| found.entries.iter());
        entries.filter_map(|entry| entry.object().map(|slot| **slot)).collect()
    }
}

#[test]
fn slot_is_found_by_each_of_its_values_once() {
    let mut letters = Letters::new();
    letters.set(3, "aba");
    letters.set(5, "b");
    let found = (letters.get('a'), letters.get('b'), letters.get('c'));
    assert_eq!(found, (vec![3], vec![3, 5], vec![]));
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
fn unchanged_values_show_the_new_entry() {
    let mut letters = Letters::new();
    letters.set(1, "ab");
    letters.set(2, "b");
    let mut values = VecDeque::from([letters.posted('a'), letters.posted('b')]);
    let entry = Entry::Fits(Arc::new(100));
    letters.postings.set(1, Next { values: &mut values, count: 2 }, &entry, &mut letters.garbage);
    assert!(values.is_empty());
    assert_eq!((letters.get('a'), letters.get('b')), (vec![100], vec![100, 2]));
    assert_eq!(letters.garbage.entries.len(), 2, "the old entry of each list");
}

#[test]
fn snapshot_of_a_list_is_unchanged_by_later_writes() {
    let mut letters = Letters::new();
    for slot in 0..300 {
        letters.set(slot, "a");
    }
    let list = letters.postings.lists(Letters::hash('a')).next().map(|(list, _)| list).unwrap();
    let found = letters.postings.found(list).unwrap();
    for slot in 0..300 {
        letters.set(slot, "b");
    }
    let slots = found.entries.iter().filter_map(|entry| entry.object().map(|slot| **slot));
    assert!(slots.eq(0..300));
}

#[test]
fn stale_hint_finds_the_right_list() {
    let mut letters = Letters::new();
    letters.set(1, "a");
    let hint = letters.postings.lists(Letters::hash('a')).next().map(|(list, _)| list);
    let mut late = VecDeque::from([Posted { list: hint, ..letters.posted('a') }]);
    let entry = Entry::Fits(Arc::new(3));
    letters.set(1, "b");
    letters.set(2, "c");
    letters.postings.set(3, Next { values: &mut late, count: 1 }, &entry, &mut letters.garbage);
    let found = (letters.get('a'), letters.get('b'), letters.get('c'));
    assert_eq!(found, (vec![3], vec![1], vec![2]));
}

#[test]
fn unused_values_are_removed_and_their_memory_is_freed() {
    let mut letters = Letters::new();
    let value = |slot: u32| char::from_u32('一' as u32 + slot).unwrap_or('?');
    for slot in 0..5000 {
        letters.set(slot, &format!("a{}", value(slot)));
    }
    assert_eq!(letters.postings.values().count(), 5001);
    for slot in (10..5000).rev() {
        letters.postings.remove(slot, &mut letters.garbage);
        letters.postings.truncate(slot);
    }
    assert_eq!(letters.get('a'), (0..10).collect::<Vec<_>>());
    assert!((0..10).all(|slot| letters.get(value(slot)) == [slot]));
    assert_eq!(letters.postings.values().count(), 11);
    assert_eq!(letters.garbage.values.len(), 4990, "each value is returned once no slot has it");
    assert!(letters.postings.capacity() < 1000, "{} places", letters.postings.capacity());
}

#[test]
fn last_list_moves_although_it_has_the_highest_number() {
    let mut letters = Letters::new();
    let value = |slot: u32| char::from_u32('一' as u32 + slot).unwrap_or('?');
    for slot in 0..5000 {
        letters.set(slot, &value(slot).to_string());
    }
    for slot in 0..4990 {
        letters.postings.remove(slot, &mut letters.garbage);
    }
    assert!((4990..5000).all(|slot| letters.get(value(slot)) == [slot]));
    assert!(letters.postings.lists.capacity() < 1000, "{}", letters.postings.lists.capacity());
    for slot in 4990..5000 {
        letters.set(slot, "b");
    }
    assert_eq!(letters.get('b'), (4990..5000).collect::<Vec<_>>());
    assert_eq!(letters.postings.values().count(), 1);
}

#[test]
fn renumbered_slot_keeps_its_values() {
    let mut letters = Letters::new();
    letters.set(0, "ab");
    letters.set(1, "b");
    letters.set(2, "bc");
    letters.postings.remove(0, &mut letters.garbage);
    letters.postings.renumber(2, 0);
    letters.postings.truncate(2);
    letters.set(0, "c");
    let found = (letters.get('a'), letters.get('b'), letters.get('c'));
    assert_eq!(found, (vec![], vec![1], vec![0]));
    letters.postings.remove(1, &mut letters.garbage);
    assert_eq!(letters.get('b'), [0; 0]);
}

#[test]
fn renumbered_slot_is_found_after_its_neighbour_goes() {
    let mut letters = Letters::new();
    letters.set(0, "a");
    letters.set(1, "b");
    letters.set(2, "b");
    letters.postings.remove(0, &mut letters.garbage);
    letters.postings.renumber(2, 0);
    letters.postings.truncate(2);
    letters.postings.remove(1, &mut letters.garbage);
    assert_eq!(letters.get('b'), [2], "the entry was made for slot 2");
    letters.postings.remove(0, &mut letters.garbage);
    assert_eq!(letters.get('b'), [0; 0]);
}
