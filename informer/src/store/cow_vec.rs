//! [`CowVec`]: a vector in copy-on-write chunks. A snapshot copies one pointer per chunk.
//!
//! A reader that lists objects takes a snapshot under the lock and reads it without one. The cost
//! moves to the writer: the first write to a chunk after a snapshot copies that chunk.
//!
//! The vector has no holes, so a snapshot of few values is small however many there were before,
//! and memory is freed as values are removed.
//!
//! | Operation | Cost |
//! |---|---|
//! | `get`, `len` | constant |
//! | `push`, `replace`, `swap_remove` | constant, plus a copy of a chunk after a snapshot |
//! | `freeze` | one pointer per 128 values |
//! | `iter` of a snapshot | one step per value, without a lock |
//!
//! A persistent tree (as in the `imbl` crate) makes snapshots cheaper, but each read follows
//! several pointers; the store reads far more often than it lists.

use std::sync::Arc;
use std::{mem, slice};

use smallvec::SmallVec;

/// The number of values per chunk. A write to a chunk that a snapshot holds copies the chunk, which
/// takes some microseconds. A snapshot copies one pointer per chunk.
const CHUNK: usize = 128;

/// Values by position, from 0 on.
///
/// All chunks are full but the last one. A vector of at most [`CHUNK`] values is one chunk, which
/// grows and shrinks by factors of 2; all further chunks have `CHUNK` places.
pub(crate) struct CowVec<T> {
    chunks: Chunks<T>,
    len: usize,
}

/// The values of a vector at one moment.
///
/// A clone copies one pointer per chunk. While it lives it keeps the values alive that it shows.
///
/// It never changes. Values that were removed from the vector live on until the last snapshot that
/// shows them is dropped, and that drop can run the values' `Drop` on the reader's thread.
pub(crate) struct Frozen<T> {
    chunks: Chunks<T>,
    len: usize,
}

/// The values of a [`Frozen`], by position.
pub(crate) struct Iter<'a, T> {
    chunks: slice::Iter<'a, Chunk<T>>,
    chunk: slice::Iter<'a, Option<T>>,
    left: usize,
}

/// Values, and `None` for each place after the last value.
type Chunk<T> = Arc<[Option<T>]>;

/// Most posting lists have one chunk.
type Chunks<T> = SmallVec<[Chunk<T>; 1]>;

// === impl CowVec ===

