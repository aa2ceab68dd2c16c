//! [`Patient`]: a watch that ends with an error when it is silent for too long.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{WatchError, WatchEvent, WatchRequest, WatchStream};

/// An open watch, and the time at which it counts as dead.
///
/// The timer is reset only when it fires, or when the first bookmark makes the deadline earlier. So
/// a busy watch does not touch the timer for each batch.
pub(crate) struct Patient<K> {
    stream: WatchStream<K>,
    patience: Patience,
    /// Fires at the deadline or earlier.
    overdue: Pin<Box<Sleep>>,
}

/// The time at which a watch without data counts as dead.
///
/// Two kinds of servers need two limits. A server that sends bookmarks does so every minute, so
/// that silence shows a dead connection early. Another server may be silent for the complete
/// timeout.
struct Patience {
    /// The end of the requested time, and some seconds.
    end: Instant,
    /// The time from opening the watch to `end`.
    timeout: Duration,
    /// The time of the last data, once a bookmark has arrived: the server sends bookmarks.
    heard: Option<Instant>,
    /// The longest silence of a server that sends bookmarks.
    silence: Duration,
}

/// The time that a watch may exceed its timeout. A server that has not closed it by then is
/// unreachable.
const GRACE: Duration = Duration::from_secs(5);

// === impl Patient ===

impl<K> Patient<K> {
    /// Waits for the batches of `stream`, which was opened at `opened` for `request`.
    pub(crate) fn new(stream: WatchStream<K>, opened: Instant, request: &WatchRequest) -> Self {
        let patience = Patience::new(opened, request.timeout, request.silence);
        let overdue = Box::pin(sleep_until(patience.deadline()));
        Self { stream, patience, overdue }
    }

    /// Waits for the next batch, at most until the watch counts as dead. `target` names it then.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing: a batch leaves the stream in the poll that returns it.
    pub(crate) async fn next(
        &mut self,
        target: impl FnOnce() -> Arc<str>,
    ) -> Option<Result<Vec<WatchEvent<K>>, WatchError>> {
        let next = loop {
            tokio::select! {
                biased;
                () = self.overdue.as_mut() => {}
                next = self.stream.next() => break next,
            }
            if let Some(timeout) = self.patience.is_over(Instant::now()) {
                let silent = |target| WatchError::Silent { target, timeout };
                match self.waiting() {
                    Poll::Ready(next) => break next,
                    Poll::Pending => return Some(Err(silent(target()))),
                }
            }
            self.overdue.as_mut().reset(self.patience.deadline());
        };
        if let Some(Ok(events)) = &next
            && self.patience.received(events)
        {
            self.overdue.as_mut().reset(self.patience.deadline());
        }
        next
    }

    /// Takes a batch that has arrived already: that is no silence, because the reader itself may
    /// have been late. Takes none after the end of the requested time.
    fn waiting(&mut self) -> Poll<Option<Result<Vec<WatchEvent<K>>, WatchError>>> {
        if self.patience.has_ended(Instant::now()) {
            return Poll::Pending;
        }
        unconstrained(self.stream.next()).now_or_never().map_or(Poll::Pending, Poll::Ready)
    }
}

// === impl Patience ===

impl Patience {
    /// Starts with a watch that was opened at `opened` for the time `asked`. Without a bookmark
    /// only its end counts.
    ///
    /// `asked` is the `timeoutSeconds` of the request; the server should close the watch by then.
    fn new(opened: Instant, asked: Duration, silence: Duration) -> Self {
        let timeout = asked.saturating_add(GRACE);
        Self { end: later(opened, timeout), timeout, heard: None, silence }
    }

    /// Returns the time at which the watch counts as dead, unless data arrives.
    fn deadline(&self) -> Instant {
        self.heard.map_or(self.end, |at| self.end.min(later(at, self.silence)))
    }

    /// Records the arrival of data. Returns true if the deadline is earlier than before: with the
    /// first bookmark.
    fn received<K>(&mut self, events: &[WatchEvent<K>]) -> bool {
        let is_first = self.heard.is_none();
        let bookmark = |event: &WatchEvent<K>| {
            matches!(event, WatchEvent::Bookmark { initial_events_end: false, .. })
        };
        if is_first && !events.iter().any(bookmark) {
            return false;
        }
        self.heard = Some(Instant::now());
        is_first
    }

    /// Returns true if the server should have closed the watch, and had some seconds more.
    fn has_ended(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// Returns the exceeded limit if the watch counts as dead at `now`.
    fn is_over(&self, now: Instant) -> Option<Duration> {
        if self.has_ended(now) {
            return Some(self.timeout);
        }
        (now >= self.deadline()).then_some(self.silence)
    }
}

/// Returns the time `after` an instant; for a time beyond the end of time, thirty years later.
pub(crate) fn later(instant: Instant, after: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    instant.checked_add(after).unwrap_or_else(|| instant + FAR)
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use k8s_openapi::api::core::v1::Pod;
    use tokio::time::advance;

    use super::*;

    fn bookmark(version: &str) -> Vec<WatchEvent<Pod>> {
        let resource_version = version.into();
        vec![WatchEvent::Bookmark { resource_version, initial_events_end: false }]
    }

    #[tokio::test(start_paused = true)]
    async fn batch_that_waits_to_be_read_is_no_silence() {
        let request = WatchRequest::after("1".into(), Duration::from_secs(600));
        let batches = stream::iter(["2", "3"].map(bookmark).map(Ok)).chain(stream::pending());
        let mut watch = Patient::new(batches.boxed(), Instant::now(), &request);
        let target = || Arc::from("pods");
        assert!(watch.next(target).await.unwrap().is_ok());
        advance(Duration::from_secs(200)).await;
        assert!(watch.next(target).await.unwrap().is_ok(), "the reader was late, not the server");
        let read = Instant::now();
        let silent = watch.next(target).await.unwrap().unwrap_err();
        assert_eq!((silent.to_string().contains("180"), read.elapsed().as_secs()), (true, 180));
    }

    #[tokio::test(start_paused = true)]
    async fn watch_ends_in_time_although_batches_wait() {
        let request = WatchRequest::after("1".into(), Duration::from_secs(10));
        let batches = stream::repeat_with(|| Ok(bookmark("2")));
        let mut watch = Patient::new(batches.boxed(), Instant::now(), &request);
        advance(Duration::from_secs(15)).await;
        assert!(watch.next(|| Arc::from("pods")).await.unwrap().is_err());
    }
}
