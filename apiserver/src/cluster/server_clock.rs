//! An estimate of the server's wall clock.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// The server's time: configured at the start, or derived from creation timestamps.
///
/// The server's clock may be virtual and differ from the machine's. The creation timestamp of an
/// object is a lower bound of the server's time.
#[derive(Debug, Clone)]
pub(super) struct ServerClock {
    started: Instant,
    /// The server's time at `started`.
    epoch: Timestamp,
    /// True if `epoch` was configured; then timestamps do not change it.
    is_fixed: bool,
}

// === impl ServerClock ===

impl ServerClock {
    pub(super) fn new(epoch: Option<Timestamp>, now: Instant) -> Self {
        Self { started: now, epoch: epoch.unwrap_or_default(), is_fixed: epoch.is_some() }
    }

    /// Moves the clock forward if `created` is in its future.
    pub(super) fn observe(&mut self, created: Option<&Time>, now: Instant) {
        if let Some(Time(created)) = created
            && !self.is_fixed
            && let Ok(epoch) = created.checked_sub(self.elapsed(now))
        {
            self.epoch = self.epoch.max(epoch);
        }
    }

    /// Returns the time in whole seconds, as Kubernetes writes it.
    pub(super) fn now(&self, now: Instant) -> Timestamp {
        let time = self.epoch.saturating_add(self.elapsed(now)).unwrap_or(Timestamp::MAX);
        Timestamp::from_second(time.as_second()).unwrap_or(time)
    }

    fn elapsed(&self, now: Instant) -> SignedDuration {
        SignedDuration::try_from(now - self.started).unwrap_or(SignedDuration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn newest_creation_timestamp_sets_the_clock() {
        let start = Instant::now();
        let mut clock = ServerClock::new(None, start);
        let later = start + Duration::from_secs(10);
        clock.observe(Some(&Time(at(1_000))), later);
        assert_eq!(clock.now(later), at(1_000));
        clock.observe(Some(&Time(at(500))), later);
        clock.observe(None, later);
        assert_eq!(clock.now(later + Duration::from_millis(1_500)), at(1_001));
        clock.observe(Some(&Time(at(2_000))), later);
        assert_eq!(clock.now(later), at(2_000));
    }

    #[tokio::test(start_paused = true)]
    async fn configured_time_is_not_changed_by_timestamps() {
        let start = Instant::now();
        let mut clock = ServerClock::new(Some(at(7_000)), start);
        clock.observe(Some(&Time(at(9_000))), start);
        assert_eq!(clock.now(start + Duration::from_secs(1)), at(7_001));
    }
}
