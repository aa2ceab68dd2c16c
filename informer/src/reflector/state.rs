//! [`State`]: decides the next request to the server and the wait before it.
//!
//! The state machine is pure: the reflector sends the request, reports the result, and waits for
//! the returned time. The rules:
//!
//! * The reflector requests the first full state by a watch with initial events (watch-list).
//!   If the server does not support that, the reflector lists. It tries the watch-list again for
//!   the next full state; if the attempt ended by a timeout, it first lists up to 64 times.
//! * A watch that ended, broke or could not be opened is opened again after the last received
//!   version. The reflector requests a new full state only when that version is useless: it has
//!   expired, the server does not understand it, reading on from it failed 3 consecutive times,
//!   opening a watch from it was refused (for about a minute) or not answered 6 consecutive times,
//!   or the server has gone back to an older state. The reflector checks the latter by a list of
//!   one object after watches that delivered nothing for 180 s, not even a bookmark.
//! * A new full state must not be older than the last received version, unless the server reports
//!   that it cannot guarantee that; then the reflector requests the newest state. If even that is
//!   older, the server has another history.
//! * The reflector waits before it repeats a request, unless the last response made progress or the
//!   next request differs.
//!
//! ```text
//!              full state queued
//!  Gathering ────────────────────▶ Following ◀───────────┐
//!      ▲                            │  │  │              │ full state or failure
//!      │ version is useless         │  │  │ unreadable   │
//!      ├────────────────────────────┘  │  └─────────▶ ForcedRelist
//!      │                               │ silent for 180 s
//!      └────────── Probing ◀───────────┘
//!       server behind   │
//!                       └──▶ Following (otherwise)
//! ```
//!
//! client-go's `Reflector` lists again after most errors of a watch. Here an interrupted watch
//! continues from its last version, because a relist of a large collection is what an overloaded
//! server can bear least.

mod failures;

use std::cmp::Ordering;
use std::time::Duration;

use homeostat_core::Random;

use crate::backoff::{Backoff, BackoffConfig};
use crate::list_watch::{ListRequest, WatchRequest};
use crate::object::ResourceVersion;
use crate::timeouts::TimeoutConfig;

/// The state of one reflector: its position in the history of the server, and its failures.
///
/// Only the reflector's task changes it, so it has no lock. `last` and `ahead` never go back except
/// in `gathered`.
pub(crate) struct State {
    config: StateConfig,
    phase: Phase,
    /// Everything up to this version has been queued.
    last: Option<ResourceVersion>,
    /// The newest version of a queued object, if it is later than `last`. The events of several
    /// collections are in no common order: `last` is the version that all of them have reached.
    ahead: Option<ResourceVersion>,
    /// The replay position while a watch resends old events: it began before the requested version
    /// and has not caught up with `last`.
    replay: Option<ResourceVersion>,
    /// The server cannot continue from `last`, or from any version: the next request is for the
    /// newest state.
    use_newest: bool,
    /// The number of full states to request by list before the next watch-list; `NEVER` if
    /// watch-list is off.
    by_list: u32,
    /// Consecutive watch-lists that did not complete the full state in time.
    watch_list_failures: u32,
    /// A continue token expired: the next list is requested without pages.
    unpaged: bool,
    /// The last full state was read from several versions, because a continue token expired, and no
    /// later event has arrived. If its version is useless, pages would fail again.
    inconsistent: bool,
    /// Consecutive failures to read the events after `last`.
    unreadable: u32,
    /// Consecutive watches after `last` that the server refused or did not answer.
    refused: u32,
    /// The lifetime of the consecutive watches that delivered nothing, since the last probe.
    silent: Duration,
    backoff: Backoff,
    random: Random,
}

/// The settings of a reflector.
///
/// Fixed when the informer is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateConfig {
    /// Objects per page of a list; 0 for a list in one piece.
    pub(crate) page_size: u32,
    /// True if a full state may be requested by a watch with initial events.
    pub(crate) watch_list: bool,
    /// True if the first list may be served from the server's cache (`resourceVersion=0`).
    pub(crate) from_cache: bool,
    pub(crate) backoff: BackoffConfig,
    pub(crate) timeouts: TimeoutConfig,
}

/// The next request to the server.
#[derive(Debug, PartialEq)]
pub(crate) enum NextRequest {
    /// A list: the first page of a full state.
    List(ListRequest),
    /// A watch that begins with a full state and continues with later events.
    WatchList(WatchRequest),
    /// A watch of the events after a version.
    Watch(WatchRequest),
    /// A list of one object, of which only the version counts.
    Probe(ListRequest),
}

/// The phase of a reflector.
///
/// `last` is `None` only in `Gathering`, before the first full state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// A full state is needed. → `Following` when it has arrived.
    Gathering,
    /// `last` is known, but watching from it makes no progress. The reflector requests one full
    /// state. → `Following`, even if that request fails.
    ForcedRelist,
    /// `last` is known. → `Gathering` when `last` is useless, `ForcedRelist` when it may be
    /// useless, `Probing` when the server may have gone back.
    Following,
    /// `last` is known, and the server has delivered nothing after it for 180 s. → `Following` if
    /// the server is not behind `last`, or the request fails. → `Gathering` if it is.
    Probing,
}

/// The number of objects per page of a list, as in client-go. A list of 100k objects takes 200
/// requests.
const PAGE_SIZE: u32 = 500;

