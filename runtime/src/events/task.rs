//! The task that turns recorded events into requests, and sends them one after another.

use std::future;
use std::sync::Arc;

use k8s_openapi::api::events::v1::Event;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Occurrence;
use super::correlator::Correlator;
use super::counts::Counts;
use super::post::Post;
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
                Some(post) => {
                    let fate = self.sender.send(post).await;
                    self.count(fate);
                }
                None => self.counts.filtered(),
            },
            Rules::Series(series) => {
                let evicted = series.make_room_for(&occurrence);
                let step = series.record(occurrence);
                self.send_counts(evicted).await;
                match step {
                    Step::Send(post) => {
                        let fate = self.send_of_series(post).await;
                        self.count(fate);
                    }
                    Step::Counted => self.counts.counted(),
                    Step::Filtered => self.counts.filtered(),
                }
            }
        }
    }

    /// Sends a request of a series. A count that the server does not get is sent again later.
    async fn send_of_series(&mut self, post: Post<Event>) -> Fate {
        let name = post.event().metadata.name.clone();
        let fate = self.sender.send(post).await;
        if fate != Fate::Sent
            && let Rules::Series(series) = &mut self.rules
        {
            series.mark_lost(name.as_deref());
        }
        fate
    }

    /// Counts the fate of one recorded event.
    fn count(&self, fate: Fate) {
        match fate {
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
    async fn send_counts(&mut self, posts: impl IntoIterator<Item = Post<Event>>) {
        for post in posts {
            self.send_of_series(post).await;
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
