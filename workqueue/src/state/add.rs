//! The steps that add an item.
//!
//! An add has four outcomes, by the phase of the slot:
//!
//! | Phase | Outcome |
//! |---|---|
//! | no slot | queued in a new or vacant slot |
//! | `Queued` | merged; its priority rises if the new one is higher |
//! | `Processing` | remembered: the slot is `Dirty` and is queued by `done` |
//! | `Dirty` | merged with the earlier request since the hand-out |
//! | `HandedBack` | ignored: the queue is shut down, and the drain has returned the item |

use crate::cause::Merge;
use crate::request::Request;

use super::State;
use super::slot::{Added, Phase, Place, Slot};

/// The result of a lookup: the item's hash, and its slot if it has one.
///
/// Valid until the next change of the state: the caller looks up and adds under one lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    hash: u64,
    slot: Option<u32>,
}

// === impl State ===

impl<T: Eq, C> State<T, C> {
    /// Looks an item up; `hash` is its hash, always by the same hasher.
    #[inline]
    pub(crate) fn find(&self, hash: u64, item: &T) -> Found {
        let found = self.index.find(hash, |&number| {
            let slot = &self.slots[number as usize];
            // Compares the hash first, because comparing items is slower.
            slot.hash == hash && slot.item.as_ref() == Some(item)
        });
        Found { hash, slot: found.copied() }
    }

    /// Returns true if a worker gets the item again: it is queued, or it was added while held.
    pub(crate) fn is_requested(&self, hash: u64, item: &T) -> bool {
        let slot = self.find(hash, item).slot.and_then(|number| self.slots.get(number as usize));
        let place = slot.and_then(|slot| slot.phase.place());
        matches!(place, Some(Place::Queued | Place::Held { again: true }))
    }
}

// === impl Found ===

impl Found {
    /// Returns true if the item is queued or held.
    pub(crate) fn is_known(self) -> bool {
        self.slot.is_some()
    }
}

impl<T, C> State<T, C> {
    /// Adds the item that the caller has just [looked up](Self::find).
    ///
    /// The lookup is a separate method because `Eq` may panic: the caller does all comparisons
    /// before any change.
    ///
    /// The count of returns is the larger of both, so that a delayed item that was given back keeps
    /// its count when an event adds it early.
    #[inline]
    pub(crate) fn add(
        &mut self,
        found: Found,
        item: T,
        request: Request<C>,
        merge: &mut Merge<C>,
    ) -> Added<T, C> {
        let Some(number) = found.slot else {
            return Added::Queued(self.insert(found.hash, item, request));
        };
        let Request { rank, cause, given_back, .. } = request;
        let slot = &mut self.slots[number as usize];
        slot.given_back = slot.given_back.max(given_back);
        let phase = &mut slot.phase;
        let raised = match phase {
            Phase::Queued(earlier) => {
                merge.merge(earlier, cause);
                self.order.raise(number, rank.priority)
            }
            Phase::Dirty(earlier) => {
                merge.merge(earlier, cause);
                self.order.want(number, rank.priority)
            }
            Phase::Processing => {
                *phase = Phase::Dirty(cause);
                self.order.want(number, rank.priority);
                return Added::Wanted(number, item);
            }
            Phase::HandedBack | Phase::Vacant => return Added::Ignored(item, cause),
        };
        match raised {
            Some(from) => Added::Raised { from, item },
            None => Added::Merged(item),
        }
    }

    /// Puts a new item into a vacant slot, or a new one, and queues it.
    ///
    /// Vacant slots come first, so that the number of slots is the largest number of items in use
    /// at one time since the last `trim`.
    #[inline]
    fn insert(&mut self, hash: u64, item: T, request: Request<C>) -> u32 {
        let Request { rank, cause, given_back, .. } = request;
        let slot = Slot { hash, item: Some(item), phase: Phase::Queued(cause), given_back };
        let number = if let Some(number) = self.vacant.pop() {
            self.slots[number as usize] = slot;
            number
        } else {
            let number = u32::try_from(self.slots.len()).expect("memory ends before 2^32 items");
            self.slots.push(slot);
            number
        };
        let slots = &self.slots;
        self.index.insert_unique(hash, number, |&other| slots[other as usize].hash);
        self.peak = self.peak.max(self.index.len());
        self.order.push(number, rank);
        number
    }
}
