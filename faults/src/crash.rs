//! Client crashes and network partitions.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::faults::Shared;
use crate::open_watches::HeldWatches;
use crate::rules::{RuleCounts, RuleId};

/// The point at which a client crashes: before or after one of its calls, or at an event of its
/// watches, counted from 1.
///
/// Every request with a mutating [`Verb`](crate::Verb) counts, posts of events included: a
/// controller that records an event for each pod that it creates makes two mutating calls per pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// The call is not sent.
    Before(u64),
    /// The server processes the call; the client does not get the reply.
    After(u64),
    /// The read is not sent. Gets, lists and watches count.
    BeforeRead(u64),
    /// The server processes the read; the client does not get the reply.
    AfterRead(u64),
    /// The event is not delivered. The events of all watches count from the time at which the crash
    /// is planned, bookmarks included.
    AtEvent(u64),
}

/// The noun for what a [`CrashPoint`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Mutations,
    Reads,
    Events,
}

/// A planned crash, returned by [`Faults::crash_at`](crate::Faults::crash_at).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_faults::CrashPoint;
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube_client::Api;
/// use kube_client::api::DeleteParams;
///
/// let server = ApiServer::new();
/// let crash = server.faults().crash_at("controller", CrashPoint::Before(1));
/// let namespaces = Api::<Namespace>::all(server.client_as("controller"));
/// let params = DeleteParams::default();
/// tokio::select! {
///     _ = namespaces.delete("team-a", &params) => panic!("the client did not crash"),
///     () = crash.reached() => {}
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "wait for the crash, stop the client's tasks and start a new client"]
pub struct Crash {
    reached: CancellationToken,
}

/// The direction that a partition blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Requests do not reach the server.
    Requests,
    /// The server processes the requests; the replies do not reach the client.
    Replies,
}

/// A guard that keeps a client partitioned until it is dropped, returned by
/// [`Faults::partition`](crate::Faults::partition).
#[must_use = "dropping it heals the partition"]
pub struct Partition {
    shared: Arc<Shared>,
    client: Arc<str>,
    rule: RuleId,
    _watches: HeldWatches,
}

// === impl CrashPoint ===

impl CrashPoint {
    /// Returns every crash point at the writes of a run with `calls` mutating calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_faults::CrashPoint::{self, After, Before};
    ///
    /// let points: Vec<_> = CrashPoint::all(2).collect();
    /// assert_eq!(points, [Before(1), After(1), Before(2), After(2)]);
    /// ```
    pub fn all(calls: u64) -> impl Iterator<Item = Self> {
        (1..=calls).flat_map(|call| [Self::Before(call), Self::After(call)])
    }

    /// Returns the number of the call or event.
    pub fn call(self) -> u64 {
        match self {
            Self::Before(call)
            | Self::After(call)
            | Self::BeforeRead(call)
            | Self::AfterRead(call)
            | Self::AtEvent(call) => call,
        }
    }

    /// Returns what the number counts.
    pub(crate) fn counted(self) -> Counted {
        match self {
            Self::Before(_) | Self::After(_) => Counted::Mutations,
            Self::BeforeRead(_) | Self::AfterRead(_) => Counted::Reads,
            Self::AtEvent(_) => Counted::Events,
        }
    }

    /// Returns true if the request is not sent.
    pub(crate) fn is_before(self) -> bool {
        matches!(self, Self::Before(_) | Self::BeforeRead(_))
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(call) => write!(f, "before mutating call {call}"),
            Self::After(call) => write!(f, "after mutating call {call}"),
            Self::BeforeRead(read) => write!(f, "before read {read}"),
            Self::AfterRead(read) => write!(f, "after read {read}"),
            Self::AtEvent(event) => write!(f, "at event {event}"),
        }
    }
}

// === impl Counted ===

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutations => "mutating calls",
            Self::Reads => "reads",
            Self::Events => "events",
        })
    }
}

// === impl Crash ===

impl Crash {
    pub(crate) fn new(reached: CancellationToken) -> Self {
        Self { reached }
    }

    /// Waits until the client crashes. After that none of its calls is answered and none of its
    /// watches delivers an event.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect; the method can be called again.
    pub async fn reached(&self) {
        self.reached.cancelled().await;
    }

    /// Returns true if the client has crashed.
    pub fn is_reached(&self) -> bool {
        self.reached.is_cancelled()
    }
}

// === impl Partition ===

impl Partition {
    /// Holds the watches of a client whose requests meet `rule`. `counts` has the hits of both.
    pub(crate) fn new(
        shared: Arc<Shared>,
        client: Arc<str>,
        rule: RuleId,
        counts: Arc<RuleCounts>,
    ) -> Self {
        let calls = Calls::any().by(&*client);
        let watches = HeldWatches::new(Arc::clone(&shared), calls, counts);
        Self { shared, client, rule, _watches: watches }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.rules.remove(self.rule);
        state.record_client(Arc::clone(&self.client), "partition ended".to_owned());
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition").field("client", &self.client).finish_non_exhaustive()
    }
}
