//! The times and operations of queued and held slots, for inspection and metrics. Pure.
//!
//! It is separate from the state, so that a queue without metrics and inspection stores no times.
//! Its records are found by slot number, as those of the order are.

use std::time::Duration;

use tokio::time::Instant;

use crate::inspect::Operation;

/// Records when each slot was queued and taken, and by which operation.
///
/// The queue's lock protects it.
pub(super) struct Observer {
    /// Records by slot number; stale for vacant slots.
    slots: Vec<Seen>,
    /// The held slots, each once, in no particular order.
    held: Vec<u32>,
}

/// The record of one slot.
///
/// `asked` becomes stale at the hand-out only if the item is queued again: `released` then replaces
/// it by the time of the pending request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The time and the operation of the request that queued it.
    pub(super) asked: (Instant, Operation),
    /// The time and the operation of the first request since it was taken.
    again: Option<(Instant, Operation)>,
    /// The time at which a worker took it; stale while it is queued.
    pub(super) taken: Instant,
    /// Its position in `held`; stale while it is queued.
    place: usize,
}

// === impl Observer ===

impl Observer {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), held: Vec::new() }
    }

    /// Returns the record of a slot in use.
    pub(super) fn seen(&self, slot: u32) -> Option<&Seen> {
        self.slots.get(slot as usize)
    }

    // Cold, like all methods below, so that the steps of a queue without an observer stay short.

    /// Records that a new item was queued in this slot.
    #[cold]
    pub(super) fn queued(&mut self, slot: u32, operation: Operation, now: Instant) {
        let seen = Seen { asked: (now, operation), again: None, taken: now, place: 0 };
        match self.slots.get_mut(slot as usize) {
            Some(known) => *known = seen,
            // The slots in between are vacant: their records are never read.
            None => self.slots.resize(slot as usize + 1, seen),
        }
    }

    /// Records a request for a held slot.
    #[cold]
    pub(super) fn wanted(&mut self, slot: u32, operation: Operation, now: Instant) {
        if let Some(seen) = self.slots.get_mut(slot as usize) {
            seen.again.get_or_insert((now, operation));
        }
    }

    /// Records that a worker takes a slot. Returns how long it was queued.
    #[cold]
    pub(super) fn taken(&mut self, slot: u32, now: Instant) -> Duration {
        let Some(seen) = self.slots.get_mut(slot as usize) else { return Duration::ZERO };
        seen.taken = now;
        seen.place = self.held.len();
        self.held.push(slot);
        now.saturating_duration_since(seen.asked.0)
    }

    /// Records that a worker returns a slot. Returns how long it was held.
    ///
    /// The last entry of `held` fills the gap, and its record gets the new position.
    #[cold]
    pub(super) fn released(&mut self, slot: u32, now: Instant) -> Duration {
        let Some(&Seen { again, taken, place, .. }) = self.slots.get(slot as usize) else {
            return Duration::ZERO;
        };
        if self.held.get(place) == Some(&slot) {
            self.held.swap_remove(place);
        }
        if let Some(&moved) = self.held.get(place) {
            self.slots[moved as usize].place = place;
        }
        // If the slot is queued again, the reason is a request since it was taken, or else that it
        // was not finished.
        let asked = again.unwrap_or((now, Operation::GiveBack));
        self.slots[slot as usize] = Seen { asked, again: None, taken, place };
        now.saturating_duration_since(taken)
    }

    /// Returns the total time for which the held items are held, and the longest of these times.
    pub(super) fn unfinished(&self, now: Instant) -> (Duration, Duration) {
        let held = self.held.iter().map(|&slot| self.slots[slot as usize].taken);
        let each = held.map(|taken| now.saturating_duration_since(taken));
        each.fold((Duration::ZERO, Duration::ZERO), |(sum, longest), held| {
            (sum.saturating_add(held), longest.max(held))
        })
    }

    /// Returns true if a worker holds an item.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Releases the memory. The caller does this when no item is queued or held and the state
    /// releases its own.
    pub(super) fn trim(&mut self) {
        *self = Self::new();
    }
}
