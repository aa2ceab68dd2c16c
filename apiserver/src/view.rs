//! The revision that a client sees: the present one, or that of a server that lags behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_faults::ClientName;

use crate::changes::Changes;
use crate::storage::Lag;

/// A second API server on the same store, whose watch cache lags behind; made by
/// [`ApiServer::lagging_view`](crate::ApiServer::lagging_view).
///
/// A client that was moved to it reads from the watch cache: watches, and lists and gets that state
/// which resourceVersion is enough. Reads without a resourceVersion, and all writes, go to the
/// store, which both servers share. The cache stays at its revision until
/// [`advance_to`](Self::advance_to) or [`catch_up`](Self::catch_up).
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::ApiServer;
///
/// let server = ApiServer::new();
/// let lagging = server.lagging_view();
/// server.move_client("my-controller", &lagging);
/// server.advance_revision(10);
/// lagging.advance_to(lagging.revision() + 5);
/// lagging.catch_up();
/// ```
#[derive(Debug, Clone)]
pub struct LaggingView {
    pub(crate) revision: Arc<AtomicU64>,
    pub(crate) changes: Arc<Changes>,
}

/// The client of a request, and the revisions that its reply may show.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientView {
    pub(crate) client: Option<ClientName>,
    pub(crate) view: Option<LaggingView>,
    pub(crate) lag: Option<Lag>,
}

// === impl LaggingView ===

impl LaggingView {
    /// Returns the newest revision that this server shows.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// Advances the watch cache to this revision. An older revision changes nothing.
    pub fn advance_to(&self, revision: u64) {
        self.revision.fetch_max(revision, Ordering::SeqCst);
        self.changes.notify_all();
    }

    /// Advances the watch cache to every later revision: the server no longer lags.
    pub fn catch_up(&self) {
        self.advance_to(u64::MAX);
    }
}

// === impl ClientView ===

impl ClientView {
    /// Returns the newest revision that the watch cache shows, when the store is at `now`.
    pub(crate) fn cached(&self, now: u64) -> u64 {
        self.view.as_ref().map_or(now, |view| view.revision().min(now))
    }
}
