//! [`Outage`]: decides which failures of a reflector are worth a line in the log.
//!
//! This module is pure: the time comes from outside.
//!
//! A watch that breaks off or a version that expires is normal, and the next request repairs it. A
//! second consecutive failure is an outage: the cache becomes old. It is logged when it begins,
//! once a minute while it lasts, and when it ends. A server that works only now and then causes at
//! most one warning a minute as well.

use std::time::Duration;

use tokio::time::Instant;

/// The failures since the last success, and the last warning about any.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// The time of the first failure since the last success; `None` after a success.
    since: Option<Instant>,
    /// The time of the last warning, in this outage or an earlier one.
    warned: Option<Instant>,
    /// True if this outage was logged, so that its end is logged too.
    is_logged: bool,
}

/// The time between two warnings.
const WARN_PERIOD: Duration = Duration::from_secs(60);

// === impl Outage ===

impl Outage {
    /// Records a failure, and returns true if it should be logged as a warning. `is_normal` is true
    /// for a failure that the next request repairs in most cases.
    pub(super) fn failed(&mut self, now: Instant, is_normal: bool) -> bool {
        let is_first = self.since.is_none();
        self.since.get_or_insert(now);
        let is_due = self.warned.is_none_or(|at| now.saturating_duration_since(at) >= WARN_PERIOD);
        let warns = is_due && !(is_first && is_normal);
        if warns {
            self.warned = Some(now);
            self.is_logged = true;
        }
        warns
    }

    /// Ends the outage, and returns its length if it was logged.
    pub(super) fn succeeded(&mut self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        let since = self.since.take()?;
        let is_logged = std::mem::take(&mut self.is_logged);
        is_logged.then(|| now().saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn outage_is_logged_at_its_begin_each_minute_and_at_its_end() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut outage = Outage::default();
        let warnings: Vec<_> =
            (0..130).filter(|second| outage.failed(at(*second), false)).collect();
        assert_eq!(warnings, [0, 60, 120]);
        assert_eq!(outage.succeeded(|| at(131)), Some(Duration::from_secs(131)));
        assert_eq!(outage.succeeded(|| at(132)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn normal_failure_is_logged_only_if_another_follows() {
        let now = Instant::now();
        let mut outage = Outage::default();
        for _ in 0..3 {
            assert!(!outage.failed(now, true));
            assert_eq!(outage.succeeded(|| now), None);
        }
        assert!(!outage.failed(now, true));
        assert!(outage.failed(now, true));
    }

    #[tokio::test(start_paused = true)]
    async fn flapping_server_causes_one_warning_a_minute() {
        let begun = Instant::now();
        let mut outage = Outage::default();
        let mut warnings = 0;
        for second in 0..600 {
            let now = begun + Duration::from_secs(second);
            warnings += u32::from(outage.failed(now, false));
            outage.succeeded(|| now);
        }
        assert_eq!(warnings, 10);
    }
}