impl<T: Clone> CowVec<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: SmallVec::new(), len: 0 }
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of places, used or not.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Returns the value at a position; `None` beyond the end.
    pub(crate) fn get(&self, position: u32) -> Option<&T> {
        let position = position as usize;
        self.chunks.get(position / CHUNK)?.get(position % CHUNK)?.as_ref()
    }

    /// Returns the value at a position, to be changed; `None` beyond the end.
    pub(crate) fn get_mut(&mut self, position: u32) -> Option<&mut T> {
        if position as usize >= self.len {
            return None;
        }
        self.place(position).as_mut()
    }

    /// Adds a value at the end, and returns its position.
    ///
    /// # Panics
    /// If the vector holds 2³² values.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let position = u32::try_from(self.len).expect("fewer than 2^32 values fit into memory");
        let (chunk, place) = (self.len / CHUNK, self.len % CHUNK);
        match self.chunks.get_mut(chunk) {
            None => self.chunks.push(resized(None, if chunk == 0 { 1 } else { CHUNK })),
            Some(chunk) if place == chunk.len() => {
                *chunk = resized(Some(chunk), (place * 2).min(CHUNK));
            }
            Some(_) => {}
        }
        *self.place(position) = Some(value);
        self.len += 1;
        position
    }

    /// Replaces the value at a position, and returns the old one; `None` beyond the end.
    pub(crate) fn replace(&mut self, position: u32, value: T) -> Option<T> {
        if position as usize >= self.len {
            return None;
        }
        self.place(position).replace(value)
    }

    /// Removes the value at a position, and moves the last value there. Returns `None` beyond the
    /// end.
    pub(crate) fn swap_remove(&mut self, position: u32) -> Option<T> {
        if position as usize >= self.len {
            return None;
        }
        self.len -= 1;
        let last = u32::try_from(self.len).expect("a position is less than 2^32");
        let value = self.place(last).take();
        let removed =
            if position == last { value } else { mem::replace(self.place(position), value) };
        self.shrink();
        removed
    }

    /// Returns the values at this moment.
    pub(crate) fn freeze(&self) -> Frozen<T> {
        Frozen { chunks: self.chunks.clone(), len: self.len }
    }

    /// Copies the chunk first if a snapshot holds it.
    ///
    /// Every write goes through this function, so that no write can change a snapshot.
    ///
    /// # Panics
    ///
    /// If there is no chunk for the position; the callers check the length first.
    fn place(&mut self, position: u32) -> &mut Option<T> {
        let position = position as usize;
        &mut Arc::make_mut(&mut self.chunks[position / CHUNK])[position % CHUNK]
    }

    /// Frees the memory that values were removed from.
    ///
    /// A chunk of its own is dropped as soon as it is empty. The first chunk is halved when it is a
    /// quarter full, so that a vector whose length alternates around a power of 2 does not allocate
    /// each time.
    fn shrink(&mut self) {
        let (chunk, place) = (self.len / CHUNK, self.len % CHUNK);
        if place == 0 {
            self.chunks.truncate(chunk);
            if self.chunks.capacity() > 8 * self.chunks.len().max(1) {
                self.chunks.shrink_to_fit();
            }
        } else if let ([first], true) = (self.chunks.as_mut_slice(), chunk == 0)
            && place * 4 <= first.len()
        {
            let places = first.len() / 2;
            *first = resized(Some(first), places);
        }
    }
}

/// Returns a chunk with this number of places. The values of `old` are moved, or cloned if a
/// snapshot holds it.
fn resized<T: Clone>(old: Option<&mut Chunk<T>>, places: usize) -> Chunk<T> {
    let Some(old) = old else { return (0..places).map(|_| None).collect() };
    match Arc::get_mut(old) {
        Some(old) => (0..places).map(|place| old.get_mut(place)?.take()).collect(),
        None => (0..places).map(|place| old.get(place)?.clone()).collect(),
    }
}

// === impl Frozen ===

impl<T> Frozen<T> {
    /// Returns no values. Allocates nothing.
    pub(crate) fn new() -> Self {
        Self { chunks: SmallVec::new(), len: 0 }
    }

    /// Returns these values, in this order.
    ///
    /// All values are in one chunk, whatever their number: a snapshot is never written to.
    pub(crate) fn from_values(values: impl IntoIterator<Item = T>) -> Self {
        let chunk: Chunk<T> = values.into_iter().map(Some).collect();
        let len = chunk.len();
        if len == 0 { Self::new() } else { Self { chunks: SmallVec::from_iter([chunk]), len } }
    }

