//! The points at which a client crashes.

use std::fmt;

/// The point at which a client crashes: before or after one of its calls, or at an event of its
/// watches, counted from 1.
///
/// Every request with a mutating [`Verb`](crate::Verb) counts, posts of events included: a
/// controller that records an event for each pod that it creates makes two mutating calls per pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// The call is not sent.
    Before(u64),
    /// The server processes the call; the client does not get the reply.
    After(u64),
    /// The read is not sent. Gets, lists and watches count.
    BeforeRead(u64),
    /// The server processes the read; the client does not get the reply.
    AfterRead(u64),
    /// The event is not delivered. The events of all watches count from the time at which the crash
    /// is planned, bookmarks included.
    AtEvent(u64),
}

/// The noun for what a [`CrashPoint`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Mutations,
    Reads,
    Events,
}

// === impl CrashPoint ===

impl CrashPoint {
    /// Returns every crash point at the writes of a run with `calls` mutating calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_faults::CrashPoint::{self, After, Before};
    ///
    /// let points: Vec<_> = CrashPoint::all(2).collect();
    /// assert_eq!(points, [Before(1), After(1), Before(2), After(2)]);
    /// ```
    pub fn all(calls: u64) -> impl Iterator<Item = Self> {
        (1..=calls).flat_map(|call| [Self::Before(call), Self::After(call)])
    }

    /// Returns the number of the call or event.
    pub fn call(self) -> u64 {
        match self {
            Self::Before(call)
            | Self::After(call)
            | Self::BeforeRead(call)
            | Self::AfterRead(call)
            | Self::AtEvent(call) => call,
        }
    }

    /// Returns what the number counts.
    pub(crate) fn counted(self) -> Counted {
        match self {
            Self::Before(_) | Self::After(_) => Counted::Mutations,
            Self::BeforeRead(_) | Self::AfterRead(_) => Counted::Reads,
            Self::AtEvent(_) => Counted::Events,
        }
    }

    /// Returns true if the request is not sent.
    pub(crate) fn is_before(self) -> bool {
        matches!(self, Self::Before(_) | Self::BeforeRead(_))
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(call) => write!(f, "before mutating call {call}"),
            Self::After(call) => write!(f, "after mutating call {call}"),
            Self::BeforeRead(read) => write!(f, "before read {read}"),
            Self::AfterRead(read) => write!(f, "after read {read}"),
            Self::AtEvent(event) => write!(f, "at event {event}"),
        }
    }
}

// === impl Counted ===

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutations => "mutating calls",
            Self::Reads => "reads",
            Self::Events => "events",
        })
    }
}
