//! Options of an election.

use std::time::Duration;

use homeostat_core::{Random, WallClock};
use jiff::Timestamp;
use kube_client::Client;

use super::clock::LeaseClock;
use super::lease::LeaseLock;
use super::metrics::Metrics;
use super::state::{Candidate, Timing};
use super::{ElectionView, Fence, LeaderElector};
use crate::events::EventRecorder;

/// client-go's recommendation, and the default of Kubernetes' own controllers.
const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The factor by which a retry period may be stretched, as in client-go.
const JITTER: f64 = 1.2;

/// Builds a [`LeaderElector`].
///
/// The three periods depend on each other: lease duration > renew deadline > 1.2 × retry period.
/// The difference of the first two is the time that a late write of a former leader has to reach
/// the server; their ratio is the error of clock rates that the election tolerates.
///
/// # Examples
///
/// ```no_run
/// # use homeostat::{kube_client::Client, leader_election::InvalidElection};
/// # fn doc(client: Client) -> Result<(), InvalidElection> {
/// use std::time::Duration;
///
/// use homeostat::LeaderElector;
///
/// let elector = LeaderElector::builder(client, "kube-system", "my-controller")
///     .lease_duration(Duration::from_secs(30))
///     .renew_deadline(Duration::from_secs(20))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone)]
pub struct LeaderElectorBuilder {
    client: Client,
    namespace: String,
    name: String,
    identity: Option<String>,
    timing: Timing,
    epoch: Option<Timestamp>,
    seed: Option<u64>,
    in_virtual_time: bool,
    events: Option<EventRecorder>,
}

/// The options of an election contradict each other.
///
/// The text names the two periods and their values. It is a mistake in the program's options: a
/// retry does not help.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
///
/// use homeostat::LeaderElector;
/// # let server = tower::service_fn(|_| std::future::pending::<
/// #     Result<http::Response<http_body_util::Full<bytes::Bytes>>, std::convert::Infallible>,
/// # >());
/// # let client = homeostat::client::builder().service(server).build();
///
/// // `client` is any client.
/// let invalid = LeaderElector::builder(client, "default", "my-controller")
///     .lease_duration(Duration::from_secs(10))
///     .renew_deadline(Duration::from_secs(10))
///     .build()
///     .unwrap_err();
/// assert!(invalid.to_string().starts_with("the lease duration (10s) must be greater"));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidElection(String);

// === impl LeaderElectorBuilder ===

