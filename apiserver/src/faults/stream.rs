//! What happens to the events of one watch.

mod body;

use std::fmt;
use std::time::Duration;

pub(super) use self::body::{open, reset};
use super::refusal::Refusal;

/// Where a watch breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After this many events, bookmarks included.
    Events(u64),
    /// After this many bytes.
    Bytes(u64),
}

/// How a watch breaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Break {
    /// It ends cleanly, as the server ends it after its time limit.
    End,
    /// The connection is reset: between two events after half of another one, or at just that byte.
    Reset,
    /// An event `ERROR` with this Status, and then a clean end.
    Error(Refusal),
    /// Half-open: nothing comes any more, and no end.
    Stall,
}

/// What happens to one watch.
#[derive(Debug, Clone)]
pub(super) enum StreamFault {
    Break(Cut, Break),
    Corrupt(u64),
    NoBookmarks,
    Delay(Duration),
}

/// Everything that happens to one watch.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamPlan {
    broken: Option<(Cut, Break)>,
    corrupt: Option<u64>,
    no_bookmarks: bool,
    delay: Duration,
    /// Whether each event is recorded.
    pub(super) told: bool,
}

// === impl StreamPlan ===

impl StreamPlan {
    pub(super) fn add(&mut self, fault: StreamFault) {
        match fault {
            StreamFault::Break(cut, how) => self.broken = self.broken.take().or(Some((cut, how))),
            StreamFault::Corrupt(at) => self.corrupt = self.corrupt.or(Some(at)),
            StreamFault::NoBookmarks => self.no_bookmarks = true,
            StreamFault::Delay(delay) => self.delay += delay,
        }
    }

    /// Whether lines can pass in whole chunks, uncounted.
    fn is_idle(&self) -> bool {
        self.broken.is_none()
            && self.corrupt.is_none()
            && !self.no_bookmarks
            && self.delay.is_zero()
            && !self.told
    }

    /// How the watch breaks, if it does so before the next event; it does so once.
    fn take_break(&mut self, events: u64) -> Option<Break> {
        match self.broken.take() {
            Some((Cut::Events(limit), how)) if events >= limit => Some(how),
            other => {
                self.broken = other;
                None
            }
        }
    }
}

// === impl Break ===

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("ended"),
            Self::Reset => f.write_str("reset"),
            Self::Error(refusal) => write!(f, "told {refusal}"),
            Self::Stall => f.write_str("silent from now on"),
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
            Self::Delay(delay) => write!(f, "{delay:?} late"),
        }
    }
}
