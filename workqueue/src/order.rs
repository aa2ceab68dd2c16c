//! Which of the queued items is handed out next. Pure: it knows slots by their numbers, not items.
//!
//! Without options this is a ring: first come, first served. With priorities or fairness it is
//! [`Ranked`], which the ring's users do not pay for: what it keeps about a slot, it keeps itself.

use std::collections::VecDeque;
use std::num::NonZeroU32;

mod list;
mod ranked;

use self::ranked::Ranked;

/// What decides when an item is handed out, next to when it was queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Higher comes first.
    pub(crate) priority: i32,
    /// Those of one priority take turns by this; always the same for one item.
    pub(crate) dimension: u64,
}

/// How queued items are ordered, if not first come, first served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranking {
    /// Whether an item that is added at a higher priority comes first.
    pub(crate) by_priority: bool,
    /// Every so many-th hand-out is the item that has been queued longest.
    pub(crate) oldest_every: Option<NonZeroU32>,
    /// Whether the items of one priority take turns by their dimension.
    pub(crate) fair: bool,
}

/// The slots that are queued, each once, in the order in which they are handed out.
pub(crate) enum Order {
    Fifo(VecDeque<u32>),
    Ranked(Box<Ranked>),
}

// === impl Order ===

impl Order {
    pub(crate) fn new(ranking: Option<Ranking>) -> Self {
        match ranking {
            None => Self::Fifo(VecDeque::new()),
            Some(ranking) => Self::Ranked(Box::new(Ranked::new(ranking))),
        }
    }

    /// An empty one of the same kind.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => Some(ranked.ranking()),
        })
    }

    /// How many slots are queued.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(ring) => ring.len(),
            Self::Ranked(ranked) => ranked.len(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot that is handed out next.
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

    /// Queues a slot that has got a new item.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, rank: Rank) {
        match self {
            Self::Fifo(ring) => ring.push_back(slot),
            Self::Ranked(ranked) => ranked.push(slot, rank),
        }
    }

    /// Queues a slot again that was taken: at the priority that was [wanted](Self::want), and, if it was
    /// `unfinished`, at no lower one than it had.
    pub(crate) fn push_again(&mut self, slot: u32, unfinished: bool) {
        match self {
            Self::Fifo(ring) => ring.push_back(slot),
            Self::Ranked(ranked) => ranked.push_again(slot, unfinished),
        }
    }

    /// A queued slot is asked for at this priority: if that is higher, it moves to the end of it, and
    /// the one that it had is returned.
    pub(crate) fn raise(&mut self, slot: u32, priority: i32) -> Option<i32> {
        match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => ranked.raise(slot, priority),
        }
    }

    /// A taken slot is asked for at this priority: of several the highest counts, once it is returned. If
    /// it was asked for before, at a lower one, that is returned.
    pub(crate) fn want(&mut self, slot: u32, priority: i32) -> Option<i32> {
        match self {
            Self::Fifo(_) => None,
            Self::Ranked(ranked) => ranked.want(slot, priority),
        }
    }

    /// The priority at which a taken slot was [wanted](Self::want).
    pub(crate) fn wanted(&self, slot: u32) -> i32 {
        match self {
            Self::Fifo(_) => 0,
            Self::Ranked(ranked) => ranked.wanted(slot),
        }
    }

    /// The priority at which a slot is queued or was taken.
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
