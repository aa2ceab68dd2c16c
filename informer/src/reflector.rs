//! [`Reflector`]: asks a server for its objects, and turns what it answers into deltas. It writes deltas, nothing else.
//!
//! What to ask next, and how long to wait, is decided in [`state`], which is pure.

mod gather;
mod health;
mod nameless;
pub(crate) mod state;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use self::health::{ErrorHandler, Health};
pub use self::health::{ReflectorError, ReflectorPhase, ReflectorStatus};
use self::{
    gather::{Gather, Pages},
    state::{Ask, State},
};
use crate::{
    delta::newest_of,
    delta_fifo::DeltaFifo,
    list_watch::{
        Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
        WatchStream,
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

/// What a watch came to.
struct Watched {
    /// `None`: the server closed it.
    error: Option<WatchError>,
    lived: Duration,
    /// Whether it said anything, if only a bookmark.
    heard: bool,
    /// Whether it brought us further.
    progress: bool,
}

/// A whole state that came as the begin of a watch.
struct Whole<K: Object> {
    objects: Vec<Decoded<K>>,
    version: ResourceVersion,
    /// What came with its end.
    rest: Vec<WatchEvent<K>>,
}

/// Why there is no list.
enum NoList {
    /// It is older than what was asked for.
    TooOld,
    Failed {
        error: ListError,
        /// Whether it began well.
        continued: bool,
    },
}

/// What is wrong with a state that a server must not answer with.
const TOO_OLD: &str = "it is older than what was asked for";

/// The longest we wait for a page, or for a watch to be opened: an API server gives up on a request after one minute.
const ANSWER: Duration = Duration::from_secs(75);

/// The longest we wait for a list in one piece, which may take a gigabyte.
const WHOLE_ANSWER: Duration = Duration::from_secs(300);

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
                let until = Instant::now().checked_add(pause);
                self.health.does(ReflectorPhase::Waiting { until });
                sleep(pause).await;
            }
        }
    }

    /// Asks one question, follows the answer to its end, and returns how long to wait.
    async fn turn(&mut self) -> Duration {
        match self.state.ask() {
            Ask::List(request) => {
                self.health.does(ReflectorPhase::Listing);
                self.list(request).await
            }
            Ask::WatchList(request) => {
                self.health.does(ReflectorPhase::WatchListing);
                self.watch_list(&request).await
            }
            Ask::Watch(request) => {
                self.health.does(ReflectorPhase::Watching);
                self.watch(&request).await
            }
        }
    }

    /// The list-watch is the author's code, and so is what it decodes with.
    fn panicked(&mut self) -> Duration {
        let target = self.list_watch.target();
        self.failed(ReflectorError::Panicked { target });
        self.state.panicked()
    }

    fn failed(&self, error: impl Into<ReflectorError>) {
        self.health.failed(error.into());
    }

    async fn list(&mut self, request: ListRequest) -> Duration {
        match self.pages(request).await {
            Ok((objects, version)) => {
                self.gathered(objects, version);
                Duration::ZERO
            }
            Err(NoList::TooOld) => {
                self.failed(self.no_list(TOO_OLD));
                self.state.whole_is_too_old()
            }
            Err(NoList::Failed { error, continued }) => {
                let pause = self.state.list_failed(&error, continued);
                self.failed(error);
                pause
            }
        }
    }

    /// All pages of a list. The cache's own objects are taken for those that have not changed, unless the server has
    /// another history, in which the same version may be another state.
    async fn pages(
        &self,
        mut request: ListRequest,
    ) -> Result<(Vec<Decoded<K>>, ResourceVersion), NoList> {
        let not_older = request.resource_version.is_some();
        let mut pages = Pages::new();
        let mut continued = false;
        loop {
            let failed = |error| NoList::Failed { error, continued };
            let page = self.page(&request).await.map_err(failed)?;
            let back = self.state.is_back(&page.resource_version);
            if back && not_older {
                return Err(NoList::TooOld);
            }
            let next = pages.take(page, (!back).then_some(&*self.store));
            let Some(token) = next.map_err(|what| failed(self.no_list(what)))? else {
                return Ok(pages.finish());
            };
            request.continue_token = Some(token);
            request.resource_version = None;
            continued = true;
        }
    }

    async fn page(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let deadline = if request.limit.is_some() { ANSWER } else { WHOLE_ANSWER };
        let timed_out = |_| ListError::TimedOut { target: self.list_watch.target(), deadline };
        let page = timeout(deadline, self.list_watch.list(request)).await.map_err(timed_out)?;
        page.map(|page| nameless::without(page, &self.health))
    }

    fn no_list(&self, what: &str) -> ListError {
        ListError::Corrupt { target: self.list_watch.target(), error: what.to_owned() }
    }

    async fn watch_list(&mut self, request: &WatchRequest) -> Duration {
        let opened = Instant::now();
        let not_older = request.resource_version.is_some();
        let gathered = match self.open(request).await {
            Ok(mut stream) => {
                let whole = self.gather(&mut stream, not_older).await;
                whole.map(|whole| (whole, stream))
            }
            Err(error) => Err(error),
        };
        match gathered {
            Ok((whole, _)) if not_older && self.state.is_back(&whole.version) => {
                let error = TOO_OLD.to_owned();
                self.failed(WatchError::Corrupt { target: self.list_watch.target(), error });
                self.state.whole_is_too_old()
            }
            Ok((whole, stream)) => {
                self.gathered(whole.objects, whole.version);
                self.health.does(ReflectorPhase::Watching);
                self.hand_on(whole.rest).await;
                let watched = self.follow(stream, opened, request.timeout).await;
                self.watched(watched)
            }
            Err(error) => {
                let pause = self.state.watch_list_failed(&error);
                self.failed(error);
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
            Err(error) => Watched::unopened(error),
        };
        self.watched(watched)
    }

    fn watched(&mut self, watched: Watched) -> Duration {
        let pause = match watched.error {
            None => self.state.watch_ended(watched.lived, watched.progress),
            Some(error) => {
                let pause = self.state.watch_failed(&error, watched.lived, watched.progress);
                self.failed(error);
                pause
            }
        };
        if !watched.heard {
            self.state.heard_nothing(watched.lived);
        }
        pause
    }

    async fn open(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let silent = |_| WatchError::Silent { target: self.list_watch.target(), deadline: ANSWER };
        let stream = timeout(ANSWER, self.list_watch.watch(request)).await.map_err(silent)??;
        Ok(nameless::filtered(stream, Arc::clone(&self.health)))
    }

    /// Takes the whole state from the begin of a watch, and what comes with its end.
    ///
    /// The cache's own objects are taken at once if the server was asked for a state that is `not_older`. Otherwise it
    /// may have another history, in which the same version is another state.
    async fn gather(
        &self,
        stream: &mut WatchStream<K>,
        not_older: bool,
    ) -> Result<Whole<K>, WatchError> {
        let target = || self.list_watch.target();
        let end = Instant::now() + INITIAL;
        let mut gather = Gather::new();
        loop {
            let silence = end.min(Instant::now() + INITIAL_SILENCE);
            let batch = tokio::time::timeout_at(silence, stream.next()).await;
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
            return Ok(Whole { objects, version, rest: events.collect() });
        }
    }

    fn gathered(&mut self, objects: Vec<Decoded<K>>, version: ResourceVersion) {
        self.state.gathered(version.clone());
        self.health.gathered(&version);
        self.fifo.replace(objects, version);
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
        let (mut heard, mut progress) = (false, false);
        let error = loop {
            let next = tokio::select! {
                biased;
                () = &mut overdue => {
                    break Some(WatchError::Silent { target: self.list_watch.target(), deadline });
                }
                next = stream.next() => next,
            };
            match next {
                Some(Ok(events)) => {
                    heard = true;
                    progress |= self.hand_on(events).await;
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        Watched { error, lived: opened.elapsed(), heard, progress }
    }

    /// Returns whether an object brought us further.
    async fn hand_on(&mut self, events: Vec<WatchEvent<K>>) -> bool {
        let bookmark = |event: &WatchEvent<K>| matches!(event, WatchEvent::Bookmark { .. });
        let only_bookmarks = events.iter().all(bookmark);
        // Nothing may be lost between the two: no wait here.
        let version = newest_of(&events);
        let progress = version.is_some_and(|version| {
            let further = self.state.followed(version.clone());
            if further {
                self.health.followed(version);
            }
            further
        });
        self.fifo.push(events);
        self.fifo.room().await;
        progress && !only_bookmarks
    }
}
impl Watched {
    fn unopened(error: WatchError) -> Self {
        Self { error: Some(error), lived: Duration::ZERO, heard: false, progress: false }
    }
}
