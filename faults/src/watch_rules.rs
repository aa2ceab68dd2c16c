//! Rules for the events of watches.

use std::time::Duration;

use crate::Faults;
use crate::calls::Calls;
use crate::fault::Fault;
use crate::rules::FaultRule;
use crate::stream_fault::{Break, Cut, Hold, StreamFault};

/// Faults on the watches that open after the rule was added.
///
/// A rule for one position of a watch counts as hit when the watch reaches it: a break, a
/// corruption, an event that is held or lost. The others count when the watch opens.
impl Faults {
    /// Breaks each watch at the position `at` of its stream.
    ///
    /// With [`Calls::always`] and [`Cut::Events`] with 3, every watch ends after three events.
    #[track_caller]
    pub fn break_watches(&self, calls: impl Into<Calls>, at: Cut, how: Break) -> FaultRule {
        self.add(calls.into(), Fault::Stream(StreamFault::Break(at, how)))
    }

    /// Corrupts one byte of each watch, so that its event is not JSON.
    #[track_caller]
    pub fn corrupt_watches(&self, calls: impl Into<Calls>, at_byte: u64) -> FaultRule {
        self.add(calls.into(), Fault::Stream(StreamFault::Corrupt(at_byte)))
    }

    /// Removes the bookmarks from the watches.
    #[track_caller]
    pub fn drop_bookmarks(&self, calls: impl Into<Calls>) -> FaultRule {
        self.add(calls.into(), Fault::Stream(StreamFault::NoBookmarks))
    }

    /// Delays the events of the watches and keeps their order, so that the caches of two resources
    /// differ in age.
    #[track_caller]
    pub fn delay_events(&self, calls: impl Into<Calls>, delay: Duration) -> FaultRule {
        self.add(calls.into(), Fault::Stream(StreamFault::Delay(delay)))
    }

    /// Starts the watches `revisions` revisions earlier than requested, so that events are
    /// repeated.
    #[track_caller]
    pub fn rewind_watches(&self, calls: impl Into<Calls>, revisions: u64) -> FaultRule {
        self.add(calls.into(), Fault::Rewind(revisions))
    }

    /// Holds back the `nth` event of each watch, counted from 1 and with bookmarks, for `pause`
    /// after its arrival. The events behind it wait too, and then all arrive.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_faults::{Calls, Faults};
    ///
    /// // The second event of the first watch of pods is 10 s late.
    /// Faults::new().hold_event(Calls::watch("pods"), 2, Duration::from_secs(10));
    /// ```
    #[track_caller]
    pub fn hold_event(&self, calls: impl Into<Calls>, nth: u64, pause: Duration) -> FaultRule {
        self.hold(calls.into(), Hold { event: nth, pause, is_loss: false })
    }

    /// Loses the `nth` event of each watch, counted from 1 and with bookmarks, and those that
    /// follow within `pause`. Then the watch ends with the code 410: the client lists again, and
    /// never sees the states in between.
    #[track_caller]
    pub fn lose_events(&self, calls: impl Into<Calls>, nth: u64, pause: Duration) -> FaultRule {
        self.hold(calls.into(), Hold { event: nth, pause, is_loss: true })
    }

    #[track_caller]
    fn hold(&self, calls: Calls, hold: Hold) -> FaultRule {
        self.add(calls, Fault::Stream(StreamFault::Hold(hold)))
    }
}
