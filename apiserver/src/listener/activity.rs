//! What goes on at one connection, and whether that is too little.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How patient a listener is, and how much it takes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// From the connection's start to the end of the first request's head.
    pub(super) head: Duration,
    /// Between an answer and the next request.
    pub(super) idle: Duration,
    /// From a request's head to the end of its body.
    pub(super) body: Duration,
    /// How long a client may leave an answer that is at hand unread.
    pub(super) unread: Duration,
    /// How many connections there are at once.
    pub(super) connections: usize,
    /// How many requests there are at once on one HTTP/2 connection.
    pub(super) streams: u32,
}

/// The answers that are being given on one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Each request that is not answered to the end; the time, if something has been at hand since then that the
    /// client has not taken.
    requests: BTreeMap<u64, Option<Instant>>,
    next: u64,
    /// When the last request ended, or the connection began.
    quiet_since: Instant,
    /// Whether there has been a request.
    has_begun: bool,
}

/// One request, until it is answered to the end.
#[derive(Debug)]
pub(super) struct Ongoing {
    activity: Arc<Activity>,
    id: u64,
}

// === impl Limits ===

impl Limits {
    /// A kube-apiserver's, where it has such a limit: 32 s for a head, 90 s between requests, 60 s for a request, 100
    /// streams. It has none for connections; 4,096 take about a gigabyte when none of them reads.
    pub(super) const USUAL: Self = Self {
        head: Duration::from_secs(32),
        idle: Duration::from_secs(90),
        body: Duration::from_secs(60),
        unread: Duration::from_secs(30),
        connections: 4096,
        streams: 100,
    };

    /// How often a connection is looked at.
    pub(super) fn look_every(&self) -> Duration {
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

    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.has_begun = true;
        state.requests.insert(id, None);
        Ongoing { activity: Arc::clone(self), id }
    }

    /// Since when nothing has been asked; none while something is.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.requests.is_empty().then_some(state.quiet_since)
    }

    /// Why the connection is to end, if it is.
    pub(super) fn overdue(&self, limits: &Limits, now: Instant) -> Option<&'static str> {
        let state = self.state.lock();
        if state.requests.is_empty() {
            let (patience, why) = if state.has_begun {
                (limits.idle, "nothing is asked")
            } else {
                (limits.head, "the first request does not come")
            };
            return (now.duration_since(state.quiet_since) >= patience).then_some(why);
        }
        let mut unread = state.requests.values().flatten();
        let is_late = |since: &Instant| now.duration_since(*since) >= limits.unread;
        unread.any(is_late).then_some("an answer is not read")
    }
}

// === impl Ongoing ===

impl Ongoing {
    /// Something has been handed out, and is not known to have been taken.
    pub(super) fn hand_out(&self, now: Instant) {
        self.note(Some(now));
    }

    /// The client wants more.
    pub(super) fn want(&self) {
        self.note(None);
    }

    fn note(&self, since: Option<Instant>) {
        if let Some(known) = self.activity.state.lock().requests.get_mut(&self.id) {
            *known = since;
        }
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.requests.remove(&self.id);
        state.quiet_since = Instant::now();
    }
}
