//! The decisions of one candidate. Pure: the caller sends the requests and passes the time.
//!
//! A candidate reads the lease, waits while another candidate's is valid, writes its own name, and
//! renews. Three rules differ from client-go, so that two candidates never lead at once:
//!
//! * Leadership ends at the *start* of the last successful request plus the renew deadline.
//!   client-go counts from its answer, which may be late by as long as a request may take.
//! * A read that shows another holder ends leadership at once.
//! * A lease that vanishes while another candidate holds it stays held until it would have expired.
//!
//! ```text
//!  begin ─▶ Read ─▶ read ──┬─▶ Waiting            another candidate holds the lease
//!    │                     ├─▶ Create ──┐
//!    │ leader: fast path   ├─▶ Replace ─┼─▶ written ─┬─▶ Leading
//!    └─────────────────────┘            │            ├─▶ Read       conflict as a leader
//!                                       │            └─▶ Waiting    conflict, or no answer
//!                          └─▶ Lost     the lease names another holder
//! ```
//!
//! Two clocks: a [`Moment`] of the monotonic clock decides about all deadlines; wall times are
//! written for people and are only compared for equality.

mod record;
mod step;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

pub(crate) use self::record::{Record, Stored};
pub(crate) use self::step::{Loss, Step, Written};

/// A point on the candidate's clock, as the time since the clock's origin.
///
/// The clock of the elector includes the time of a suspend.
pub(crate) type Moment = Duration;

/// Six renew deadlines of attempts with the default periods. A record that is older and appears now
/// is not recognised: the candidate then waits until that lease expires, which is safe.
const MAX_ATTEMPTS: usize = 32;

/// Periods of an election; see the builder for their meaning.
///
/// The builder checks that `lease_duration > renew_deadline > 1.2 · retry_period`, as in client-go.
/// The first difference is the margin for clocks of different speed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Time for which other candidates wait after a renewal.
    pub(crate) lease_duration: Duration,
    /// Time from the start of a renewal to the end of leadership.
    pub(crate) renew_deadline: Duration,
    /// Pause between two attempts of a leader; other candidates add jitter.
    pub(crate) retry_period: Duration,
}

/// One candidate's view of the election.
///
/// It has no lock: one task owns it. The method that takes an answer gets the time of the call, so
/// that a test can delay any answer.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The name that this candidate writes. Another process may use it too, by mistake.
    identity: String,
    timing: Timing,
    /// The lease as last seen, and the moment at which it was first seen so.
    observed: Option<(Stored, Moment)>,
    /// The records that this candidate tried to write, newest last. The answer to any of them may
    /// have been lost.
    attempts: VecDeque<Record>,
    /// True from a write without an answer until the lease shows that it cannot be stored any more.
    is_unanswered: bool,
    /// End of leadership, unless it is renewed. `None` if the candidate does not lead.
    valid_until: Option<Moment>,
}

// === impl Candidate ===

impl Candidate {
    /// Starts without having seen the lease, and without leading.
    pub(crate) fn new(identity: String, timing: Timing) -> Self {
        let attempts = VecDeque::with_capacity(MAX_ATTEMPTS);
        let (observed, valid_until) = (None, None);
        Self { identity, timing, observed, attempts, is_unanswered: false, valid_until }
    }

    /// Returns the end of leadership; `None` if the candidate does not lead.
    pub(crate) fn valid_until(&self) -> Option<Moment> {
        self.valid_until
    }

    /// Returns true until leadership ends. Never true after the deadline, whatever was answered
    /// meanwhile.
    pub(crate) fn is_leader(&self, now: Moment) -> bool {
        self.valid_until.is_some_and(|until| now < until)
    }

    /// Returns true if the lease may name this candidate although no answer has said so.
    pub(crate) fn may_hold(&self) -> bool {
        self.is_unanswered
    }

    /// Returns the lease as last seen, and the moment at which it was first seen so.
    pub(crate) fn observed(&self) -> Option<(&Record, Moment)> {
        self.observed.as_ref().map(|(stored, at)| (&stored.record, *at))
    }

    /// Returns the holder that the lease named when it was last read.
    pub(crate) fn holder(&self) -> Option<&str> {
        let (stored, _) = self.observed.as_ref()?;
        Some(&stored.record.holder).filter(|holder| !holder.is_empty()).map(String::as_str)
    }

    /// Starts an attempt to acquire or renew the lease.
    ///
    /// A leader whose deadline has passed does nothing here: the caller ends its leadership.
    pub(crate) fn begin(&mut self, now: Moment, wall: Timestamp) -> Step {
        if self.valid_until.is_none() {
            return Step::Read;
        }
        if !self.is_leader(now) {
            return Step::Waiting;
        }
        // The fast path of a leader: it writes without reading first.
        match &self.observed {
            Some((stored, _)) if self.is_mine(&stored.record) => {
                let version = stored.version.clone();
                let record = self.renewal(&stored.record.clone(), wall);
                self.replace(record, version)
            }
            _ => Step::Read,
        }
    }

