//! Clients that stop in the middle of things, and clients that nobody reaches.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Shared;
use super::rules::RuleId;
use super::watch::HeldWatches;

/// Where a client crashes: at one of its mutating calls, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// Just before this call is sent: it is never carried out.
    Before(u64),
    /// Just after this call was carried out: its reply comes to nobody.
    After(u64),
}

/// A crash that is planned; made by [`Faults::crash_at`](super::Faults::crash_at).
#[derive(Debug, Clone)]
#[must_use = "wait for it, end the client's tasks, and start the next one"]
pub struct Crash {
    reached: CancellationToken,
}

/// What a partition swallows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Requests: none is carried out.
    Requests,
    /// Replies: what is asked for is done, and nobody hears of it.
    Replies,
}

/// A client that is cut off until this is dropped; made by [`Faults::partition`](super::Faults::partition).
#[must_use = "dropping it heals the partition"]
pub struct Partition {
    shared: Arc<Shared>,
    client: Arc<str>,
    rule: RuleId,
    _watches: HeldWatches,
}

// === impl CrashPoint ===

impl CrashPoint {
    /// Every point of a run that made so many mutating calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::faults::CrashPoint::{self, After, Before};
    ///
    /// let points: Vec<_> = CrashPoint::all(2).collect();
    /// assert_eq!(points, [Before(1), After(1), Before(2), After(2)]);
    /// ```
    pub fn all(calls: u64) -> impl Iterator<Item = Self> {
        (1..=calls).flat_map(|call| [Self::Before(call), Self::After(call)])
    }

    /// Which call.
    pub fn call(self) -> u64 {
        match self {
            Self::Before(call) | Self::After(call) => call,
        }
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(call) => write!(f, "before mutating call {call}"),
            Self::After(call) => write!(f, "after mutating call {call}"),
        }
    }
}

// === impl Crash ===

impl Crash {
    pub(super) fn new(reached: CancellationToken) -> Self {
        Self { reached }
    }

    /// Waits until the client has come to its point. From then on none of its calls is answered, and none of its
    /// watches says anything.
    ///
    /// # Cancel safety
    ///
    /// It only waits.
    pub async fn reached(&self) {
        self.reached.cancelled().await;
    }

    /// Whether the client has come to its point.
    pub fn is_reached(&self) -> bool {
        self.reached.is_cancelled()
    }
}

// === impl Partition ===

impl Partition {
    pub(super) fn new(shared: Arc<Shared>, client: Arc<str>, rule: RuleId) -> Self {
        let calls = super::Calls::any().by(&*client);
        let watches = HeldWatches::new(Arc::clone(&shared), calls);
        Self { shared, client, rule, _watches: watches }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.rules.remove(self.rule);
        state.record_words(Arc::clone(&self.client), "the partition is healed".to_owned());
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition").field("client", &self.client).finish_non_exhaustive()
    }
}
