//! [`Record`]: the members of a `Lease`, as the election reads and writes them.

use std::time::Duration;

use jiff::Timestamp;

/// The members of a `Lease` that the election reads and writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The holder's identity; empty after a release.
    pub(crate) holder: String,
    /// Seconds after a renewal during which other candidates wait. Another party may have written
    /// any number.
    pub(crate) lease_seconds: i32,
    /// Time at which the holder acquired the lease, on the holder's clock. Not used for decisions.
    pub(crate) acquired: Option<Timestamp>,
    /// Time of the last renewal, on the holder's clock. A change shows that the holder lives; the
    /// value is never compared with this machine's clock.
    pub(crate) renewed: Option<Timestamp>,
    /// Number of times that the holder changed.
    pub(crate) transitions: i32,
}

/// A lease as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The members that the election knows.
    pub(crate) record: Record,
    /// The `resourceVersion`: a write that replaces another version is a conflict.
    pub(crate) version: String,
}

/// Returns the whole seconds, rounded up: other candidates must not wait for less than the
/// configured duration.
pub(super) fn seconds(duration: Duration) -> i32 {
    let whole = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    i32::try_from(whole).unwrap_or(i32::MAX)
}
