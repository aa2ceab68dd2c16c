//! Faults on watches that are open now.

use std::sync::Arc;

use bytes::Bytes;

use crate::Faults;
use crate::api_error::ApiError;
use crate::calls::Calls;
use crate::held_watches::HeldWatches;
use crate::open_watches::Command;
use crate::rules::RuleCounts;
use crate::stream_fault::Break;

// === impl Faults ===

impl Faults {
    /// Resets the open watches in the middle of a line.
    ///
    /// `"pods"` selects all watches of pods, `"*"` all watches; [`Calls`] selects more precisely.
    /// Returns the number of watches that were hit. Watches that are [stalled](Break::Stall), and
    /// those of crashed clients, are not hit by any method here.
    ///
    /// # Panics
    ///
    /// Panics if a resource name is invalid or unknown, as all methods below do.
    #[track_caller]
    pub fn tear_watches(&self, watches: impl Into<Calls>) -> usize {
        let message = "reset in the middle of a line";
        self.command(&watches.into(), &Command::Break(Break::Reset), message)
    }

    /// Ends the open watches without an error, as the server does after its timeout. Returns their
    /// number.
    #[track_caller]
    pub fn end_watches(&self, watches: impl Into<Calls>) -> usize {
        self.command(&watches.into(), &Command::Break(Break::End), "ended")
    }

    /// Ends the open watches with an `ERROR` event of code 410: their resource version is too old.
    /// Returns their number.
    #[track_caller]
    pub fn expire_watches(&self, watches: impl Into<Calls>) -> usize {
        self.fail_watches(watches, &ApiError::expired())
    }

    /// Ends the open watches with an `ERROR` event. Returns their number.
    #[track_caller]
    pub fn fail_watches(&self, watches: impl Into<Calls>, error: &ApiError) -> usize {
        let command = Command::Break(Break::Error(error.clone()));
        self.command(&watches.into(), &command, &format!("ended with {error}"))
    }

    /// Inserts a line between two events of the open watches. The line need not be a valid event.
    /// Returns the number of watches.
    #[track_caller]
    pub fn inject_line(&self, watches: impl Into<Calls>, line: &str) -> usize {
        let command = Command::Line(Bytes::from(format!("{line}\n")));
        self.command(&watches.into(), &command, &format!("injected line {line}"))
    }

    /// Holds back the events of the selected watches, including watches that open later, until the
    /// returned guard is dropped.
    ///
    /// No event is lost: the caches behind the watches are stale. A guard that is never dropped
    /// simulates a half-open connection. [`assert_all_hit`](Faults::assert_all_hit) checks that a
    /// watch was open, or was opened, while the guard lived.
    #[track_caller]
    pub fn hold_watches(&self, watches: impl Into<Calls>) -> HeldWatches {
        let calls = watches.into();
        self.check_resources(&calls);
        let message = format!("held: {calls}");
        let counts = Arc::new(RuleCounts::of_guard(format!("events held, for {calls}"), "watch"));
        {
            let mut state = self.shared.state.lock();
            state.record_client("".into(), message);
            state.remember(Arc::clone(&counts));
        }
        HeldWatches::new(Arc::clone(&self.shared), calls, counts)
    }

    /// Returns the number of open watches that the selector matches.
    #[track_caller]
    pub fn open_watches(&self, watches: impl Into<Calls>) -> usize {
        let calls = watches.into();
        self.check_resources(&calls);
        self.shared.watches.count(&calls)
    }

    #[track_caller]
    fn command(&self, calls: &Calls, command: &Command, message: &str) -> usize {
        self.check_resources(calls);
        let hit = self.shared.watches.command(calls, command);
        for request in &hit {
            self.shared.record_on(request, message);
        }
        hit.len()
    }
}