    /// Takes the answer to [`Step::Read`]: the lease, or `None` if there is none.
    ///
    /// A record that changed starts a new wait of its full duration, measured by this candidate's
    /// clock from now. So a candidate that has just started waits for one lease duration, even if
    /// the lease is years old, as in client-go.
    pub(crate) fn read(&mut self, lease: Option<Stored>, now: Moment, wall: Timestamp) -> Step {
        let Some(lease) = lease else { return self.absent(now, wall) };
        let changed = self.observed.as_ref().is_none_or(|(stored, _)| *stored != lease);
        if changed {
            self.observed = Some((lease.clone(), now));
        }
        // A write that arrives after another candidate's change conflicts with it.
        self.is_unanswered &= !changed || self.is_mine(&lease.record);
        if self.is_mine(&lease.record) {
            let record = self.renewal(&lease.record, wall);
            return self.replace(record, lease.version);
        }
        if self.valid_until.is_some() {
            return self.lose(&lease.record);
        }
        if self.is_held(now) {
            return Step::Waiting;
        }
        let record = Record {
            transitions: lease.record.transitions.saturating_add(1),
            acquired: Some(wall),
            ..self.renewal(&lease.record, wall)
        };
        self.replace(record, lease.version)
    }

    /// Takes the outcome of a write that was begun at `started`.
    ///
    /// A write whose answer arrives after the deadline does not lead to leadership: the lease was
    /// renewed, but the time is over. A candidate that did not lead before tries again. One that
    /// led has lost: its work was aborted at the deadline.
    pub(crate) fn written(&mut self, outcome: Written, started: Moment, now: Moment) -> Step {
        match outcome {
            Written::Stored(version) => {
                self.is_unanswered = false;
                let record = self.attempts.back().cloned().unwrap_or_default();
                self.observed = Some((Stored { record, version }, now));
                let until = started.saturating_add(self.timing.renew_deadline);
                let has_lost = self.valid_until.is_some() && !self.is_leader(now);
                if now >= until || has_lost {
                    return Step::Waiting;
                }
                self.valid_until = Some(until);
                Step::Leading
            }
            // A leader must know at once who changed its lease. Another candidate waits for its
            // next attempt.
            Written::Conflict if self.valid_until.is_some() => Step::Read,
            Written::Conflict => Step::Waiting,
            Written::Failed => {
                self.is_unanswered = true;
                Step::Waiting
            }
        }
    }

    /// Ends leadership without a request, for example at its deadline.
    ///
    /// The lease stays as it is and expires.
    pub(crate) fn step_down(&mut self) {
        self.valid_until = None;
    }

    /// Returns the record that gives the lease up, and the version to replace. `None` if it is not
    /// this candidate's.
    ///
    /// The record has no holder and a duration of 1 s, as in client-go, so that the next candidate
    /// takes it at its next attempt.
    pub(crate) fn release(&mut self, wall: Timestamp) -> Option<(Record, String)> {
        self.valid_until = None;
        let (stored, _) =
            self.observed.as_ref().filter(|(stored, _)| self.is_mine(&stored.record))?;
        let record = Record {
            holder: String::new(),
            lease_seconds: 1,
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: stored.record.transitions,
        };
        Some((record, stored.version.clone()))
    }

    /// Takes a lease that was read while releasing. Returns what [`release`](Self::release)
    /// returns.
    ///
    /// It is called after a conflict: another party, such as a person with kubectl, has changed the
    /// lease.
    pub(crate) fn read_for_release(
        &mut self,
        lease: Stored,
        now: Moment,
        wall: Timestamp,
    ) -> Option<(Record, String)> {
        self.observed = Some((lease, now));
        self.release(wall)
    }

    /// The lease does not exist.
    ///
    /// A lease that vanished while another candidate held it still counts until it would have
    /// expired: that candidate cannot know yet. Otherwise the step creates it.
    fn absent(&mut self, now: Moment, wall: Timestamp) -> Step {
        let is_others =
            self.observed.as_ref().is_some_and(|(stored, _)| !self.is_mine(&stored.record));
        if is_others && self.is_held(now) {
            return Step::Waiting;
        }
        let record = Record { acquired: Some(wall), ..self.renewal(&Record::default(), wall) };
        self.remember(&record);
        Step::Create(record)
    }

    /// Ends leadership because `record` is not this candidate's.
    fn lose(&mut self, record: &Record) -> Step {
        self.valid_until = None;
        Step::Lost(if record.holder == self.identity {
            Loss::SharedIdentity
        } else {
            Loss::TakenBy(record.holder.clone())
        })
    }

    /// Remembers the record before it is sent: the answer may be lost.
    fn replace(&mut self, record: Record, version: String) -> Step {
        self.remember(&record);
        Step::Replace { record, version }
    }

    /// Keeps the newest [`MAX_ATTEMPTS`] records.
    fn remember(&mut self, record: &Record) {
        if self.attempts.len() == MAX_ATTEMPTS {
            self.attempts.pop_front();
        }
        self.attempts.push_back(record.clone());
    }

    /// Returns `old` with this holder and a new renew time.
    fn renewal(&self, old: &Record, wall: Timestamp) -> Record {
        Record {
            holder: self.identity.clone(),
            lease_seconds: record::seconds(self.timing.lease_duration),
            renewed: Some(wall),
            acquired: old.acquired,
            transitions: old.transitions,
        }
    }

    /// Returns true if this very candidate wrote the record. Equal names are not enough: another
    /// process may use them.
    ///
    /// A record that this candidate wrote without an answer counts too, because the write may have
    /// been stored.
    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity && self.attempts.contains(record)
    }

    /// Returns true while the observed holder may still lead.
    ///
    /// A lease without a holder is free. A duration that is not positive counts as this candidate's
    /// own.
    fn is_held(&self, now: Moment) -> bool {
        let Some((stored, since)) = &self.observed else { return false };
        if stored.record.holder.is_empty() {
            return false;
        }
        // A number that makes no sense must not lead to an early takeover.
        let duration =
            u64::try_from(stored.record.lease_seconds).ok().filter(|seconds| *seconds > 0);
        let duration = duration.map_or(self.timing.lease_duration, Duration::from_secs);
        now < since.saturating_add(duration)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
