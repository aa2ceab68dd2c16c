//! What is done to watches that are open.

use std::sync::Arc;

use bytes::Bytes;

use super::Faults;
use super::calls::Calls;
use super::refusal::Refusal;
use super::stream::Break;
use super::watch::{Command, HeldWatches};

// === impl Faults ===

impl Faults {
    /// The open watches break in the middle of a line, as if the connection were reset. `"pods"` means all watches of
    /// pods, `"*"` all of anything; [`Calls`] can say more. Returns how many were hit.
    pub fn tear_watches(&self, watches: impl Into<Calls>) -> usize {
        let words = "reset in the middle of a line";
        self.command(&watches.into(), &Command::Break(Break::Reset), words)
    }

    /// The open watches end cleanly, as the server ends them after their time limit.
    pub fn end_watches(&self, watches: impl Into<Calls>) -> usize {
        self.command(&watches.into(), &Command::Break(Break::End), "ended")
    }

    /// The open watches get an event `ERROR` with a 410 Status, and then end: their resource version is too old.
    pub fn expire_watches(&self, watches: impl Into<Calls>) -> usize {
        self.refuse_watches(watches, &Refusal::expired())
    }

    /// The open watches get an event `ERROR` with this Status, and then end.
    pub fn refuse_watches(&self, watches: impl Into<Calls>, refusal: &Refusal) -> usize {
        let command = Command::Break(Break::Error(refusal.clone()));
        self.command(&watches.into(), &command, &format!("told {refusal}"))
    }

    /// The open watches get this line between two events, and go on. The line need not be an event, nor JSON.
    pub fn inject_line(&self, watches: impl Into<Calls>, line: &str) -> usize {
        let command = Command::Line(Bytes::from(format!("{line}\n")));
        self.command(&watches.into(), &command, &format!("told {line}"))
    }

    /// Holds back what these watches would deliver, those that open later included, until the returned guard is
    /// dropped. Nothing is lost: an informer that is behind. Kept for ever, it is a half-open connection.
    pub fn hold_watches(&self, watches: impl Into<Calls>) -> HeldWatches {
        let calls = watches.into();
        let words = format!("held: {}", calls.words());
        self.shared.state.lock().record_words("".into(), words);
        HeldWatches::new(Arc::clone(&self.shared), calls)
    }

    /// How many of these watches are open.
    pub fn open_watches(&self, watches: impl Into<Calls>) -> usize {
        self.shared.watches.count(&watches.into())
    }

    fn command(&self, calls: &Calls, command: &Command, words: &str) -> usize {
        let hit = self.shared.watches.command(calls, command);
        for call in &hit {
            self.shared.record_on(call, words);
        }
        hit.len()
    }
}
