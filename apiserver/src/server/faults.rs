//! Faults that only the server itself can carry out: compaction, restarts, restores and stale
//! reads.

use std::fmt;
use std::time::Duration;

use homeostat_faults::{Calls, ClientName, FaultRule, RequestInfo, RequestObject, RuleSet, Verb};

use super::ApiServer;
use crate::api;
use crate::core::Core;
use crate::storage::{Backup, Lag};
use crate::view::LaggingView;

/// A fault of the server itself, injected before or after it processes a request; see
/// [`ApiServer::fault_before`].
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::{ApiServer, ServerFault};
/// use homeostat_faults::Calls;
///
/// let server = ApiServer::new();
/// // The server restarts after the second pod is stored, before the reply is sent.
/// server.fault_after(Calls::create("pods").nth(2), ServerFault::Restart);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerFault {
    /// Compacts the history; see [`ApiServer::compact`].
    Compact,
    /// Drops the history; see [`ApiServer::expire_history`].
    ExpireHistory,
    /// Restarts the server; see [`ApiServer::restart`].
    Restart,
    /// Restores a backup; see [`ApiServer::restore`].
    Restore(Backup),
}

/// The faults of the server on one request.
#[derive(Debug, Default)]
pub(super) struct RequestFaults {
    pub(super) before: Vec<ServerFault>,
    pub(super) after: Vec<ServerFault>,
    pub(super) lag: Option<Lag>,
}

/// The fault of one rule for the server.
#[derive(Debug, Clone)]
pub(crate) enum ServerAction {
    Before(ServerFault),
    After(ServerFault),
    StaleRead(Lag),
}

// === impl ApiServer ===

impl ApiServer {
    /// Drops the older states that lists can show, as a compaction of etcd does: a list at an older
    /// version, and the next page of a list, fail with 410. Watches are not affected: they read the
    /// watch cache, which a compaction does not change. Reads of a client whose watch cache lags
    /// show the present after a compaction: the older states are gone.
    pub fn compact(&self) {
        self.inner.core.compact();
    }

    /// Drops the history: lists and watches from an older version fail with 410. Open watches
    /// continue.
    ///
    /// On a real server this happens to a version that is older than the newest 100 to 102,400
    /// changes of its resource, and to all versions in a restart after a compaction.
    pub fn expire_history(&self) {
        self.inner.core.expire_history();
    }

    /// Restarts the server: stored objects stay, and so do the older states that lists can show.
    /// Open watches end, and no watch can start at an older version.
    pub fn restart(&self) {
        self.restart_slowly(Duration::ZERO);
    }

    /// Restarts the server with a slow watch cache: until `warm_up` has passed, watches, and lists
    /// that accept any resourceVersion, fail with 429.
    pub fn restart_slowly(&self, warm_up: Duration) {
        self.inner.core.restart(warm_up);
    }

    /// Returns a snapshot of all stored objects, for [`restore`](Self::restore).
    pub fn backup(&self) -> Backup {
        self.inner.core.backup()
    }

    /// Restores a snapshot, as etcd does from a backup: versions go back too and are used again for
    /// other writes. Open watches end. A watch that starts at a future version sends nothing until
    /// the server reaches it.
    pub fn restore(&self, backup: &Backup) {
        self.inner.core.restore(backup);
        api::reinstall_definitions(&self.inner.core);
    }

    /// Increases the revision without a write to any served resource.
    pub fn advance_revision(&self, revisions: u64) {
        self.inner.core.skip(revisions);
    }

    /// Sends a bookmark to every watch that accepts them. After
    /// [`advance_revision`](Self::advance_revision) the bookmark is ahead of the last event.
    pub fn bookmark_watches(&self) {
        self.inner.core.bookmark();
    }

    /// Ends a watch, without an error, as soon as more than this many events wait for its client:
    /// the real server does so when the buffer of a slow watch stays full. Without this limit a
    /// slow watch ends when it falls out of the history, which has 100 events at least.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::new();
    /// // The real server's buffer for most kinds.
    /// server.limit_watch_buffer(10);
    /// ```
    pub fn limit_watch_buffer(&self, events: usize) {
        self.inner.core.limit_watch_buffer(events);
    }

