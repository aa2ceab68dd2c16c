//! [`Numbers`]: values that keep their number.
//!
//! The lowest free number is used first, so that the vector can shrink at its end.
//!
//! The lists of an index refer to each other by number, which is half the size of a pointer and
//! needs no `unsafe`. A number stays valid while its value exists, because a removal leaves a gap
//! instead of moving others.

use std::collections::BTreeSet;

use super::garbage::shrink;

/// Values by number. A number stays the same until its value is removed or moved.
///
/// Invariant: `free` contains the numbers of all empty places and no other.
pub(super) struct Numbers<T> {
    /// The last one is never `None`.
    values: Vec<Option<T>>,
    /// The numbers of the empty places.
    free: BTreeSet<u32>,
}

// === impl Numbers ===

impl<T> Numbers<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), free: BTreeSet::new() }
    }

    /// Returns the value, or `None` for a free number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)?.as_ref()
    }

    /// Returns the value for a change.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.values.get_mut(number as usize)?.as_mut()
    }

    /// Returns the values by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// Returns the value with the highest number.
    pub(super) fn last(&self) -> Option<&T> {
        self.values.last()?.as_ref()
    }

    /// Adds a value, and returns its number.
    ///
    /// Takes `O(log n)` for the lookup of the lowest free number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop_first() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        u32::try_from(self.values.len() - 1).expect("there are fewer values than 2^32")
    }

    /// Removes a value.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.values.get_mut(number as usize)?.take()?;
        self.free.insert(number);
        self.trim();
        Some(value)
    }

    /// Returns true if more than three quarters of the numbers are free.
    pub(super) fn is_sparse(&self) -> bool {
        self.values.len() > 64 && self.free.len() > self.values.len() / 4 * 3
    }

    /// Moves the last value to the lowest free number. Returns its old number and the new one.
    ///
    /// The caller updates what refers to the old number. Returns `None` if no number is free.
    pub(super) fn move_last(&mut self) -> Option<(u32, u32)> {
        let to = self.free.pop_first()?;
        let from = u32::try_from(self.values.len() - 1).ok()?;
        self.values[to as usize] = self.values[from as usize].take();
        self.free.insert(from);
        self.trim();
        Some((from, to))
    }

    /// Frees the empty places at the end.
    fn trim(&mut self) {
        while self.values.last().is_some_and(Option::is_none) {
            self.values.pop();
        }
        if self.free.last().is_some_and(|last| *last as usize >= self.values.len()) {
            let end = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
            let _beyond = self.free.split_off(&end);
        }
        shrink(&mut self.values);
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.values.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_number_is_used_first() {
        let mut numbers = Numbers::new();
        for value in 0..5 {
            assert_eq!(numbers.insert(value), value);
        }
        assert_eq!(
            (numbers.remove(3), numbers.remove(1), numbers.remove(1)),
            (Some(3), Some(1), None)
        );
        assert_eq!((numbers.insert(6), numbers.insert(7), numbers.insert(8)), (1, 3, 5));
    }

    #[test]
    fn memory_is_freed_although_the_last_value_stays() {
        let mut numbers = Numbers::new();
        for value in 0..10_000_u32 {
            numbers.insert(value);
        }
        for value in 0..9_990 {
            let number = numbers.values.iter().position(|other| *other == Some(value));
            assert_eq!(numbers.remove(u32::try_from(number.unwrap()).unwrap()), Some(value));
            if numbers.is_sparse() {
                numbers.move_last();
            }
        }
        let mut rest: Vec<_> = numbers.iter().copied().collect();
        rest.sort_unstable();
        assert_eq!(rest, (9_990..10_000).collect::<Vec<_>>());
        assert!(numbers.capacity() <= 512, "{} places for 10 values", numbers.capacity());
    }
}
