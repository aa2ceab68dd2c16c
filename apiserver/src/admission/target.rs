//! The part of an object that a write is about.

/// The part of the object that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Object,
    Status,
    /// The list that keeps a deleted namespace.
    Finalize,
    /// The resources of what runs.
    Resize,
    /// One member, which no other request writes.
    Part(&'static str),
    /// The complete object, written by the server on behalf of a subresource.
    AllMembers,
}
