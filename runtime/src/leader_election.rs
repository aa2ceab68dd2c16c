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

mod builder;
mod clock;
mod fence;
mod leadership;
mod lease;
mod state;
mod trouble;
mod view;
mod watchdog;

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::future::maybe_done;
use homeostat_core::{Random, WallClock};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

pub use self::builder::{InvalidElection, LeaderElectorBuilder};
use self::clock::LeaseClock;
pub use self::fence::{Fence, Fenced, NotLeader};
pub use self::leadership::{Leadership, LeadershipLost};
use self::lease::{LeaseError, LeaseLock, micros};
use self::state::{Candidate, Loss, Record, Step, Timing, Written};
use self::trouble::Ended;
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

/// client-go's metrics, labelled with the name of the lease.
#[derive(Debug)]
struct Metrics {
    /// `leader_election_master_status`: 1 while this process leads, otherwise 0.
    is_leader: metrics::Gauge,
    /// `leader_election_slowpath_total`: attempts that had to read the lease first.
    slow_path: metrics::Counter,
}

/// The end of one attempt to acquire or renew.
enum Attempt {
    /// The lease is renewed, and the fence is open until the new deadline.
    Leading,
    /// Another candidate leads, or a request failed. The caller pauses and tries again.
    NotYet,
    /// A request showed that this candidate leads no longer. The fence is closed.
    Lost(Loss),
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

    /// Returns the state that the debug page shows.
    pub(crate) fn view(&self) -> ElectionView {
        self.view.clone()
    }