impl LeaderElectorBuilder {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        let timing = Timing {
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
        };
        let (identity, epoch, seed) = (None, None, None);
        let in_virtual_time = false;
        let events = None;
        Self { client, namespace, name, identity, timing, epoch, seed, in_virtual_time, events }
    }

    /// Sets the name that the lease shows. Default: the host's name, `_` and a random uuid.
    ///
    /// Each process needs another one. A process that finds its name in a lease that it did not
    /// write waits, as for any other holder.
    ///
    /// Kubernetes' own controllers use the same form: host name, `_`, uuid. A pod's name alone is
    /// not enough: a container that is restarted in the pod keeps it.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets the time for which other candidates wait after a renewal. Default: 15 s. It is stored
    /// in whole seconds.
    ///
    /// A longer one tolerates longer outages of the API server; after a crash of the leader, no
    /// candidate leads for as long as this. Fractions of a second are rounded up, so that no other
    /// candidate waits for less.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing.lease_duration = duration;
        self
    }

    /// Sets the time after which a leader that could not renew stops. Default: 10 s.
    ///
    /// It counts from the start of the last request that renewed the lease. Each request has half
    /// of this time (at least 1 s), so that a request that hangs leaves time for another one.
    pub fn renew_deadline(mut self, timeout: Duration) -> Self {
        self.timing.renew_deadline = timeout;
        self
    }

    /// Sets the pause between two attempts. Default: 2 s. A candidate that does not lead waits up
    /// to 2.2 times as long.
    ///
    /// A leader renews once per period, without jitter.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.timing.retry_period = period;
        self
    }

    /// Records the changes of leadership as events of the Lease: `<identity> became leader` and
    /// `<identity> stopped leading`, with the reason `LeaderElection`. Default: none.
    ///
    /// The elector shuts `events` down when it has released the lease. Its client must not carry
    /// the [`Fence`], and needs the right to create events in the namespace of the
    /// Lease. The event of a loss may be missing if the program ends at once; a
    /// [`Manager`](crate::Manager) waits for it.
    pub fn events(mut self, events: &EventRecorder) -> Self {
        self.events = Some(events.clone());
        self
    }

    /// Makes a run repeatable: deadlines count tokio's time, timestamps start at `epoch`, and
    /// jitter has the seed `seed`.
    ///
    /// For tests under tokio's paused clock. Outside of them it is wrong: tokio's clock stands
    /// still while a machine is suspended, and no thread watches the deadline.
    pub fn in_virtual_time(mut self, epoch: Timestamp, seed: u64) -> Self {
        self.epoch = Some(epoch);
        self.seed = Some(seed);
        self.in_virtual_time = true;
        self
    }

    /// Returns the candidate. It sends nothing until [`acquire`](LeaderElector::acquire) or
    /// [`run`](LeaderElector::run).
    ///
    /// # Errors
    ///
    /// Returns an error if a period is zero, or if not lease duration > renew deadline > 1.2 ×
    /// retry period, or if the identity is empty (client-go's rules), or if the namespace or the
    /// name of the lease is empty.
    pub fn build(self) -> Result<LeaderElector, InvalidElection> {
        check(&self.timing)?;
        let mut random = Random::new(self.seed);
        let identity = self.identity.unwrap_or_else(|| default_identity(&mut random));
        if identity.is_empty() {
            return Err(InvalidElection("the identity must not be empty".to_owned()));
        }
        for (of, text) in [("namespace", &self.namespace), ("name", &self.name)] {
            if text.is_empty() {
                return Err(InvalidElection(format!("the {of} of the lease must not be empty")));
            }
        }
        let clock = if self.in_virtual_time { LeaseClock::tokio() } else { LeaseClock::system() };
        let timeout = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        let lease = format!("{}/{}", self.namespace, self.name);
        let view = ElectionView::new(&lease, &identity, clock);
        Ok(LeaderElector {
            lock: LeaseLock::new(self.client, &self.namespace, &self.name, timeout),
            candidate: Candidate::new(identity.clone(), self.timing),
            timing: self.timing,
            clock,
            wall: WallClock::new(self.epoch),
            random,
            fence: Fence::new(clock),
            identity,
            metrics: Metrics::new(&self.name),
            reported: None,
            error: None,
            events: self.events,
            view,
        })
    }
}

impl std::fmt::Debug for LeaderElectorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaderElectorBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// Checks the periods as client-go's `NewLeaderElector` does.
pub(crate) fn check(timing: &Timing) -> Result<(), InvalidElection> {
    let Timing { lease_duration, renew_deadline, retry_period } = *timing;
    if retry_period.is_zero() {
        return Err(InvalidElection("the retry period must be greater than zero".to_owned()));
    }
    // A period that is too long to be stretched is longer than any deadline.
    let stretched = Duration::try_from_secs_f64(retry_period.as_secs_f64() * JITTER);
    if renew_deadline <= stretched.unwrap_or(Duration::MAX) {
        return Err(InvalidElection(format!(
            "the renew deadline ({renew_deadline:?}) must be greater than {JITTER} times the retry \
             period ({retry_period:?})"
        )));
    }
    if lease_duration <= renew_deadline {
        return Err(InvalidElection(format!(
            "the lease duration ({lease_duration:?}) must be greater than the renew deadline \
             ({renew_deadline:?})"
        )));
    }
    Ok(())
}

/// The host's name and a random uuid: two processes on one host differ, and so do two runs of one
/// process.
fn default_identity(random: &mut Random) -> String {
    let host = rustix::system::uname();
    format!("{}_{}", host.nodename().to_string_lossy(), random.uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(lease: u64, renew: u64, retry: u64) -> Timing {
        Timing {
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_secs(renew),
            retry_period: Duration::from_secs(retry),
        }
    }

    #[test]
    fn periods_must_leave_room_for_each_other() {
        assert_eq!(check(&timing(15, 10, 2)), Ok(()));
        for (lease, renew, retry, says) in [
            (15, 10, 0, "retry period must be greater than zero"),
            (
                15,
                10,
                9,
                "renew deadline (10s) must be greater than 1.2 times the retry period (9s)",
            ),
            (10, 10, 2, "lease duration (10s) must be greater than the renew deadline (10s)"),
        ] {
            let error = check(&timing(lease, renew, retry)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn default_identity_differs_in_each_process() {
        let identity = |seed| default_identity(&mut Random::new(Some(seed)));
        assert_ne!(identity(1), identity(2));
        let uuid = identity(1).rsplit('_').next().unwrap().to_owned();
        assert_eq!(uuid.len(), 36);
    }
}
