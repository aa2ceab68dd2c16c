//! What a client sees: the present, or the past of a server that has fallen behind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::server::ClientName;

/// How far in the past a read is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// So many revisions ago.
    Revisions(u64),
    /// So long ago.
    Time(Duration),
}

/// A second API server on the same store, whose watch cache has fallen behind; made by
/// [`ApiServer::lagging_view`](crate::ApiServer::lagging_view).
///
/// A client that is moved to it reads what the cache holds: watches, and lists and gets that say which resourceVersion
/// is enough. Reads that say nothing, and all writes, go to the store, which both servers share. It stays where it is
/// until it is told to go on.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) revision: Arc<AtomicU64>,
    pub(crate) changed: Arc<tokio::sync::Notify>,
}

/// Who a request comes from, and what its answer may know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    pub(crate) client: Option<ClientName>,
    pub(crate) view: Option<View>,
    pub(crate) lag: Option<Lag>,
}

// === impl View ===

impl View {
    /// The last revision that it knows.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// It learns of everything up to this revision. It never forgets: an older one changes nothing.
    pub fn advance_to(&self, revision: u64) {
        self.revision.fetch_max(revision, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// It catches up, and lags no more.
    pub fn catch_up(&self) {
        self.advance_to(u64::MAX);
    }
}

// === impl Sight ===

impl Sight {
    /// The newest revision that the watch cache shows, when the store is at `now`.
    pub(crate) fn cached(&self, now: u64) -> u64 {
        self.view.as_ref().map_or(now, |view| view.revision().min(now))
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Revisions(revisions) => write!(f, "{revisions} revisions ago"),
            Self::Time(time) => write!(f, "{time:?} ago"),
        }
    }
}