    /// Leads while `work` runs.
    ///
    /// Waits for leadership, then runs `work` in a task. `work` gets a token that is cancelled when
    /// it should end: `shutdown` is ready. When it has ended, the lease is released. If leadership
    /// is lost, the task of `work` is aborted at once: others may lead soon.
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
    /// Resumes the panic of `work`, after the lease was released.
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
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the candidate. If it was just about to lead, the lease names
    /// it until it expires.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
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
        self.metrics.is_leader.set(0.0);
        loop {
            let is_leading = matches!(self.attempt(shutdown.as_mut()).await, Attempt::Leading);
            if is_leading {
                tracing::info!(lease, identity, "successfully acquired lease");
                self.metrics.is_leader.set(1.0);
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

    /// Makes one attempt, and shows its outcome on the debug page.
    async fn attempt(&mut self, end: Pin<&mut impl Future<Output = ()>>) -> Attempt {
        let attempt = self.requests(end).await;
        self.view.update(&self.candidate);
        let error = self.error.take();
        self.log_outcome(error);
        attempt
    }

    /// Logs a series of attempts that fail: when it begins, each minute, and when it ends.
    fn log_outcome(&self, error: Option<String>) {
        let lease = self.lease();
        let Some(error) = error else {
            if let Some(Ended { outage, failures, error }) = self.view.succeeded() {
                let message = "the lease can be read and written again";
                tracing::info!(lease, ?outage, failures, error, "{message}");
            }
            return;
        };
        if self.view.failed(&error) {
            tracing::warn!(lease, "{error}; trying again");
        } else {
            tracing::debug!(lease, "{error}; trying again");
        }
    }

    /// Sends the requests of one attempt.
    ///
    /// The candidate decides each step, and the loop carries it out until a step ends the attempt.
    /// A leader reads at most once: a server that answers each write with a conflict gets its next
    /// request after a pause.
    ///
    /// `end` drops a read. A write has its outcome first: without it the lease might keep the name
    /// of a candidate that is gone.
    async fn requests(&mut self, mut end: Pin<&mut impl Future<Output = ()>>) -> Attempt {
        let mut has_read = false;
        let mut step = self.candidate.begin(self.clock.now(), self.wall_time());
        loop {
            step = match step {
                Step::Read if has_read => return Attempt::NotYet,
                Step::Read => {
                    has_read = true;
                    tokio::select! {
                        biased;
                        () = end.as_mut() => return Attempt::NotYet,
                        step = self.read() => step,
                    }
                }
                Step::Create(record) => {
                    let started = self.clock.now();
                    let outcome = self.lock.create(&record).await;
                    self.written(
                        outcome,
                        started,
                        "error initially creating leader election record",
                    )
                }
                Step::Replace { record, version } => {
                    let started = self.clock.now();
                    let outcome = self.lock.replace(&record, &version).await;
                    self.written(outcome, started, "failed to update lock")
                }
                Step::Leading => return Attempt::Leading,
                Step::Waiting => return Attempt::NotYet,
                Step::Lost(loss) => {
                    self.fence.set(None);
                    return Attempt::Lost(loss);
                }
            };
        }
    }

    /// Reads the lease. A failure is logged and ends the attempt, not leadership.
    async fn read(&mut self) -> Step {
        self.metrics.slow_path.increment(1);
        match self.lock.read().await {
            Ok(lease) => {
                let step = self.candidate.read(lease, self.clock.now(), self.wall_time());
                self.report_holder();
                step
            }
            Err(error) => {
                self.report(&error, "error retrieving resource lock");
                Step::Waiting
            }
        }
    }

    /// Passes the outcome of a write on, and opens the fence if it made this candidate lead.
    /// `failure` is client-go's text for a write that failed.
    fn written(
        &mut self,
        outcome: Result<Written, LeaseError>,
        started: Duration,
        failure: &str,
    ) -> Step {
        let outcome = outcome.unwrap_or_else(|error| {
            self.report(&error, failure);
            Written::Failed
        });
        let led = self.candidate.valid_until().is_some();
        let step = self.candidate.written(outcome, started, self.clock.now());
        let Some(until) = self.candidate.valid_until().filter(|_| step == Step::Leading) else {
            return step;
        };
        if !led {
            self.fence.set(Some(until));
        } else if !self.fence.extend(until) {
            // The watchdog was faster.
            self.candidate.step_down();
            return Step::Waiting;
        }
        step
    }

    /// Ends leadership, and gives the lease up.
    async fn release(mut self) {
        self.fence.set(None);
        self.metrics.is_leader.set(0.0);
        self.record("stopped leading");
        self.give_up().await;
        if let Some(events) = &self.events {
            events.shut_down().await;
        }
    }

    /// Ends a candidacy at a shutdown. Gives up a lease that this candidate holds, or may hold
    /// because a write had no answer.
    async fn withdraw(mut self) {
        if self.candidate.valid_until().is_some() {
            self.release().await;
        } else if self.candidate.may_hold() {
            self.give_up().await;
        }
    }

    /// Gives the lease up. Tries until the renew deadline has passed; after that it expires by
    /// itself.
    async fn give_up(&mut self) {
        let (lease, timeout) = (self.lease(), self.timing.renew_deadline);
        match tokio::time::timeout(timeout, self.try_release()).await {
            Ok(Ok(true)) => tracing::info!(lease, "released the leader lease"),
            Ok(Ok(false)) => tracing::info!(lease, "the leader lease has another holder"),
            Ok(Err(error)) => {
                tracing::warn!(lease, %error, "failed to release lock; it expires");
            }
            Err(_) => tracing::warn!(lease, "failed to release lock in time; it expires"),
        }
    }

    /// Records an event of the Lease with client-go's text.
    fn record(&self, what: &str) {
        if let Some(events) = &self.events {
            let message = format!("{} {what}", self.identity);
            events.record(self.lock.reference(), EventType::Normal, "LeaderElection", message);
        }
    }

    /// Writes an empty holder. After a conflict, or a write without an answer, it reads the lease
    /// and tries again as long as this candidate holds it. Returns true if it wrote.
    async fn try_release(&mut self) -> Result<bool, LeaseError> {
        let wall = self.wall_time();
        let may_hold = self.candidate.may_hold();
        let mut next = self.candidate.release(wall);
        self.view.update(&self.candidate);
        if next.is_none() && may_hold {
            next = self.read_for_release(wall).await?;
        }
        while let Some((record, version)) = next {
            match self.lock.replace(&record, &version).await? {
                Written::Stored(_) => {
                    self.view.released(record);
                    return Ok(true);
                }
                Written::Failed => return Ok(false),
                Written::Conflict => next = self.read_for_release(wall).await?,
            }
        }
        Ok(false)
    }

    /// Reads the lease, and returns the record that releases it if this candidate holds it.
    async fn read_for_release(
        &mut self,
        wall: Timestamp,
    ) -> Result<Option<(Record, String)>, LeaseError> {
        let lease = self.lock.read().await?;
        let now = self.clock.now();
        Ok(lease.and_then(|lease| self.candidate.read_for_release(lease, now, wall)))
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

    /// Keeps the first error of an attempt, for the log and the debug page.
    fn report(&mut self, error: &LeaseError, what: &str) {
        self.error.get_or_insert_with(|| format!("{what}: {error}"));
    }

    /// Logs a holder when it changes, not at each read.
    fn report_holder(&mut self) {
        let holder = self.candidate.holder().map(str::to_owned);
        if holder != self.reported {
            if let Some(holder) = holder.as_deref().filter(|holder| *holder != self.identity) {
                tracing::info!(lease = %self.lease(), holder, "new leader elected");
            }
            self.reported = holder;
        }
    }
}

#[cfg(test)]
mod tests;
