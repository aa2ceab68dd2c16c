//! [`ReflectorStatus`]: the state and the failures of the part of an informer that talks to the
//! server.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::list_watch::{ListError, WatchError};
use crate::object::ResourceVersion;

/// The state of a reflector, the part of an informer that talks to the server, at one moment.
///
/// `last_error` with a growing number of `failures` means that the cache is old. The server's last
/// known version is `resource_version`; the cache's is that of
/// [`InformerStatus`](super::InformerStatus).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// The request that is running.
    pub phase: ReflectorPhase,
    /// Everything up to this version is in the queue. The cache reaches it when the queue is empty.
    pub resource_version: Option<ResourceVersion>,
    /// The version of the last full sync.
    pub last_full_sync: Option<ResourceVersion>,
    /// Full syncs: the initial list, and each relist.
    pub full_syncs: u64,
    /// Consecutive failures since the last success.
    ///
    /// A panic of the list-watch counts as well. The next success sets it to 0.
    pub failures: u64,
    /// The last failure, unless a request has succeeded since.
    pub last_error: Option<Arc<ReflectorError>>,
    /// Objects that were skipped because they have no name.
    pub skipped_nameless: u64,
}

/// The request that a reflector is working on.
///
/// The phases repeat: `Listing` or `WatchListing` first, then `Watching`, and `Waiting` before each
/// request that is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReflectorPhase {
    /// No request: the informer is not started, or is stopped.
    Idle,
    /// Reading the pages of a list.
    Listing,
    /// Reading the initial events of a watch, instead of a list.
    WatchListing,
    /// Following a watch, or opening one.
    Watching,
    /// Waiting for the back-off to pass.
    Waiting {
        /// The time of the next request; `None` if it is beyond the end of time.
        until: Option<Instant>,
    },
}

/// A failed list or watch, or a panic of the [`ListWatch`](crate::list_watch::ListWatch).
///
/// Delivered to [`InformerBuilder::error_handler`](crate::InformerBuilder::error_handler), and kept
/// as [`ReflectorStatus::last_error`]. The informer retries after each of them, without a limit.
///
/// # Examples
///
/// ```
/// use homeostat_informer::status::ReflectorError;
///
/// /// Returns true for an error that an operator has to repair.
/// fn is_permission_missing(error: &ReflectorError) -> bool {
///     match error {
///         ReflectorError::List(error) => error.is_forbidden(),
///         ReflectorError::Watch(error) => error.is_forbidden(),
///         _ => false,
///     }
/// }
/// # let _ = is_permission_missing;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorError {
    /// The list failed.
    #[error(transparent)]
    List(#[from] ListError),
    /// The watch failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The [`ListWatch`](crate::list_watch::ListWatch) panicked, or the decoder that it calls.
    #[error("cannot follow {target}: its ListWatch panicked")]
    Panicked {
        /// The collection that was listed or watched.
        target: Arc<str>,
    },
}

// === impl ReflectorStatus ===

impl fmt::Display for ReflectorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |version: &Option<ResourceVersion>| {
            version.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        let (received, last) = (text(&self.resource_version), text(&self.last_full_sync));
        write!(f, "reflector: {}, received up to resourceVersion {received}, ", self.phase)?;
        write!(f, "full syncs: {}, last at resourceVersion {last}", self.full_syncs)?;
        if self.skipped_nameless > 0 {
            write!(f, ", {} nameless objects skipped", self.skipped_nameless)?;
        }
        if let Some(error) = &self.last_error {
            write!(f, "\n  last error: {error} ({} consecutive failures)", self.failures)?;
        }
        Ok(())
    }
}

// === impl ReflectorPhase ===

impl fmt::Display for ReflectorPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Listing => f.write_str("listing"),
            Self::WatchListing => f.write_str("listing by watch"),
            Self::Watching => f.write_str("watching"),
            Self::Waiting { until: Some(until) } => {
                write!(f, "retries in {:?}", until.saturating_duration_since(Instant::now()))
            }
            Self::Waiting { until: None } => f.write_str("never retries"),
        }
    }
}
