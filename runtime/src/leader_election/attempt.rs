//! One attempt of a candidate to acquire or renew the lease: its requests, and what they show.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::LeaderElector;
use super::lease::LeaseError;
use super::state::{Loss, Step, Written};
use super::trouble::Ended;

/// The end of one attempt to acquire or renew.
pub(super) enum Attempt {
    /// The lease is renewed, and the fence is open until the new deadline.
    Leading,
    /// Another candidate leads, or a request failed. The caller pauses and tries again.
    NotYet,
    /// A request showed that this candidate leads no longer. The fence is closed.
    Lost(Loss),
}

// === impl LeaderElector ===

impl LeaderElector {
    /// Makes one attempt, and shows its outcome on the debug page.
    pub(super) async fn attempt(&mut self, end: Pin<&mut impl Future<Output = ()>>) -> Attempt {
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
        self.metrics.slow_path();
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
