//! A request to hand an item out.
//!
//! Each way to add an item makes one: the caller's terms, plus the rank that the queue computes
//! outside of its lock.

use crate::inspect::Operation;
use crate::order::Rank;

/// The part of a request that the caller gives.
pub(crate) struct Terms<C> {
    /// The priority that the caller passed, or 0. A queue without priorities ignores it.
    pub(crate) priority: i32,
    pub(crate) operation: Operation,
    pub(crate) cause: C,
}

/// A request to hand an item out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<C> {
    /// The priority and the group; 0 and 0 in a FIFO queue.
    pub(crate) rank: Rank,
    /// The method that the caller used; for the snapshot and the retry metric.
    pub(crate) operation: Operation,
    /// The author's reason; `()` in a queue without causes.
    pub(crate) cause: C,
    /// The number of times that the item was given back before this request; 0 unless a give-back
    /// made the request.
    pub(crate) given_back: u32,
}
