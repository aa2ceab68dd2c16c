//! [`Reflector`]: asks a server for its objects, and turns what it answers into deltas. It writes deltas, nothing else.
//!
//! What to ask next, and how long to wait, is decided in [`state`], which is pure.

mod gather;
pub(crate) mod state;

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::{
    gather::Gather,
    state::{Ask, State},
};
use crate::{
    delta::Delta,
    delta_fifo::DeltaFifo,
    list_watch::{
        ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest, WatchStream,
    },
    object::{Object, ResourceVersion},
    store::Store,
};

/// Follows one collection of a server for ever.
pub(crate) struct Reflector<K: Object> {
    pub(crate) list_watch: Arc<dyn ListWatch<K>>,
    pub(crate) fifo: Arc<DeltaFifo<K>>,
    /// Only read: an object that has not changed is taken from here, so that no second copy of it is held.
    pub(crate) store: Arc<Store<K>>,
    pub(crate) state: State,
    pub(crate) health: Arc<Health>,
}

/// What stands between an informer and its server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorError {
    /// The list failed.
    #[error(transparent)]
    List(#[from] ListError),
    /// The watch failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The [`ListWatch`] panicked.
    #[error("cannot follow {target}: its ListWatch panicked")]
    Panicked {
        /// What was listed or watched.
        target: Arc<str>,
    },
}

/// The last error, until something succeeds.
#[derive(Default)]
pub(crate) struct Health(Mutex<Option<Arc<ReflectorError>>>);

/// What a watch came to.
struct Watched {
    /// `None`: the server closed it.
    error: Option<WatchError>,
    lived: Duration,
    /// Whether it brought us further.
    progress: bool,
}

/// The longest we wait for a page, or for a watch to be opened: an API server gives up on a request after one minute.
const ANSWER: Duration = Duration::from_secs(75);

/// The longest silence while a watch brings the whole state. A server that does not know the request may never say
/// that the state is complete.
const INITIAL_SILENCE: Duration = Duration::from_secs(30);

/// The longest that a whole state may take by watch. After that it is listed.
const INITIAL: Duration = Duration::from_secs(120);

/// How much longer than asked for a watch may live: a server that has not closed it by then is not there any more.
const GRACE: Duration = Duration::from_secs(5);

// === impl Reflector ===

