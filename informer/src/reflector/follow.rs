//! The watches of a [`Reflector`]: the initial events, and the events that follow.
//!
//! A watch ends in one of five ways, and each is a [`Watched`] for the state machine: the server
//! closes it after its timeout, the connection breaks, the server sends an error, an event cannot
//! be decoded, or no data arrives for too long.
//!
//! No await stands between the read of a batch and its `push_all`: if the reflector's task is
//! aborted, either the whole batch is queued or none of it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time;
use tokio::time::{Instant, Sleep, sleep_until};

use super::gather::Gather;
use super::{Reflector, TOO_OLD, nameless};
use crate::delta::newest_of;
use crate::list_watch::{Decoded, WatchError, WatchEvent, WatchRequest, WatchStream};
use crate::object::{Object, ResourceVersion};
use crate::status::ReflectorPhase;

/// The result of a watch.
///
/// The state machine decides from it whether the next watch may follow at once: a watch that made
/// progress never waits, one that ended within a second without progress does.
struct Watched {
    /// The failure; `None` if the server closed the watch.
    error: Option<WatchError>,
    /// The time since the request was sent; zero if the watch was not opened.
    lived: Duration,
    /// True if the watch delivered anything, even a bookmark.
    received_any: bool,
    /// True if the watch made progress.
    progress: bool,
}

/// A full state from the initial events of a watch.
///
/// Complete: the bookmark that ends the initial events has arrived. Nothing of it is queued yet.
struct InitialState<K: Object> {
    objects: Vec<Decoded<K>>,
    version: ResourceVersion,
    /// The events that arrived in one batch with the end of the initial events.
    rest: Vec<WatchEvent<K>>,
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

// === impl Reflector ===

impl<K: Object> Reflector<K> {
    /// Requests a full state by the initial events of a watch, then follows the same watch.
    ///
    /// The returned time is the wait before the next request. Time that the request has already
    /// spent without an answer is subtracted, so that an outage does not count twice.
    ///
    /// If the full state is older than the last queued version although the request excluded that,
    /// the server has another history or a stale cache. The state machine then requests the newest
    /// state.
    pub(super) async fn watch_list(&mut self, request: &WatchRequest) -> Duration {
        let opened = Instant::now();
        let not_older = request.resource_version.is_some();
        let gathered = match self.open(request).await {
            Ok(mut stream) => {
                let initial = self.gather(&mut stream, not_older).await;
                initial.map(|initial| (initial, stream))
            }
            Err(error) => Err(error),
        };
        match gathered {
            Ok((initial, _)) if not_older && self.state.is_back(&initial.version) => {
                let error = TOO_OLD.to_owned();
                self.failed(WatchError::Corrupt { target: self.list_watch.target(), error });
                self.state.full_state_too_old()
            }
            Ok((initial, stream)) => {
                self.gathered(initial.objects, initial.version);
                self.health.enter(ReflectorPhase::Watching);
                self.queue_events(initial.rest).await;
                let watched = self.follow(stream, opened, request.timeout).await;
                self.watched(watched)
            }
            Err(error) => {
                let pause = self.state.watch_list_failed(&error);
                let waited = error.time_without_answer(opened);
                self.failed(error);
                pause.saturating_sub(waited)
            }
        }
    }

    /// Continues after the last version, and returns the wait before the next request.
    ///
    /// An opened watch ends the series of failures in [`Health`](super::health::Health) even if it
    /// delivers nothing.
    pub(super) async fn watch(&mut self, request: &WatchRequest) -> Duration {
        let opened = Instant::now();
        let watched = match self.open(request).await {
            Ok(stream) => {
                self.health.succeeded();
                self.follow(stream, opened, request.timeout).await
            }
            Err(error) => Watched::unopened(error),
        };
        let waited = watched.error.as_ref().map(|error| error.time_without_answer(opened));
        self.watched(watched).saturating_sub(waited.unwrap_or_default())
    }

    /// Reports the end of a watch to the state machine.
    fn watched(&mut self, watched: Watched) -> Duration {
        let pause = match watched.error {
            None => self.state.watch_ended(watched.lived, watched.progress),
            Some(error) => {
                let pause = self.state.watch_failed(&error, watched.lived, watched.progress);
                self.failed(error);
                pause
            }
        };
        if !watched.received_any {
            self.state.silent_watch_ended(watched.lived);
        }
        pause
    }

    /// Opens a watch in time, without the events of nameless objects.
    async fn open(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let timeout = self.state.timeouts().answer;
        let silent = |_| WatchError::Silent { target: self.list_watch.target(), timeout };
        let stream =
            time::timeout(timeout, self.list_watch.watch(request)).await.map_err(silent)??;
        Ok(nameless::filtered(stream, self.list_watch.is_ordered(), Arc::clone(&self.health)))
    }

