//! Elects one of several candidates, on a `Lease` of the API server.
//!
//! It follows client-go's `leaderelection`: the same lease, the same periods (15 s, 10 s, 2 s), the
//! same jitter, so that candidates of both kinds compete for one lease. It differs where client-go
//! admits two leaders:
//!
//! | | client-go | here |
//! | --- | --- | --- |
//! | the renew deadline counts from | the answer to the last renewal | the *start* of its request |
//! | at the deadline | the loop that renews notices, once it runs | a thread of its own cancels |
//! | a read shows another holder | the loop goes on until its deadline | leadership ends at once |
//! | a write after the deadline | is sent | the [`Fence`] in the client refuses it |
//! | the lease is released | while the work may still run | after the work has ended |
//! | the machine was suspended | its clock stood still | `CLOCK_BOOTTIME` went on |
//!
//! Two candidates never lead at once as long as the ratio of their clock *rates* stays below lease
//! duration / renew deadline (1.5 by default). A write that was sent before the deadline may reach
//! the server after it; it has the difference of the two (5 s by default) until another candidate
//! can lead.
//!
//! Four parts share the work. `state` decides, without a clock or a request of its own, so that a
//! model can check it. `lease` sends the requests. [`Fence`] guards the writes of the work by the
//! deadline alone. `watchdog` aborts the work at the deadline, from a thread that no task can
//! block.

mod attempt;
mod builder;
mod clock;
mod fence;
mod leadership;
mod lease;
mod metrics;
mod release;
mod state;
mod trouble;
mod view;
mod watchdog;

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;

use futures::future::maybe_done;
use homeostat_core::{Random, WallClock};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use self::attempt::Attempt;
#[cfg(feature = "cli")]
pub(crate) use self::builder::check;
pub use self::builder::{InvalidElection, LeaderElectorBuilder};
use self::clock::LeaseClock;
pub use self::fence::{Fence, Fenced, NotLeader};
pub use self::leadership::{Leadership, LeadershipLost};
use self::lease::{LeaseLock, micros};
use self::metrics::Metrics;
pub(crate) use self::state::Timing;
use self::state::{Candidate, Loss};
pub(crate) use self::view::ElectionView;
use crate::events::{EventRecorder, EventType};
use crate::observe::Diagnostics;

/// A candidate for leadership (client-go's `LeaderElector`).
///
/// Use [`Manager::leader_election`](crate::Manager::leader_election) instead for controllers: the
/// manager then starts and drains the workers as leadership requires. Use [`run`](Self::run) for
/// other work, and [`acquire`](Self::acquire) to build on [`Leadership`].
///
/// A leader sends one request per retry period (2 s by default). A candidate that waits reads the
/// lease once per 2 to 4.4 s.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// use homeostat::{LeaderElector, shutdown_signal};
///
/// let builder = homeostat::client::builder().infer().await?;
/// let elector =
///     LeaderElector::builder(builder.clone().build(), "default", "my-controller").build()?;
/// let client = builder.layer(&elector.fence()).build();
/// elector
///     .run(shutdown_signal(), |cancelled| async move {
///         // Work with `client` until `cancelled`.
///         drop(client);
///         cancelled.cancelled().await;
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "NewLeaderElector")]
#[derive(Debug)]
pub struct LeaderElector {
    /// Sends the requests. Its copy of the lease is the one that was last read or written.
    lock: LeaseLock,
    /// Decides the next request. It alone knows if this process leads.
    candidate: Candidate,
    timing: Timing,
    /// The clock of all deadlines. The fence reads the same one.
    clock: LeaseClock,
    /// The clock of the timestamps in the lease. No decision depends on it.
    wall: WallClock,
    random: Random,
    /// Open exactly while `candidate` leads: set after each renewal, closed at each loss.
    fence: Fence,
    identity: String,
    metrics: Metrics,
    /// The holder that was logged last.
    reported: Option<String>,
    /// The first error of the attempt that runs.
    error: Option<String>,
    /// `None` records no events.
    events: Option<EventRecorder>,
    /// The debug page reads it.
    view: ElectionView,
}

// === impl LeaderElector ===