impl<K: Object> Reflector<K> {
    /// Never returns.
    ///
    /// # Cancel safety
    /// Dropping it ends it. Every delta is handed on in the same step in which it was taken.
    pub(crate) async fn run(mut self) {
        loop {
            let turn = AssertUnwindSafe(self.turn()).catch_unwind().await;
            let pause = turn.unwrap_or_else(|_| self.panicked());
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    }

    /// Asks one question, follows the answer to its end, and returns how long to wait.
    async fn turn(&mut self) -> Duration {
        match self.state.ask() {
            Ask::List(request) => self.list(request).await,
            Ask::WatchList(request) => self.watch_list(&request).await,
            Ask::Watch(request) => self.watch(&request).await,
        }
    }

    /// The list-watch is the author's code, and so is what it decodes with.
    fn panicked(&mut self) -> Duration {
        let target = self.list_watch.target();
        self.health.failed(ReflectorError::Panicked { target });
        self.state.panicked()
    }

    async fn list(&mut self, mut request: ListRequest) -> Duration {
        let mut objects = Vec::new();
        loop {
            let mut page = match self.page(&request).await {
                Ok(page) => page,
                Err(error) => {
                    let pause = self.state.list_failed(&error, request.continue_token.is_some());
                    self.health.failed(error.into());
                    return pause;
                }
            };
            for object in &mut page.items {
                self.store.reuse(object);
            }
            objects.append(&mut page.items);
            if page.continue_token.is_none() {
                self.gathered(objects, page.resource_version);
                return Duration::ZERO;
            }
            request.continue_token = page.continue_token;
            request.resource_version = None;
        }
    }

    async fn page(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let timed_out =
            |_| ListError::TimedOut { target: self.list_watch.target(), deadline: ANSWER };
        timeout(ANSWER, self.list_watch.list(request)).await.map_err(timed_out)?
    }

    async fn watch_list(&mut self, request: &WatchRequest) -> Duration {
        let opened = Instant::now();
        let gathered = match self.open(request).await {
            Ok(mut stream) => self.gather(&mut stream).await.map(|()| stream),
            Err(error) => Err(error),
        };
        match gathered {
            Ok(stream) => {
                let watched = self.follow(stream, opened, request.timeout).await;
                self.watched(watched)
            }
            Err(error) => {
                let pause = self.state.watch_list_failed(&error);
                self.health.failed(error.into());
                pause
            }
        }
    }

    async fn watch(&mut self, request: &WatchRequest) -> Duration {
        let opened = Instant::now();
        let watched = match self.open(request).await {
            Ok(stream) => {
                self.health.succeeded();
                self.follow(stream, opened, request.timeout).await
            }
            Err(error) => Watched { error: Some(error), lived: Duration::ZERO, progress: false },
        };
        self.watched(watched)
    }

    fn watched(&mut self, watched: Watched) -> Duration {
        match watched.error {
            None => self.state.watch_ended(watched.lived, watched.progress),
            Some(error) => {
                let pause = self.state.watch_failed(&error, watched.lived, watched.progress);
                self.health.failed(error.into());
                pause
            }
        }
    }

    async fn open(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let silent = |_| WatchError::Silent { target: self.list_watch.target(), deadline: ANSWER };
        timeout(ANSWER, self.list_watch.watch(request)).await.map_err(silent)?
    }

    /// Takes the whole state from the begin of a watch, and what comes with its end.
    async fn gather(&mut self, stream: &mut WatchStream<K>) -> Result<(), WatchError> {
        let incomplete = || WatchError::Incomplete { target: self.list_watch.target() };
        let end = Instant::now() + INITIAL;
        let mut gather = Gather::new();
        loop {
            let silence = end.min(Instant::now() + INITIAL_SILENCE);
            let batch = tokio::time::timeout_at(silence, stream.next()).await;
            let batch = batch.map_err(|_| incomplete())?;
            let closed = || WatchError::Torn {
                target: self.list_watch.target(),
                source: "the server closed it before the initial state was complete".into(),
            };
            let mut events = batch.ok_or_else(closed)??.into_iter();
            if let Some(version) = gather.take(&mut events, &self.store) {
                self.gathered(gather.finish(), version);
                self.hand_on(events.collect()).await;
                return Ok(());
            }
        }
    }

    fn gathered(&mut self, objects: Vec<crate::list_watch::Decoded<K>>, version: ResourceVersion) {
        self.state.gathered(version.clone());
        self.fifo.push([Delta::Replaced { objects, resource_version: version }]);
        self.health.succeeded();
    }

    /// Hands on what a watch brings until it ends.
    async fn follow(
        &mut self,
        mut stream: WatchStream<K>,
        opened: Instant,
        asked: Duration,
    ) -> Watched {
        let deadline = asked + GRACE;
        let overdue = sleep_until(opened + deadline);
        tokio::pin!(overdue);
        let mut progress = false;
        let error = loop {
            let next = tokio::select! {
                biased;
                () = &mut overdue => {
                    break Some(WatchError::Silent { target: self.list_watch.target(), deadline });
                }
                next = stream.next() => next,
            };
            match next {
                Some(Ok(events)) => progress |= self.hand_on(events).await,
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        Watched { error, lived: opened.elapsed(), progress }
    }

    /// Returns whether this brought us further.
    async fn hand_on(&mut self, events: Vec<WatchEvent<K>>) -> bool {
        let deltas: Vec<_> = events.into_iter().map(Delta::from).collect();
        // Nothing may be lost between the two: no wait here.
        let version = crate::store::newest(&deltas);
        let progress = version.is_some_and(|version| self.state.followed(version));
        self.fifo.push(deltas);
        self.fifo.room().await;
        progress
    }
}

impl<K: Object> From<WatchEvent<K>> for Delta<K> {
    fn from(event: WatchEvent<K>) -> Self {
        match event {
            WatchEvent::Applied(object) => Self::Applied(object),
            WatchEvent::Deleted(object) => Self::Deleted(object),
            WatchEvent::Bookmark { resource_version, .. } => Self::Bookmark(resource_version),
        }
    }
}

// === impl Health ===

impl Health {
    pub(crate) fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.0.lock().clone()
    }

    fn failed(&self, error: ReflectorError) {
        tracing::debug!(%error, "reflector");
        *self.0.lock() = Some(Arc::new(error));
    }

    fn succeeded(&self) {
        *self.0.lock() = None;
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&self.last_error()).finish()
    }
}
