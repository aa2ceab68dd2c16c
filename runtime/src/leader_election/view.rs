//! The state of an election for the debug page.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::clock::LeaseClock;
use super::state::{Candidate, Moment, Record};
use super::trouble::{Ended, Trouble};
use crate::observe::LeaderReport;

/// The election as a candidate last saw it. Clones share it.
///
/// The candidate writes it after each attempt; a page reads it at any time, also after the
/// candidate has ended.
#[derive(Debug, Clone)]
pub(crate) struct ElectionView {
    lease: Arc<str>,
    identity: Arc<str>,
    clock: LeaseClock,
    seen: Arc<Mutex<Seen>>,
    trouble: Arc<Mutex<Trouble>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The record, and the moment at which it was first seen so.
    record: Option<(Record, Moment)>,
    /// The end of this candidate's leadership.
    valid_until: Option<Moment>,
}

// === impl ElectionView ===

impl ElectionView {
    pub(super) fn new(lease: &str, identity: &str, clock: LeaseClock) -> Self {
        Self {
            lease: lease.into(),
            identity: identity.into(),
            clock,
            seen: Arc::default(),
            trouble: Arc::default(),
        }
    }

    /// Records an attempt that failed. Returns true if it should be logged as a warning.
    pub(super) fn failed(&self, error: &str) -> bool {
        self.trouble.lock().failed(self.clock.now(), error.to_owned())
    }

    /// Records an attempt without an error. Returns the outage that it ends, if that was logged.
    pub(super) fn succeeded(&self) -> Option<Ended> {
        self.trouble.lock().succeeded(self.clock.now())
    }

    /// Copies what the candidate knows.
    pub(super) fn update(&self, candidate: &Candidate) {
        let record = candidate.observed().map(|(record, at)| (record.clone(), at));
        *self.seen.lock() = Seen { record, valid_until: candidate.valid_until() };
    }

    /// Shows that this candidate leads no longer, whatever its deadline says.
    pub(super) fn ended(&self) {
        self.seen.lock().valid_until = None;
    }

    /// Takes the record with which this candidate has given the lease up.
    pub(super) fn released(&self, record: Record) {
        *self.seen.lock() = Seen { record: Some((record, self.clock.now())), valid_until: None };
    }

    /// Returns the state now: a leader whose deadline has passed leads no longer.
    pub(crate) fn report(&self) -> LeaderReport {
        let now = self.clock.now();
        let (failures, last_error) = {
            let trouble = self.trouble.lock();
            (trouble.failures(), trouble.last_error().map(str::to_owned))
        };
        let seen = self.seen.lock();
        let record = seen.record.as_ref();
        let holder = record.map(|(record, _)| record.holder.clone());
        LeaderReport {
            lease: self.lease.to_string(),
            identity: self.identity.to_string(),
            is_leader: seen.valid_until.is_some_and(|until| now < until),
            holder: holder.filter(|holder| !holder.is_empty()),
            since: record.and_then(|(record, _)| record.acquired).map(seconds_of),
            renewed: record.map(|(_, at)| now.saturating_sub(*at)),
            transitions: record.map_or(0, |(record, _)| record.transitions),
            left: seen.valid_until.map(|until| until.saturating_sub(now)),
            failures,
            last_error,
        }
    }
}

/// Returns the time in RFC 3339 with whole seconds.
fn seconds_of(time: Timestamp) -> String {
    let whole = time - Duration::from_nanos(u64::try_from(time.subsec_nanosecond()).unwrap_or(0));
    whole.to_string()
}

#[cfg(test)]
mod tests {
    use super::super::state::{Step, Stored, Timing, Written};
    use super::*;

    const TIMING: Timing = Timing {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    fn view(clock: LeaseClock) -> (ElectionView, Candidate) {
        let candidate = Candidate::new("me".to_owned(), TIMING);
        (ElectionView::new("shop/lease", "me", clock), candidate)
    }

    #[tokio::test(start_paused = true)]
    async fn leader_leads_until_its_deadline() {
        let clock = LeaseClock::tokio();
        let (view, mut candidate) = view(clock);
        let report = view.report();
        assert_eq!((report.holder, report.renewed, report.is_leader), (None, None, false));
        let wall: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let step = candidate.read(None, clock.now(), wall);
        assert!(matches!(step, Step::Create(_)), "{step:?}");
        candidate.written(Written::Stored("1".to_owned()), clock.now(), clock.now());
        view.update(&candidate);
        tokio::time::advance(Duration::from_secs(4)).await;
        let report = view.report();
        assert!(report.is_leader);
        assert_eq!(report.holder.as_deref(), Some("me"));
        assert_eq!(report.since.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(report.renewed, Some(Duration::from_secs(4)));
        assert_eq!(report.left, Some(Duration::from_secs(6)));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(!view.report().is_leader, "its deadline has passed, whatever the candidate does");
    }

    #[tokio::test(start_paused = true)]
    async fn follower_shows_the_holder_and_the_transitions() {
        let clock = LeaseClock::tokio();
        let (view, mut candidate) = view(clock);
        let record = Record {
            holder: "other".into(),
            lease_seconds: 15,
            transitions: 3,
            ..Record::default()
        };
        let lease = Stored { record, version: "7".to_owned() };
        candidate.read(Some(lease), clock.now(), Timestamp::UNIX_EPOCH);
        view.update(&candidate);
        let report = view.report();
        assert_eq!((report.holder.as_deref(), report.is_leader), (Some("other"), false));
        assert_eq!((report.transitions, report.since, report.left), (3, None, None));
    }
}
