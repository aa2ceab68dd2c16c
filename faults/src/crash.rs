//! Client crashes and network partitions.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::held_watches::HeldWatches;
use crate::rules::{RuleCounts, RuleId};
use crate::shared::Shared;

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
