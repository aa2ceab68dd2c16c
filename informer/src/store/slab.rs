//! Numbered slots in chunks that are copied on write, so that a snapshot costs a pointer per chunk.

use std::sync::Arc;

/// Slots per chunk. A write that hits a chunk which a snapshot holds copies this many slots: some microseconds. A
/// snapshot copies one pointer per this many slots.
const CHUNK: usize = 128;

/// Values by slot number. Numbers are reused.
pub(crate) struct Slab<T> {
    /// Each chunk has `CHUNK` slots.
    chunks: Vec<Arc<[Option<T>]>>,
    /// Empty slots below `end`, last freed on top.
    free: Vec<u32>,
    /// All slots from here on are empty and not in `free`.
    end: u32,
}

/// The values of a slab at one moment.
pub(crate) struct Frozen<T> {
    chunks: Vec<Arc<[Option<T>]>>,
    len: usize,
}

// === impl Slab ===

impl<T: Clone> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), end: 0 }
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.end as usize - self.free.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.chunks.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref()
    }

    /// Puts a value into an empty slot, and returns its number.
    ///
    /// # Panics
    /// If 2³² values are in the slab.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.end;
            self.end = slot.checked_add(1).expect("fewer objects than 2^32 fit into memory");
            if slot as usize / CHUNK == self.chunks.len() {
                self.chunks.push((0..CHUNK).map(|_| None).collect());
            }
            slot
        });
        *self.slot_mut(slot) = Some(value);
        slot
    }

    /// Replaces the value of a slot, and returns the old one.
    pub(crate) fn replace(&mut self, slot: u32, value: T) -> Option<T> {
        self.slot_mut(slot).replace(value)
    }

    /// Empties a slot, and returns what was in it.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.slot_mut(slot).take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(crate) fn freeze(&self) -> Frozen<T> {
        Frozen { chunks: self.chunks.clone(), len: self.len() }
    }

    fn slot_mut(&mut self, slot: u32) -> &mut Option<T> {
        &mut Arc::make_mut(&mut self.chunks[slot as usize / CHUNK])[slot as usize % CHUNK]
    }
}

// === impl Frozen ===

impl<T> Frozen<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The values with their slot numbers, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.chunks.iter().flat_map(|chunk| chunk.iter());
        (0..).zip(slots).filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }
}

impl<T> Clone for Frozen<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_numbers_are_reused_and_values_stay_put() {
        let mut slab = Slab::new();
        let slots: Vec<_> = (0..300).map(|value| slab.insert(value)).collect();
        assert_eq!(slots, (0..300).collect::<Vec<u32>>());
        assert_eq!((slab.remove(7), slab.remove(7), slab.len()), (Some(7), None, 299));
        assert_eq!((slab.insert(1000), slab.get(7)), (7, Some(&1000)));
        assert_eq!((slab.get(299), slab.get(300), slab.get(9999)), (Some(&299), None, None));
    }

    #[test]
    fn snapshot_stays_as_it_was() {
        let mut slab = Slab::new();
        for value in 0..200 {
            slab.insert(value);
        }
        let frozen = slab.freeze();
        slab.replace(0, -1);
        slab.remove(199);
        slab.insert(-2);
        slab.insert(-3);
        let values: Vec<_> = frozen.iter().collect();
        assert_eq!(frozen.len(), 200);
        assert!(values.iter().all(|(slot, value)| i64::from(*slot) == i64::from(**value)));
        assert_eq!(slab.len(), 201);
    }
}