/// The value of `by_list` if watch-list is off.
const NEVER: u32 = u32::MAX;

// === impl StateConfig ===

impl Default for StateConfig {
    fn default() -> Self {
        Self {
            page_size: PAGE_SIZE,
            watch_list: true,
            from_cache: false,
            backoff: BackoffConfig::default(),
            timeouts: TimeoutConfig::default(),
        }
    }
}

// === impl State ===

impl State {
    /// Starts in `Gathering` without a version. The same seed gives the same waits.
    pub(crate) fn new(config: StateConfig, seed: Option<u64>) -> Self {
        Self {
            config,
            phase: Phase::Gathering,
            last: None,
            ahead: None,
            replay: None,
            use_newest: false,
            by_list: if config.watch_list { 0 } else { NEVER },
            watch_list_failures: 0,
            unpaged: false,
            inconsistent: false,
            unreadable: 0,
            refused: 0,
            silent: Duration::ZERO,
            backoff: Backoff::new(config.backoff),
            random: Random::new(seed),
        }
    }

    /// Returns the next request.
    ///
    /// The timeout of a watch is random between the configured time and twice that, as in
    /// client-go, so that the watches of many clients do not end together.
    ///
    /// A first list with `from_cache` is for version 0: any state that the server's cache has.
    /// Later full states name the last version, and must not be older.
    pub(crate) fn next_request(&mut self) -> NextRequest {
        let timeout = self.config.timeouts.watch;
        let timeout = self.random.between(timeout, timeout.saturating_mul(2));
        match (self.phase, &self.last) {
            (Phase::Probing, _) => {
                let mut request = ListRequest::new();
                request.limit = Some(1);
                NextRequest::Probe(request)
            }
            (Phase::Following, Some(last)) => {
                let after = self.replay.as_ref().unwrap_or(last);
                let mut request = WatchRequest::after(after.clone(), timeout);
                request.silence = self.config.timeouts.missed_bookmarks;
                NextRequest::Watch(request)
            }
            (_, last) => {
                let cached = || self.config.from_cache.then(|| ResourceVersion::from("0"));
                let version = self.newest().cloned().filter(|_| !self.use_newest);
                if self.by_list == 0 {
                    let mut request = WatchRequest::with_initial_events(version, timeout);
                    request.silence = self.config.timeouts.missed_bookmarks;
                    return NextRequest::WatchList(request);
                }
                let mut request = ListRequest::new();
                let first = last.is_none() && !self.use_newest;
                request.resource_version = version.or_else(|| cached().filter(|_| first));
                let pages = !self.unpaged && self.config.page_size > 0;
                request.limit = pages.then_some(self.config.page_size);
                NextRequest::List(request)
            }
        }
    }

    /// Returns the limits of the requests.
    pub(crate) fn timeouts(&self) -> &TimeoutConfig {
        &self.config.timeouts
    }

    /// Returns true if a full state of this version is older than what has been queued.
    pub(crate) fn is_back(&self, version: &ResourceVersion) -> bool {
        self.newest().is_some_and(|newest| version.compare(newest) == Some(Ordering::Less))
    }

    /// Returns the newest version that has been queued.
    fn newest(&self) -> Option<&ResourceVersion> {
        self.ahead.as_ref().or(self.last.as_ref())
    }

    /// Records that a full state has been queued.
    ///
    /// After a full state by list, one fewer list remains before the next attempt with watch-list.
    pub(crate) fn gathered(&mut self, version: ResourceVersion) {
        self.backoff.answered();
        self.inconsistent = false;
        self.last = Some(version);
        self.ahead = None;
        self.replay = None;
        self.phase = Phase::Following;
        self.use_newest = false;
        self.unpaged = false;
        self.unreadable = 0;
        self.silent = Duration::ZERO;
        match self.by_list {
            0 => self.watch_list_failures = 0,
            NEVER => {}
            _ => self.by_list -= 1,
        }
    }

    /// Records that the pages of the last full state are from several versions.
    pub(crate) fn gathered_inconsistently(&mut self) {
        self.inconsistent = true;
    }

    /// Records that everything up to this version has been queued. Returns true if that is
    /// progress.
    ///
    /// A replay must be read to its end: it may have restored an object that was deleted later.
    ///
    /// A version below `last` is a replay: the server resends events since an older version. Its
    /// position is kept in `replay`, from which the next watch continues if this one breaks off.
    pub(crate) fn followed(&mut self, version: ResourceVersion) -> bool {
        let is_before = |other: &ResourceVersion| version.compare(other) == Some(Ordering::Less);
        if version.is_point() {
            self.replay = self.last.as_ref().is_some_and(is_before).then(|| version.clone());
            self.ahead = self.ahead.take().filter(is_before);
        }
        let further =
            version.is_point() && self.last.as_ref().is_none_or(|last| version.may_follow(last));
        if further {
            self.last = Some(version);
            self.unreadable = 0;
            self.inconsistent = false;
        }
        further
    }

    /// Records that an object of this version has been queued, from events or a full state in no
    /// order. The server must not be behind it.
    pub(crate) fn queued(&mut self, version: ResourceVersion) {
        let is_later =
            |newest: &ResourceVersion| version.compare(newest) == Some(Ordering::Greater);
        if self.newest().is_some_and(is_later) {
            self.ahead = Some(version);
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
