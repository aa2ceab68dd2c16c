//! [`Trouble`]: the failed attempts of a candidate since its last success, and which of them are
//! worth a line in the log. Pure.
//!
//! A lease that cannot be read or written shows in readiness and on the debug page. The log has a
//! line when it begins, one each minute while it lasts, and one when it ends, as for an informer.

use std::time::Duration;

use super::state::Moment;

/// The time between two warnings.
const WARN_PERIOD: Duration = Duration::from_secs(60);

/// The failed attempts since the last success.
///
/// All times are on the candidate's clock.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    failures: u64,
    /// The error of the last attempt; `None` after a success.
    last_error: Option<String>,
    /// The time of the first failure since the last success.
    since: Option<Moment>,
    /// The time of the last warning, in this series of failures or an earlier one.
    warned: Option<Moment>,
    /// True if this series was logged, so that its end is logged too.
    is_logged: bool,
}

/// A series of failures that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) outage: Duration,
    pub(super) failures: u64,
    pub(super) error: String,
}

// === impl Trouble ===

impl Trouble {
    /// Records a failed attempt. Returns true if it should be logged as a warning.
    pub(super) fn failed(&mut self, now: Moment, error: String) -> bool {
        self.failures += 1;
        self.last_error = Some(error);
        self.since.get_or_insert(now);
        let warns = self.warned.is_none_or(|at| now.saturating_sub(at) >= WARN_PERIOD);
        if warns {
            self.warned = Some(now);
            self.is_logged = true;
        }
        warns
    }

    /// Records an attempt without an error. Returns the series of failures that it ends, if that
    /// was logged.
    pub(super) fn succeeded(&mut self, now: Moment) -> Option<Ended> {
        let since = self.since.take()?;
        let failures = std::mem::take(&mut self.failures);
        let error = self.last_error.take().unwrap_or_default();
        let is_logged = std::mem::take(&mut self.is_logged);
        is_logged.then(|| Ended { outage: now.saturating_sub(since), failures, error })
    }

    /// Returns the number of consecutive failures.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns the error of the last attempt, if it failed.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_is_logged_at_its_start_each_minute_and_at_its_end() {
        let at = Duration::from_secs;
        let mut trouble = Trouble::default();
        assert_eq!(trouble.succeeded(at(1)), None);
        let failed = |trouble: &mut Trouble, second: u64| trouble.failed(at(second), "no".into());
        let warned: Vec<_> = (10..140).filter(|second| failed(&mut trouble, *second)).collect();
        assert_eq!(warned, [10, 70, 130]);
        assert_eq!((trouble.failures(), trouble.last_error()), (130, Some("no")));
        let ended = Ended { outage: at(130), failures: 130, error: "no".to_owned() };
        assert_eq!(trouble.succeeded(at(140)), Some(ended));
        assert_eq!((trouble.failures(), trouble.last_error()), (0, None));
        assert!(!failed(&mut trouble, 150), "less than a minute after the last warning");
        assert_eq!(trouble.succeeded(at(151)), None);
    }
}
