//! Faults on the events of one watch, and the plan of all of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api_error::ApiError;
use crate::rules::RuleCounts;

/// The position at which a watch breaks.
///
/// # Examples
///
/// ```
/// use homeostat_faults::{Break, Calls, Cut, Faults};
///
/// // Every watch of pods ends after three events.
/// Faults::new().break_watches(Calls::watch("pods").always(), Cut::Events(3), Break::End);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After this many events, bookmarks included.
    Events(u64),
    /// After this many bytes.
    Bytes(u64),
}

/// The way in which a watch breaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Break {
    /// The stream ends without an error, as the server ends a watch after its timeout.
    End,
    /// The connection is reset: after an incomplete event, or exactly at the byte of the cut.
    Reset,
    /// The stream delivers an `ERROR` event with this error and ends.
    Error(ApiError),
    /// The connection is half-open: the stream delivers nothing and does not end. Faults on open
    /// watches do not hit it.
    Stall,
}

/// One fault on a watch.
#[derive(Debug, Clone)]
pub(crate) enum StreamFault {
    Break(Cut, Break),
    Corrupt(u64),
    NoBookmarks,
    Delay(Duration),
    Hold(Hold),
}

/// An event that waits, with those behind it, and what then happens to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The position of the event in the watch, counted from 1.
    pub(crate) event: u64,
    pub(crate) pause: Duration,
    /// True if the watch then ends with the code 410 instead of delivering the events.
    pub(crate) is_loss: bool,
}

/// All faults on one watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamPlan {
    broken: Vec<Planned<(Cut, Break)>>,
    corrupt: Vec<Planned<u64>>,
    pub(crate) no_bookmarks: bool,
    pub(crate) delay: Duration,
    held: Vec<Planned<Hold>>,
    /// The rules of the faults that last as long as the watch.
    lasting: Vec<Arc<RuleCounts>>,
    /// True if the trace records each event.
    pub(crate) is_traced: bool,
}

/// A fault at one position of a watch.
#[derive(Debug, Clone)]
struct Planned<F> {
    fault: F,
    /// Counts the hit when the watch reaches the position.
    rule: Arc<RuleCounts>,
}

// === impl StreamPlan ===

impl StreamPlan {
    pub(crate) fn add(&mut self, fault: StreamFault, rule: Arc<RuleCounts>) {
        match fault {
            StreamFault::Break(cut, how) => self.broken.push(Planned { fault: (cut, how), rule }),
            StreamFault::Corrupt(at) => self.corrupt.push(Planned { fault: at, rule }),
            StreamFault::Hold(hold) => self.held.push(Planned { fault: hold, rule }),
            StreamFault::NoBookmarks => {
                self.no_bookmarks = true;
                self.lasting.push(rule);
            }
            StreamFault::Delay(delay) => {
                self.delay = self.delay.saturating_add(delay);
                self.lasting.push(rule);
            }
        }
    }

    /// Counts the hits of the faults that last as long as the watch, which opens.
    pub(crate) fn count_lasting(&self) {
        self.lasting.iter().for_each(|rule| rule.count_hit());
    }

    /// Returns true if chunks can pass without being split into lines.
    pub(crate) fn is_idle(&self) -> bool {
        self.broken.is_empty()
            && self.corrupt.is_empty()
            && !self.no_bookmarks
            && self.delay.is_zero()
            && self.held.is_empty()
            && !self.is_traced
    }

    /// Returns the oldest planned hold that begins with this event, and removes it.
    pub(crate) fn take_hold(&mut self, event: u64) -> Option<Hold> {
        let at = self.held.iter().position(|hold| hold.fault.event <= event)?;
        Some(self.held.remove(at).hit())
    }

    /// Returns the planned break if it is due before the next event, and removes it.
    pub(crate) fn take_break(&mut self, events: u64) -> Option<Break> {
        let is_due = |cut| matches!(cut, Cut::Events(limit) if events >= limit);
        let at = self.broken.iter().position(|planned| is_due(planned.fault.0))?;
        Some(self.broken.remove(at).hit().1)
    }

    /// Returns the first planned break at a byte before `end`, or at it, and removes it.
    pub(crate) fn take_break_until(&mut self, end: u64) -> Option<(u64, Break)> {
        let due =
            self.broken.iter().enumerate().filter_map(|(at, planned)| match planned.fault.0 {
                Cut::Bytes(limit) if limit <= end => Some((limit, at)),
                _ => None,
            });
        let (limit, at) = due.min()?;
        Some((limit, self.broken.remove(at).hit().1))
    }

    /// Returns the planned corruptions of the bytes from `start` up to `end`, and removes them.
    pub(crate) fn take_corrupt(&mut self, start: u64, end: u64) -> Vec<u64> {
        let here = self.corrupt.extract_if(.., |planned| (start..end).contains(&planned.fault));
        here.map(Planned::hit).collect()
    }
}

// === impl Planned ===

impl<F> Planned<F> {
    /// Counts the hit. Returns the fault.
    fn hit(self) -> F {
        self.rule.count_hit();
        self.fault
    }
}

// === impl Break ===

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("ended"),
            Self::Reset => f.write_str("reset"),
            Self::Error(error) => write!(f, "ended with {error}"),
            Self::Stall => f.write_str("stalled"),
        }
    }
}

// === impl StreamFault ===

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Break(Cut::Events(events), how) => write!(f, "{how} after {events} events"),
            Self::Break(Cut::Bytes(bytes), how) => write!(f, "{how} after {bytes} bytes"),
            Self::Corrupt(at) => write!(f, "corrupt at byte {at}"),
            Self::NoBookmarks => f.write_str("without bookmarks"),
            Self::Delay(delay) => write!(f, "delayed by {delay:?}"),
            Self::Hold(hold) => hold.fmt(f),
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, pause, is_loss } = self;
        match is_loss {
            true => write!(f, "loses event {event} and those of the next {pause:?}"),
            false => write!(f, "holds event {event} for {pause:?}"),
        }
    }
}