    /// Reads the full state from the initial events of a watch, and the rest of the batch that
    /// completes it.
    ///
    /// Unchanged objects are taken from the cache at once if the request was for a state that is
    /// `not_older`. Otherwise the server may have another history, in which the same version is a
    /// different state.
    ///
    /// Two limits apply: `initial_events` for all of the initial events, and `initial_silence` for
    /// the gap between two batches.
    ///
    /// # Errors
    ///
    /// `Incomplete` if a limit has passed, `Torn` if the server closes the watch early, `Corrupt`
    /// if the state has no version, and the error of the stream. Nothing is queued then.
    async fn gather(
        &self,
        stream: &mut WatchStream<K>,
        not_older: bool,
    ) -> Result<InitialState<K>, WatchError> {
        let target = || self.list_watch.target();
        let timeouts = *self.state.timeouts();
        let end = later(Instant::now(), timeouts.initial_events);
        let mut gather = Gather::new();
        loop {
            let silence = end.min(later(Instant::now(), timeouts.initial_silence));
            let batch = time::timeout_at(silence, stream.next()).await;
            let batch = batch.map_err(|_| WatchError::Incomplete { target: target() })?;
            let closed = || WatchError::Torn {
                target: target(),
                source: "the server closed it before the initial state was complete".into(),
            };
            let mut events = batch.ok_or_else(closed)??.into_iter();
            let cache = not_older.then_some(&*self.store);
            let Some(version) = gather.take(&mut events, cache) else { continue };
            if !version.is_point() {
                let error = "its initial state has no version".to_owned();
                return Err(WatchError::Corrupt { target: target(), error });
            }
            let mut objects = gather.finish();
            let reused = not_older || self.state.is_back(&version);
            let late = objects.iter_mut().filter(|_| !reused);
            late.for_each(|object| self.store.reuse(object));
            return Ok(InitialState { objects, version, rest: events.collect() });
        }
    }

    /// Queues the events of a watch until it ends.
    ///
    /// The timer is one `Sleep`, which is reset only when it fires or when the first bookmark makes
    /// the deadline earlier. So a busy watch does not touch the timer for each batch.
    async fn follow(
        &mut self,
        mut stream: WatchStream<K>,
        opened: Instant,
        asked: Duration,
    ) -> Watched {
        let mut patience = Patience::new(opened, asked, self.state.timeouts().missed_bookmarks);
        let overdue = sleep_until(patience.deadline());
        tokio::pin!(overdue);
        let (mut received_any, mut progress) = (false, false);
        let error = loop {
            match self.next_batch(&mut stream, &mut patience, overdue.as_mut()).await {
                Some(Ok(events)) => {
                    received_any = true;
                    progress |= self.queue_events(events).await;
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        Watched { error, lived: opened.elapsed(), received_any, progress }
    }

    /// Waits for the next batch, at most until the watch counts as dead. `overdue` fires then or
    /// earlier.
    async fn next_batch(
        &self,
        stream: &mut WatchStream<K>,
        patience: &mut Patience,
        mut overdue: Pin<&mut Sleep>,
    ) -> Option<Result<Vec<WatchEvent<K>>, WatchError>> {
        let next = loop {
            tokio::select! {
                biased;
                () = overdue.as_mut() => {}
                next = stream.next() => break next,
            }
            if let Some(timeout) = patience.is_over(Instant::now()) {
                let target = self.list_watch.target();
                return Some(Err(WatchError::Silent { target, timeout }));
            }
            overdue.as_mut().reset(patience.deadline());
        };
        if let Some(Ok(events)) = &next
            && patience.received(events)
        {
            overdue.as_mut().reset(patience.deadline());
        }
        next
    }

    /// Queues a batch of events. Returns true if an object event made progress.
    ///
    /// It waits for room after the push: the queue has no bound for a batch that was read already,
    /// but the next batch is read only when the consumer has caught up.
    async fn queue_events(&mut self, events: Vec<WatchEvent<K>>) -> bool {
        let bookmark = |event: &WatchEvent<K>| matches!(event, WatchEvent::Bookmark { .. });
        let only_bookmarks = events.iter().all(bookmark);
        // No await between reading the batch and queueing it: a dropped future must not lose
        // events.
        let newest = newest_of(&events);
        let version = if self.list_watch.is_ordered() {
            newest
        } else {
            if let Some(newest) = newest {
                self.state.queued(newest);
            }
            newest_bookmark(&events)
        };
        let progress = version.clone().is_some_and(|version| self.state.followed(version));
        self.fifo.push_all(events, version);
        self.fifo.wait_for_room().await;
        progress && !only_bookmarks
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

    /// Returns the exceeded limit if the watch counts as dead at `now`.
    fn is_over(&self, now: Instant) -> Option<Duration> {
        if now >= self.end {
            return Some(self.timeout);
        }
        (now >= self.deadline()).then_some(self.silence)
    }
}

// === impl Watched ===

impl Watched {
    /// The result of a watch that could not be opened.
    fn unopened(error: WatchError) -> Self {
        Self { error: Some(error), lived: Duration::ZERO, received_any: false, progress: false }
    }
}

// === parts ===

/// Returns the time `after` an instant; for a time beyond the end of time, thirty years later.
fn later(instant: Instant, after: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    instant.checked_add(after).unwrap_or_else(|| instant + FAR)
}

/// Returns the version of the last bookmark.
fn newest_bookmark<K>(events: &[WatchEvent<K>]) -> Option<ResourceVersion> {
    events.iter().rev().find_map(|event| match event {
        WatchEvent::Bookmark { resource_version, .. } if resource_version.is_point() => {
            Some(resource_version.clone())
        }
        _ => None,
    })
}
