//! [`Step`]: the next request of a candidate, and the outcomes of a write.

use super::Record;

/// The next request, or the end of an attempt.
///
/// Each step says which method takes its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Read the lease, then call [`Candidate::read`](super::Candidate::read).
    Read,
    /// Create the lease, then call [`Candidate::written`](super::Candidate::written).
    Create(Record),
    /// Replace the lease that has this version, then call
    /// [`Candidate::written`](super::Candidate::written).
    Replace { record: Record, version: String },
    /// The attempt is over: this candidate leads.
    Leading,
    /// The attempt is over: another candidate leads, or the server did not answer. Try again later.
    Waiting,
    /// The attempt is over, and so is this candidate's leadership.
    Lost(Loss),
}

/// The reason why leadership ended before its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The lease names another holder.
    TakenBy(String),
    /// The lease names this identity, but this candidate did not write it.
    SharedIdentity,
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// The server stored it under this version.
    Stored(String),
    /// The server refused it because the lease has changed: 409 in both its forms, or 404.
    Conflict,
    /// The outcome is unknown, or the server refused it for another reason.
    Failed,
}
