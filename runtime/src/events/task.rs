//! The task that turns recorded events into requests, and sends them one after another.

use std::future;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Occurrence;
use super::correlator::Correlator;
use super::counts::Counts;
use super::post::{Post, Stored};
use super::sender::{Fate, Sender};
use super::series::{SeriesCache, Step};

/// The parts of the task. One task sends all events, so that the count of an event is sent in
/// order.
pub(super) struct EventTask {
    pub(super) rules: Rules,
    pub(super) sender: Sender,
    pub(super) counts: Arc<Counts>,
}

/// The rules of the API to which the events go.
pub(super) enum Rules {
    Core(Correlator),
    Series(SeriesCache),
}

/// The recorded events that have no fate yet. Those that are left when the task is aborted count as
/// unsent.
struct Unfinished {
    occurrences: mpsc::Receiver<Occurrence>,
    /// True while an event that was taken from the channel is being sent.
    is_sending: bool,
    counts: Arc<Counts>,
}

// === impl EventTask ===

impl EventTask {
    /// Sends the recorded events, until the recorder is shut down and its queue is empty; then the
    /// last counts of the series.
    pub(super) async fn run(mut self, occurrences: mpsc::Receiver<Occurrence>) {
        let counts = Arc::clone(&self.counts);
        let mut unfinished = Unfinished { occurrences, is_sending: false, counts };
        loop {
            let occurrences = &mut unfinished.occurrences;
            let due_at = self.due_at();
            let occurrence = tokio::select! {
                biased;
                () = wait_until(due_at), if !occurrences.is_closed() => {
                    self.send_due().await;
                    continue;
                }
                occurrence = occurrences.recv() => occurrence,
                () = self.sender.wait_for_shut_down(), if !occurrences.is_closed() => {
                    occurrences.close(); // `recv` still returns the events in the channel.
                    continue;
                }
            };
            let Some(occurrence) = occurrence else { break };
            unfinished.is_sending = true;
            self.send(occurrence).await;
            unfinished.is_sending = false;
        }
        if let Rules::Series(series) = &mut self.rules {
            let last = series.finish();
            self.send_counts(last).await;
        }
    }

    /// Sends the request that `occurrence` causes, if any, and counts its fate.
    async fn send(&mut self, occurrence: Occurrence) {
        match &mut self.rules {
            Rules::Core(correlator) => match correlator.correlate(occurrence) {
                Some(post) => self.send_and_count(post).await,
                None => self.counts.filtered(),
            },
            Rules::Series(series) => {
                let evicted = series.make_room_for(&occurrence);
                let step = series.record(occurrence);
                self.send_counts(evicted).await;
                match step {
                    Step::Send(post) => self.send_and_count(post).await,
                    Step::Counted => self.counts.counted(),
                    Step::Filtered => self.counts.filtered(),
                }
            }
        }
    }

    /// Sends the request of one recorded event.
    async fn send_and_count<E: Stored>(&mut self, post: Post<E>) {
        match self.sender.send(post).await {
            Fate::Sent => self.counts.sent(),
            Fate::Refused => self.counts.refused(),
            Fate::Unsent => self.counts.unsent(),
        }
    }

    /// Returns the time of the next patch that no event causes.
    fn due_at(&self) -> Option<Instant> {
        match &self.rules {
            Rules::Core(_) => None,
            Rules::Series(series) => series.due_at(),
        }
    }

    async fn send_due(&mut self) {
        if let Rules::Series(series) = &mut self.rules {
            let due = series.take_due(Instant::now());
            self.send_counts(due).await;
        }
    }

    /// Sends counts of series. Their events are counted already.
    async fn send_counts<E: Stored>(&mut self, posts: impl IntoIterator<Item = Post<E>>) {
        for post in posts {
            self.sender.send(post).await;
        }
    }
}

// === impl Unfinished ===

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.occurrences.close();
        if self.is_sending {
            self.counts.unsent();
        }
        while self.occurrences.try_recv().is_ok() {
            self.counts.unsent();
        }
    }
}

/// Waits until `instant`. Never ready for `None`.
async fn wait_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => future::pending().await,
    }
}