impl LeaderElector {
    /// Starts a candidate for the lease `name` in `namespace`.
    ///
    /// `client` is for the election alone: give it a connection and a rate limit of its own, or a
    /// burst of other requests delays the renewal. It must not carry the [`Fence`].
    pub fn builder(
        client: kube_client::Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> LeaderElectorBuilder {
        LeaderElectorBuilder::new(client, namespace.into(), name.into())
    }

    /// Returns the layer that refuses writes while this candidate does not lead. Put it into the
    /// client of the work.
    ///
    /// Clones share one deadline: a fence that is taken before the election opens when this
    /// candidate leads.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Returns the name that this candidate writes into the lease.
    ///
    /// It is also what [`LeadershipLost::TakenBy`] of the other candidates shows.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Shows the election on the debug page: the holder, since when, the age of its last renewal,
    /// the transitions.
    ///
    /// [`Manager::diagnostics`](crate::Manager::diagnostics) does it for the manager's election.
    pub fn show_in(&self, diagnostics: &Diagnostics) {
        let view = self.view.clone();
        diagnostics.elections(move || vec![view.report()]);
    }

    /// Returns the recorder of the changes of leadership.
    pub(crate) fn recorder(&self) -> Option<&EventRecorder> {
        self.events.as_ref()
    }

    /// Returns the state that the debug page shows.
    pub(crate) fn view(&self) -> ElectionView {
        self.view.clone()
    }

    /// Leads while `work` runs.
    ///
    /// Waits for leadership, then runs `work` in a task. `work` gets a token that is cancelled when
    /// it should end: `shutdown` is ready. When it has ended, the lease is released. If leadership
    /// is lost, the task of `work` is aborted at once: others may lead soon. Work that blocks its
    /// thread does not see that; the loss is returned after 1 s nevertheless.
    ///
    /// Returns `None` if `shutdown` was ready before this candidate led. A lease that it acquires
    /// meanwhile is released.
    ///
    /// # Errors
    ///
    /// Returns [`LeadershipLost`] if leadership was lost before `work` ended. A program should exit
    /// then, as Kubernetes' own do: the supervisor starts it again, and it becomes a candidate
    /// again.
    ///
    /// # Panics
    ///
    /// Resumes the panic of `work`, after the lease was released. Panics outside of a tokio
    /// runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts `work` and stops renewing. The lease is not released; it expires.
    #[doc(alias = "RunOrDie")]
    pub async fn run<F: Future<Output: Send + 'static> + Send + 'static>(
        self,
        shutdown: impl Future<Output = ()>,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Option<F::Output>, LeadershipLost> {
        let mut shutdown = pin!(shutdown);
        match self.acquire_before(shutdown.as_mut()).await {
            Ok(leadership) => leadership.run(shutdown, work).await,
            Err(()) => Ok(None),
        }
    }

    /// Waits until this candidate leads. It has no limit: every failure is logged and tried
    /// again.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the candidate. If it was just about to lead, the lease names
    /// it until it expires.
    ///
    /// # Examples
    ///
    /// Work that is a task of the caller's own:
    ///
    /// ```no_run
    /// # async fn serve() {}
    /// # async fn doc(elector: homeostat::LeaderElector) {
    /// let leadership = elector.acquire().await;
    /// let work = tokio::spawn(serve());
    /// leadership.abort_on_loss(work.abort_handle());
    /// tokio::select! {
    ///     _ = work => leadership.release().await,
    ///     lost = leadership.lost() => eprintln!("{lost}"),
    /// }
    /// # }
    /// ```
    pub async fn acquire(self) -> Leadership {
        match self.acquire_before(pending::<Infallible>()).await {
            Ok(leadership) => leadership,
            Err(never) => match never {},
        }
    }

    /// Waits until this candidate leads, or returns the output of `shutdown` if that is ready
    /// before.
    ///
    /// The shutdown drops a read that is under way. A write gets its outcome, because it may
    /// acquire the lease; the candidate then releases the lease.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    pub(crate) async fn acquire_before<F: Future>(
        mut self,
        shutdown: F,
    ) -> Result<Leadership, F::Output> {
        let mut shutdown = pin!(maybe_done(shutdown));
        let (lease, identity) = (self.lease(), self.identity.clone());
        tracing::info!(lease, identity, "attempting to acquire leader lease");
        self.metrics.leads(false);
        loop {
            let is_leading = matches!(self.attempt(shutdown.as_mut()).await, Attempt::Leading);
            if is_leading {
                tracing::info!(lease, identity, "successfully acquired lease");
                self.metrics.leads(true);
                self.record("became leader");
            }
            if is_leading && futures::poll!(shutdown.as_mut()).is_pending() {
                return Ok(Leadership::new(self));
            }
            let pause = self.pause();
            tokio::select! {
                biased;
                () = shutdown.as_mut() => {}
                () = tokio::time::sleep(pause) => {}
            }
            if let Some(ended) = shutdown.as_mut().take_output() {
                self.withdraw().await;
                return Err(ended);
            }
        }
    }

    /// Renews until leadership ends.
    ///
    /// It sleeps for the retry period or until the deadline, whichever is shorter, and checks the
    /// deadline before it sends. It returns only when leadership has ended.
    async fn renew(&mut self) -> LeadershipLost {
        let lost = self.renew_until_lost().await;
        self.record("stopped leading");
        lost
    }

    async fn renew_until_lost(&mut self) -> LeadershipLost {
        loop {
            let left = self.fence.time_left().unwrap_or_default();
            tokio::time::sleep(self.timing.retry_period.min(left)).await;
            if !self.candidate.is_leader(self.clock.now()) {
                self.candidate.step_down();
                self.view.update(&self.candidate);
                return LeadershipLost::DeadlinePassed;
            }
            if let Attempt::Lost(loss) = self.attempt(pin!(pending())).await {
                return match loss {
                    Loss::TakenBy(holder) => LeadershipLost::TakenBy { holder },
                    Loss::SharedIdentity => LeadershipLost::SharedIdentity,
                };
            }
        }
    }

    /// Records an event of the Lease with client-go's text.
    fn record(&self, what: &str) {
        if let Some(events) = &self.events {
            let message = format!("{} {what}", self.identity);
            events.record(self.lock.reference(), EventType::Normal, "LeaderElection", message);
        }
    }

    /// A candidate's pause before its next attempt: client-go's jitter, so that candidates spread.
    fn pause(&mut self) -> Duration {
        let period = self.timing.retry_period;
        self.random.between(period, period.saturating_mul(11) / 5)
    }

    /// Returns the time in the precision of a `MicroTime`.
    fn wall_time(&self) -> Timestamp {
        micros(self.wall.now())
    }

    /// Returns the lease's name for log lines.
    fn lease(&self) -> String {
        format!("{}/{}", self.lock.namespace, self.lock.name)
    }
}

#[cfg(test)]
mod tests;
