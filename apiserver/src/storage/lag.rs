//! The age of the state that a stale read returns.

use std::fmt;
use std::time::Duration;

/// The distance between the present and the state that a stale read returns.
///
/// # Examples
///
/// ```
/// use homeostat_faults::Calls;
/// use homeostat_apiserver::{ApiServer, Lag};
///
/// let server = ApiServer::new();
/// server.stale_reads(Calls::list("pods").by("my-controller"), Lag::Revisions(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// A number of revisions.
    Revisions(u64),
    /// A duration.
    Time(Duration),
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Revisions(revisions) => write!(f, "{revisions} revisions ago"),
            Self::Time(time) => write!(f, "{time:?} ago"),
        }
    }
}