    /// Returns the values that `keep` selects, in the same order. It is called once for each.
    ///
    /// A chunk of which all values are selected is shared. The others are copied, together with
    /// their neighbours, so that few values need few chunks.
    pub(crate) fn filter(&self, keep: impl Fn(&T) -> bool) -> Self
    where
        T: Clone,
    {
        let mut chunks = Chunks::new();
        let mut copied = Vec::new();
        for chunk in &self.chunks {
            let values = || chunk.iter().map_while(Option::as_ref);
            if let Some(first) = values().position(|value| !keep(value)) {
                let others = values().skip(first + 1).filter(|value| keep(value));
                copied.extend(values().take(first).chain(others).cloned().map(Some));
            } else {
                push_copied(&mut chunks, &mut copied);
                chunks.push(Arc::clone(chunk));
            }
        }
        push_copied(&mut chunks, &mut copied);
        let len = chunks.iter().map(|chunk| chunk.iter().flatten().count()).sum();
        Self { chunks, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the values by position.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        Iter { chunks: self.chunks.iter(), chunk: [].iter(), left: self.len }
    }
}

/// Moves the values, if there are any, to a chunk of their own.
fn push_copied<T>(chunks: &mut Chunks<T>, copied: &mut Vec<Option<T>>) {
    if !copied.is_empty() {
        chunks.push(mem::take(copied).into());
    }
}

impl<T> Clone for Frozen<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

// === impl Iter ===

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    /// Ends at the first place without a value, which is the end of the last chunk.
    fn next(&mut self) -> Option<&'a T> {
        loop {
            // The places after the last value are at the end of the last chunk.
            match self.chunk.next() {
                Some(value) => {
                    let value = value.as_ref()?;
                    self.left -= 1;
                    return Some(value);
                }
                None => self.chunk = self.chunks.next()?.iter(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_value_moves_to_the_place_of_a_removed_one() {
        let mut values = CowVec::new();
        let positions: Vec<_> = (0..300).map(|value| values.push(value)).collect();
        assert_eq!(positions, (0..300).collect::<Vec<u32>>());
        assert_eq!((values.swap_remove(7), values.len()), (Some(7), 299));
        assert_eq!((values.get(7), values.get(299)), (Some(&299), None));
        assert_eq!((values.swap_remove(298), values.swap_remove(298)), (Some(298), None));
        assert_eq!((values.replace(1, -1), values.replace(298, -1)), (Some(1), None));
        assert_eq!((values.push(-2), values.get(9999)), (298, None));
    }

    #[test]
    fn snapshot_is_unchanged_by_later_writes() {
        let mut values = CowVec::new();
        for value in 0..200 {
            values.push(value);
        }
        let frozen = values.freeze();
        values.replace(0, -1);
        values.swap_remove(199);
        values.swap_remove(3);
        values.push(-2);
        assert_eq!(frozen.iter().copied().collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
        assert_eq!((frozen.iter().len(), frozen.len(), values.len()), (200, 200, 199));
    }

    #[test]
    fn snapshot_is_unchanged_while_the_only_chunk_grows_and_shrinks() {
        let mut values = CowVec::new();
        let mut snapshots = Vec::new();
        for value in 0..70 {
            values.push(value);
            snapshots.push(values.freeze());
        }
        while values.len() > 0 {
            values.swap_remove(0);
        }
        for (last, frozen) in snapshots.iter().enumerate() {
            assert!(frozen.iter().copied().eq(0..=last), "{last}");
        }
    }

    #[test]
    fn filter_shares_complete_chunks_and_copies_others_together() {
        let mut values = CowVec::new();
        for value in 0..900 {
            values.push(value);
        }
        let frozen = values.freeze();
        let filtered = |keep: fn(&i32) -> bool| {
            let kept = frozen.filter(keep);
            assert!(kept.iter().eq(frozen.iter().filter(|value| keep(value))));
            assert_eq!(kept.len(), kept.iter().len());
            let shared =
                |chunk: &Chunk<i32>| frozen.chunks.iter().any(|own| Arc::ptr_eq(own, chunk));
            kept.chunks.iter().map(shared).collect::<Vec<_>>()
        };
        assert_eq!(filtered(|_| true), [true; 8]);
        assert_eq!(filtered(|_| false), [false; 0]);
        assert_eq!(filtered(|value| value % 100 == 0), [false]);
        assert_eq!(
            filtered(|value| *value != 300),
            [true, true, false, true, true, true, true, true]
        );
        assert_eq!(filtered(|value| *value < 130 || *value == 899), [true, false]);
    }

    #[test]
    fn memory_is_freed_when_values_are_removed() {
        let mut values = CowVec::new();
        for value in 0..10_000 {
            values.push(value);
        }
        while values.len() > 10 {
            values.swap_remove(0);
        }
        assert!(values.capacity() <= 64, "{} places for 10 values", values.capacity());
        assert!(values.chunks.capacity() <= 8, "{} chunk pointers", values.chunks.capacity());
        while values.len() > 0 {
            values.swap_remove(0);
        }
        assert_eq!(values.capacity(), 0);
    }
}
