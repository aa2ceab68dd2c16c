//! The webhook calls of one request: the questions that are open, and the answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::review::ReviewKind;
use super::webhook::Address;
use crate::metrics::{Counter, Label, Tally};

/// The webhook calls of one request, and the random values that stay the same when the request is
/// carried out again.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The counts of the present attempt.
    tally: Tally,
    /// Questions that are not asked yet. Empty unless the last attempt stopped.
    open: Vec<Question>,
    answered: Vec<(Question, Answered)>,
    /// The time of the request, once a write has used it.
    time: Option<Timestamp>,
    /// The time of the first question.
    start: Option<Instant>,
    /// The values that each attempt at a name has drawn.
    drawn: Vec<Drawn>,
}

/// The random values of a new object.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) uid: String,
    /// Appended to `generateName`.
    pub(crate) suffix: String,
}

/// A review that a webhook is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The webhook, and the number of its call for this request.
    pub(super) caller: (String, u8),
    pub(super) review: &'static ReviewKind,
    /// The request as the webhook sees it, without the uid of the review.
    pub(super) content: Arc<str>,
    /// The uid of the review; empty until it is sent.
    pub(super) uid: String,
    /// The version of the review.
    pub(super) version: &'static str,
    pub(super) address: Arc<Address>,
}

/// An answer, and the time that it took.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) time: Duration,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The body of a reply with a status of success.
    Body(Bytes),
    /// No reply, or one with another status: the code of the error in metrics, and the reason, in
    /// the words of the real server.
    Failed { code: u16, why: String },
}

// === impl Question ===

impl Question {
    /// Returns the question with the uid of its review.
    pub(crate) fn with_uid(self, uid: String) -> Self {
        Self { uid, ..self }
    }
}

// === impl Conversation ===

impl Conversation {
    /// Returns the answer to a question, with the uid of its review. An open question is
    /// kept until [`take_open`](Self::take_open).
    pub(super) fn answer(
        &self,
        caller: (&str, u8),
        content: String,
        ask: impl FnOnce(Arc<str>) -> Question,
    ) -> Option<(String, Answered)> {
        let mut state = self.state.lock();
        let is_same = |question: &Question| {
            (question.caller.0.as_str(), question.caller.1) == caller
                && *question.content == *content
        };
        if let Some((question, answer)) = state.answered.iter().find(|(asked, _)| is_same(asked)) {
            return Some((question.uid.clone(), answer.clone()));
        }
        if !state.open.iter().any(is_same) {
            state.open.push(ask(content.into()));
        }
        None
    }

    /// Returns true if this attempt has left a question.
    pub(crate) fn is_open(&self) -> bool {
        !self.state.lock().open.is_empty()
    }

    /// Takes the questions at which the last attempt stopped; none if it did not stop.
    pub(crate) fn take_open(&self) -> Vec<Question> {
        let mut state = self.state.lock();
        if !state.open.is_empty() {
            // The next attempt counts again.
            state.tally = Tally::default();
        }
        std::mem::take(&mut state.open)
    }

    /// Counts an event of this attempt; the labels are those of the counter, in its order.
    pub(crate) fn count(&self, counter: Counter, labels: &[Label]) {
        self.state.lock().tally.count(counter, labels);
    }

    /// Counts the time of a call; see [`Tally::observe_webhook`].
    pub(super) fn observe_webhook(&self, labels: [Label; 4], time: Duration) {
        self.state.lock().tally.observe_webhook(labels, time);
    }

    /// Takes what the last attempt has counted.
    pub(crate) fn take_tally(&self) -> Tally {
        std::mem::take(&mut self.state.lock().tally)
    }

    pub(crate) fn keep(&self, answers: impl IntoIterator<Item = (Question, Answered)>) {
        self.state.lock().answered.extend(answers);
    }

    /// Drops the answers, which concern an object that is done with.
    pub(crate) fn forget(&self) {
        self.state.lock().answered.clear();
    }

    /// Returns the time of the request, which is `now` at the first call.
    pub(crate) fn time(&self, now: Timestamp) -> Timestamp {
        *self.state.lock().time.get_or_insert(now)
    }

    /// Returns the time at which the request began to ask, which is `now` at the first call.
    pub(crate) fn start(&self, now: Instant) -> Instant {
        *self.state.lock().start.get_or_insert(now)
    }

    /// Returns the random values of an attempt at a name, which it draws once.
    pub(crate) fn drawn(&self, attempt: usize, draw: impl FnOnce() -> Drawn) -> Drawn {
        let mut state = self.state.lock();
        if let Some(known) = state.drawn.get(attempt) {
            return known.clone();
        }
        let drawn = draw();
        state.drawn.push(drawn.clone());
        drawn
    }
}
