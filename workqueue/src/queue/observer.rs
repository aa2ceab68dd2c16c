//! Since when each slot is queued or held, and why: kept only while somebody wants to know. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::request::Reason;

/// What the state does not need to know about its slots.
pub(super) struct Observer {
    /// By the number of the slot; stale for one that is vacant.
    slots: Vec<Seen>,
    /// The slots that are held, each once, in no order.
    held: Vec<u32>,
}

/// What was seen of a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// When it was asked for, and why: what it was queued by.
    pub(super) asked: (Instant, Reason),
    /// The same, while it is held, for its next time.
    again: Option<(Instant, Reason)>,
    /// When it was taken; stale while it is queued.
    pub(super) taken: Instant,
    /// Its place in `held`; stale while it is queued.
    place: usize,
}

// === impl Observer ===

impl Observer {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), held: Vec::new() }
    }

    pub(super) fn seen(&self, slot: u32) -> Option<&Seen> {
        self.slots.get(slot as usize)
    }

    // Cold, as all steps that follow: a queue that nobody observes has short ones for that.

    /// An item that was not known has got this slot.
    #[cold]
    pub(super) fn queued(&mut self, slot: u32, reason: Reason, now: Instant) {
        let seen = Seen { asked: (now, reason), again: None, taken: now, place: 0 };
        match self.slots.get_mut(slot as usize) {
            Some(known) => *known = seen,
            // The slots in between are vacant: what is written there is never read.
            None => self.slots.resize(slot as usize + 1, seen),
        }
    }

    /// A slot that is held is asked for.
    #[cold]
    pub(super) fn wanted(&mut self, slot: u32, reason: Reason, now: Instant) {
        if let Some(seen) = self.slots.get_mut(slot as usize) {
            seen.again.get_or_insert((now, reason));
        }
    }

    /// A worker takes a slot. Returns how long it was queued.
    #[cold]
    pub(super) fn taken(&mut self, slot: u32, now: Instant) -> Duration {
        let Some(seen) = self.slots.get_mut(slot as usize) else { return Duration::ZERO };
        seen.taken = now;
        seen.place = self.held.len();
        self.held.push(slot);
        now.saturating_duration_since(seen.asked.0)
    }

    /// A worker returns a slot. Returns how long it was held.
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
        // If it is queued again, then because it was asked for, or else because it was not finished.
        let asked = again.unwrap_or((now, Reason::GivenBack));
        self.slots[slot as usize] = Seen { asked, again: None, taken, place };
        now.saturating_duration_since(taken)
    }

    /// How long all that is held is held in sum, and how long that which is held longest.
    pub(super) fn unfinished(&self, now: Instant) -> (Duration, Duration) {
        let held = self.held.iter().map(|&slot| self.slots[slot as usize].taken);
        let each = held.map(|taken| now.saturating_duration_since(taken));
        each.fold((Duration::ZERO, Duration::ZERO), |(sum, longest), held| {
            (sum.saturating_add(held), longest.max(held))
        })
    }

    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// To be called when nothing is queued or held and the state gives up its memory.
    pub(super) fn trim(&mut self) {
        *self = Self::new();
    }
}