    /// Returns a second server on the same store, whose watch cache stays at the present revision.
    pub fn lagging_view(&self) -> LaggingView {
        self.lagging_view_by(0)
    }

    /// Returns a second server on the same store, whose watch cache stays this number of revisions
    /// behind the present one.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::new();
    /// server.advance_revision(10);
    /// assert_eq!(server.lagging_view_by(3).revision() + 3, server.lagging_view().revision());
    /// ```
    pub fn lagging_view_by(&self, revisions: u64) -> LaggingView {
        self.inner.core.view(revisions)
    }

    /// Moves the client of this name to a lagging server. Its open watches end, and it continues
    /// there.
    pub fn move_client(&self, client: &str, view: &LaggingView) {
        self.inner.core.move_client(client, Some(view.clone()));
    }

    /// Moves the client of this name back to the server that is up to date. Its open watches end.
    pub fn move_back(&self, client: &str) {
        self.inner.core.move_client(client, None);
    }

    /// Answers the selected gets and lists from an older state, also those that the real server
    /// reads from etcd.
    ///
    /// A list carries the older resourceVersion. A read that requires a newer version gets it, or a
    /// 504. Panics if a resource name is invalid or unknown.
    #[track_caller]
    pub fn stale_reads(&self, calls: Calls, lag: Lag) -> FaultRule {
        self.inner.rules.add(calls, ServerAction::StaleRead(lag))
    }

    /// Injects a fault of the server just before it processes the selected requests.
    ///
    /// Panics if a resource name is invalid or unknown.
    #[track_caller]
    pub fn fault_before(&self, calls: Calls, fault: ServerFault) -> FaultRule {
        self.inner.rules.add(calls, ServerAction::Before(fault))
    }

    /// Injects a fault of the server after it has processed the selected requests, before it
    /// replies.
    ///
    /// Panics if a resource name is invalid or unknown.
    #[track_caller]
    pub fn fault_after(&self, calls: Calls, fault: ServerFault) -> FaultRule {
        self.inner.rules.add(calls, ServerAction::After(fault))
    }
}

// === impl RequestFaults ===

impl RequestFaults {
    /// Returns the faults of all rules that hit a request.
    pub(super) fn draw(
        rules: &RuleSet<ServerAction>,
        request: impl FnOnce() -> (ClientName, RequestInfo, Option<RequestObject>),
    ) -> Self {
        let mut faults = Self::default();
        for hit in rules.hits(request) {
            match hit.fault().clone() {
                ServerAction::Before(fault) => faults.before.push(fault),
                ServerAction::After(fault) => faults.after.push(fault),
                ServerAction::StaleRead(lag) if is_read(hit.request()) => {
                    hit.record(&format!("stale read: {lag}"));
                    faults.lag = faults.lag.or(Some(lag));
                }
                ServerAction::StaleRead(_) => continue,
            }
            hit.count();
        }
        faults
    }
}

fn is_read(request: &RequestInfo) -> bool {
    matches!(request.verb, Verb::Get | Verb::List)
}

// === impl ServerFault ===

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "compaction",
            Self::ExpireHistory => "expired history",
            Self::Restart => "restart",
            Self::Restore(_) => "restore",
        })
    }
}

// === impl ServerAction ===

impl fmt::Display for ServerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(fault) => write!(f, "{fault} before the request"),
            Self::After(fault) => write!(f, "{fault} after the request"),
            Self::StaleRead(lag) => write!(f, "stale read: {lag}"),
        }
    }
}

pub(super) fn inject(core: &Core, fault: &ServerFault) {
    match fault {
        ServerFault::Compact => core.compact(),
        ServerFault::ExpireHistory => core.expire_history(),
        ServerFault::Restart => core.restart(Duration::ZERO),
        ServerFault::Restore(backup) => {
            core.restore(backup);
            api::reinstall_definitions(core);
        }
    }
}
