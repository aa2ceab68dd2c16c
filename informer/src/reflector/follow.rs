//! The watches of a [`Reflector`]: the initial events, and the events that follow.
//!
//! A watch ends in one of five ways, and each is a [`Watched`] for the state machine: the server
//! closes it after its timeout, the connection breaks, the server sends an error, an event cannot
//! be decoded, or no data arrives for too long.
//!
//! No await stands between the read of a batch and its `push_all`: if the reflector's task is
//! aborted, either the whole batch is queued or none of it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time;
use tokio::time::Instant;

use super::gather::Gather;
use super::{Reflector, TOO_OLD, nameless};
use crate::delta::newest_of;
use crate::list_watch::{
    Decoded, Patient, WatchError, WatchEvent, WatchRequest, WatchStream, later,
};
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
                let watched = self.follow(stream, opened, request).await;
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
                self.follow(stream, opened, request).await
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
        if watched.received_any {
            self.state.watch_delivered();
        } else {
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
    async fn follow(
        &mut self,
        stream: WatchStream<K>,
        opened: Instant,
        request: &WatchRequest,
    ) -> Watched {
        let mut watch = Patient::new(stream, opened, request);
        let (mut received_any, mut progress) = (false, false);
        let error = loop {
            match watch.next(|| self.list_watch.target()).await {
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

// === impl Watched ===

impl Watched {
    /// The result of a watch that could not be opened.
    fn unopened(error: WatchError) -> Self {
        Self { error: Some(error), lived: Duration::ZERO, received_any: false, progress: false }
    }
}

// === parts ===

/// Returns the version of the last bookmark.
fn newest_bookmark<K>(events: &[WatchEvent<K>]) -> Option<ResourceVersion> {
    events.iter().rev().find_map(|event| match event {
        WatchEvent::Bookmark { resource_version, .. } if resource_version.is_point() => {
            Some(resource_version.clone())
        }
        _ => None,
    })
}
