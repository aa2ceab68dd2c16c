//! What is asked of the queue about an item.

use crate::order::Rank;

/// Why an item is in the queue, of several reasons the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It was added.
    Added,
    /// It was added with a delay.
    Delayed,
    /// It has failed and is tried again.
    RateLimited,
    /// A worker dropped it without finishing it.
    GivenBack,
}

/// That an item shall be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) rank: Rank,
    pub(crate) reason: Reason,
}
