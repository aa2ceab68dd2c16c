//! The requests of one connection, and the rules that close an inactive connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Timeouts and bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Timeout from the connection's start to the end of the first request's head.
    pub(super) head: Duration,
    /// Timeout between a reply and the next request.
    pub(super) idle: Duration,
    /// Timeout from a request's head to the end of its body.
    pub(super) body: Duration,
    /// Timeout for a client to read a part of a reply that is ready.
    pub(super) unread: Duration,
    /// The maximum number of connections.
    pub(super) connections: usize,
    /// The maximum number of concurrent requests on one HTTP/2 connection.
    pub(super) streams: u32,
}

/// The requests in progress on one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The requests that are not fully answered; the instant since which the client has left a
    /// ready part unread.
    requests: BTreeMap<u64, Option<Instant>>,
    next: u64,
    /// The end of the last request, or the connection's start.
    quiet_since: Instant,
    /// True once a request has come.
    has_begun: bool,
}

/// A request in progress; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard {
    activity: Arc<Activity>,
    id: u64,
}

// === impl Limits ===

impl Limits {
    /// The limits of kube-apiserver, where it has them: 32 s for a head, 90 s between requests, 60
    /// s for a request, 100 streams. It does not limit connections; 4,096 take about 1 GB when none
    /// of them reads.
    pub(super) const DEFAULT: Self = Self {
        head: Duration::from_secs(32),
        idle: Duration::from_secs(90),
        body: Duration::from_secs(60),
        unread: Duration::from_secs(30),
        connections: 4096,
        streams: 100,
    };

    /// Returns the interval between checks of a connection.
    pub(super) fn check_interval(&self) -> Duration {
        self.head.min(self.idle).min(self.unread) / 4
    }
}

// === impl Activity ===

impl Activity {
    pub(super) fn new(now: Instant) -> Arc<Self> {
        let state =
            State { requests: BTreeMap::new(), next: 0, quiet_since: now, has_begun: false };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(super) fn begin(self: &Arc<Self>) -> RequestGuard {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.has_begun = true;
        state.requests.insert(id, None);
        RequestGuard { activity: Arc::clone(self), id }
    }

    /// Returns the instant since which no request has been in progress, or `None` if one is.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.requests.is_empty().then_some(state.quiet_since)
    }

    /// Returns the reason to close the connection, or `None` to keep it.
    pub(super) fn overdue(&self, limits: &Limits, now: Instant) -> Option<&'static str> {
        let state = self.state.lock();
        if state.requests.is_empty() {
            let (timeout, reason) = if state.has_begun {
                (limits.idle, "no further request came")
            } else {
                (limits.head, "the first request did not come")
            };
            return (now.duration_since(state.quiet_since) >= timeout).then_some(reason);
        }
        let mut unread = state.requests.values().flatten();
        let is_late = |since: &Instant| now.duration_since(*since) >= limits.unread;
        unread.any(is_late).then_some("the client does not read a reply")
    }
}

// === impl RequestGuard ===

impl RequestGuard {
    /// Records that a part of the reply was handed out and may be unread.
    pub(super) fn mark_unread(&self, now: Instant) {
        self.note(Some(now));
    }

    /// Records that the client has read everything that was handed out.
    pub(super) fn mark_read(&self) {
        self.note(None);
    }

    fn note(&self, since: Option<Instant>) {
        if let Some(known) = self.activity.state.lock().requests.get_mut(&self.id) {
            *known = since;
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.requests.remove(&self.id);
        state.quiet_since = Instant::now();
    }
}
