//! The end of a candidacy: the lease is given up, so that the next candidate need not wait until it
//! expires.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::LeaderElector;
use super::lease::LeaseError;
use super::state::{Record, Written};

impl LeaderElector {
    /// Ends leadership, and gives the lease up.
    pub(super) async fn release(mut self) {
        self.fence.set(None);
        self.metrics.leads(false);
        self.record("stopped leading");
        self.give_up().await;
        if let Some(events) = &self.events {
            events.shut_down().await;
        }
    }

    /// Ends a candidacy at a shutdown. Gives up a lease that this candidate holds, or may hold
    /// because a write had no answer.
    pub(super) async fn withdraw(mut self) {
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
            Ok(Ok(false)) => tracing::info!(lease, "this candidate does not hold the leader lease"),
            Ok(Err(error)) => {
                tracing::warn!(lease, %error, "failed to release lock; it expires");
            }
            Err(_) => tracing::warn!(lease, "failed to release lock in time; it expires"),
        }
    }

    /// Writes an empty holder. After a conflict, or a write without an answer, it reads the lease
    /// and tries again as long as this candidate holds it: the first time at once, because another
    /// party wrote it at the same time, then after pauses. Returns true if it wrote.
    async fn try_release(&mut self) -> Result<bool, LeaseError> {
        let wall = self.wall_time();
        let may_hold = self.candidate.may_hold();
        let mut next = self.candidate.release(wall);
        self.view.update(&self.candidate);
        if next.is_none() && may_hold {
            next = self.read_for_release(wall).await?;
        }
        let mut pause = Duration::ZERO;
        while let Some((record, version)) = next {
            match self.lock.replace(&record, &version).await? {
                Written::Stored(_) => {
                    self.view.released(record);
                    return Ok(true);
                }
                Written::Failed => return Ok(false),
                Written::Conflict => {
                    sleep(pause).await;
                    pause = self.timing.retry_period;
                    next = self.read_for_release(wall).await?;
                }
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
}
