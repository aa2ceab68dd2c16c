//! The order in which queued items are handed out. Pure: it stores slot numbers, not items.
//!
//! Without options this is a FIFO ring. With priorities or turns it is [`Ranked`], which keeps its
//! own data about slots, so that a FIFO queue does not pay for it.
//!
//! A slot enters with `push` or `push_again` and leaves with `take_first`; there is no other way
//! out. The state decides which slots are queued, and this module decides only their order.

use std::collections::VecDeque;
use std::num::NonZeroU32;

mod list;
mod ranked;

use self::ranked::Ranked;

/// The priority and the group of an item; together with the time of queueing they determine the
/// order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Higher priorities come first.
    pub(crate) priority: i32,
    /// The hash of the group by which items of one priority take turns; constant for an item.
    pub(crate) dimension: u64,
}

/// The ordering options of a queue that is not FIFO.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranking {
    /// True if items of a higher priority come first.
    pub(crate) by_priority: bool,
    /// If set to `n`, each `n`-th hand-out is the item that has been queued longest.
    pub(crate) oldest_every: Option<NonZeroU32>,
    /// True if the items of one priority take turns by their dimension.
    pub(crate) fair: bool,
}

/// The queued slots, each once, in hand-out order.
///
/// The variant is chosen when the queue is built and never changes.
///
/// The slot numbers come from the state, which reuses the number of a vacant slot. The data of a
/// slot is therefore overwritten by `push`, and kept between `take_first` and `push_again`.
pub(crate) enum Order {
    /// First in, first out; ranks are ignored. Each operation takes constant time.
    Fifo(VecDeque<u32>),
    /// By priority, by turns, or both. Boxed, so that a FIFO queue stays small.
    Ranked(Box<Ranked>),
}

// === impl Order ===

impl Order {
    /// Creates an empty order; FIFO without a ranking.
    pub(crate) fn new(ranking: Option<Ranking>) -> Self {
        match ranking {
            None => Self::Fifo(VecDeque::new()),
            Some(ranking) => Self::Ranked(Box::new(Ranked::new(ranking))),
        }
    }

    /// Returns an empty order with the same options.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => Some(ranked.ranking()),
        })
    }

    /// Returns the number of queued slots.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(ring) => ring.len(),
            Self::Ranked(ranked) => ranked.len(),
        }
    }

    /// Returns true if no slot is queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the slot that is handed out next.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        match self {
            Self::Fifo(ring) => ring.front().copied(),
            Self::Ranked(ranked) => ranked.first(),
        }
    }

    /// Takes out the slot that is handed out next.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<u32> {
        match self {
            Self::Fifo(ring) => ring.pop_front(),
            Self::Ranked(ranked) => ranked.take_first(),
        }
    }

    /// Queues a slot that holds a new item.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, rank: Rank) {
        match self {
            Self::Fifo(ring) => ring.push_back(slot),
            Self::Ranked(ranked) => ranked.push(slot, rank),
        }
    }

    /// Queues a taken slot again, at the priority that was [requested](Self::want) for it. An
    /// `unfinished` slot keeps at least its previous priority.
    pub(crate) fn push_again(&mut self, slot: u32, unfinished: bool) {
        match self {
            Self::Fifo(ring) => ring.push_back(slot),
            Self::Ranked(ranked) => ranked.push_again(slot, unfinished),
        }
    }

    /// Requests a queued slot at this priority. If it is higher than the slot's priority, the slot
    /// moves to the end of the new one; returns the previous priority then.
    pub(crate) fn raise(&mut self, slot: u32, priority: i32) -> Option<i32> {
        match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => ranked.raise(slot, priority),
        }
    }

    /// Requests a taken slot at this priority; the highest one counts when the slot is queued
    /// again. Returns the priority of earlier requests if it was lower.
    pub(crate) fn want(&mut self, slot: u32, priority: i32) -> Option<i32> {
        match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => ranked.want(slot, priority),
        }
    }

    /// Returns the priority that was [requested](Self::want) for a taken slot.
    pub(crate) fn wanted(&self, slot: u32) -> i32 {
        match self {
            Self::Fifo(_) => 0,
            Self::Ranked(ranked) => ranked.wanted(slot),
        }
    }

    /// Returns the rank at which a slot is queued or was taken.
    pub(crate) fn rank(&self, slot: u32) -> Rank {
        match self {
            Self::Fifo(_) => Rank::default(),
            Self::Ranked(ranked) => ranked.rank(slot),
        }
    }

    /// Returns the priority at which a slot is queued or was taken.
    #[inline]
    pub(crate) fn priority(&self, slot: u32) -> i32 {
        match self {
            Self::Fifo(_) => 0,
            Self::Ranked(ranked) => ranked.priority(slot),
        }
    }
}

#[cfg(test)]
mod tests;
