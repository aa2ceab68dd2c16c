//! What to ask the server next, given what it answered.
//!
//! Pure: the shell asks, tells what came back, and waits as long as it is told. The rules, in short:
//!
//! * The first state is asked for as a watch that begins with it; a server that cannot do that is asked for a list. The
//!   watch is tried again for the next whole state, or later if trying it meant waiting in vain.
//! * What was good stays good: a watch that ends, tears, or cannot be opened is opened again after the last good
//!   version. A whole new state is asked for only when that version is of no use: it expired, the server does not
//!   understand it, or it cannot be read on from there (three times in a row) or watched from there (for a minute), or
//!   a watch from there says nothing at all, not even a bookmark.
//! * A whole new state may not be older than what was seen, unless the server says that it cannot do that; then it is
//!   the newest. If even that is older, the server has another history.
//! * Nothing is asked twice without a wait, unless the first answer brought us further or the second question is
//!   another one.

use std::{cmp::Ordering, time::Duration};

use crate::{
    backoff::{Backoff, BackoffConfig, Chance},
    list_watch::{ListError, ListRequest, Refusal, WatchError, WatchRequest},
    object::ResourceVersion,
};

/// How one reflector stands with its server.
pub(crate) struct State {
    config: StateConfig,
    phase: Phase,
    /// Up to here everything has been handed on.
    last: Option<ResourceVersion>,
    /// A watch that began earlier than it was asked to has told this again, and not yet all that follows.
    again: Option<ResourceVersion>,
    /// The server cannot go on from `last`, or from any version: ask for the newest state.
    use_newest: bool,
    /// So many whole states are asked for by list before a watch is tried for one again; `NEVER` if it never is.
    by_list: u32,
    /// How many it was the last time that a watch was waited for in vain.
    distrust: u32,
    /// The place in a list expired: ask for the whole list in one piece.
    unpaged: bool,
    /// How often in a row what follows `last` could not be read.
    unreadable: u32,
    /// How often in a row a watch after `last` was refused.
    refused: u32,
    backoff: Backoff,
    chance: Chance,
}

/// What an author can choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateConfig {
    pub(crate) page_size: u32,
    pub(crate) watch_list: bool,
    pub(crate) backoff: BackoffConfig,
}

/// What is asked next.
#[derive(Debug, PartialEq)]
pub(crate) enum Ask {
    /// A whole state, page by page: the first page.
    List(ListRequest),
    /// A whole state, and then what follows.
    WatchList(WatchRequest),
    /// What follows.
    Watch(WatchRequest),
}

/// Where we are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// A whole state is needed. → `Following` when it has arrived.
    Gathering,
    /// `last` is known, but asking what follows it leads nowhere; a whole state is asked for, once. → `Following`,
    /// whether it has arrived or not.
    Detour,
    /// `last` is known. → `Gathering` when it is of no use any more, `Detour` when it may be.
    Following,
}

/// Objects per page of a list: client-go's. Small enough that no page is a burden, large enough that a list of 100k
/// objects takes 200 requests.
pub(crate) const PAGE_SIZE: u32 = 500;

/// A watch is opened for a random time in this range, client-go's, so that the watches of many clients do not end all
/// at once.
const WATCH_TIMEOUT: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(600)];

/// A watch that lived this long was a watch; a shorter one without an event is a failure.
const SHORT: Duration = Duration::from_secs(1);

/// A watch without a word for so long, three bookmarks, is looked into.
const SILENT: Duration = Duration::from_secs(180);

/// After this many failures to read what follows a version, another way round is tried.
const UNREADABLE: u32 = 3;

/// After this many refusals of a watch, about a minute, another way round is tried: whoever may list but not watch still
/// gets a copy, if a late one. Sooner, and every client would list a server that has just come back.
const REFUSED: u32 = 6;

/// No watch is tried for a whole state.
const NEVER: u32 = u32::MAX;

/// A watch that was waited for in vain is tried again after at most this many lists.
const MAX_DISTRUST: u32 = 64;

// === impl State ===

impl State {
    pub(crate) fn new(config: StateConfig, seed: u64) -> Self {
        Self {
            config,
            phase: Phase::Gathering,
            last: None,
            again: None,
            use_newest: false,
            by_list: if config.watch_list { 0 } else { NEVER },
            distrust: 0,
            unpaged: false,
            unreadable: 0,
            refused: 0,
            backoff: Backoff::new(config.backoff),
            chance: Chance::new(seed),
        }
    }

    /// What to ask now.
    pub(crate) fn ask(&mut self) -> Ask {
        let timeout = self.chance.between(WATCH_TIMEOUT[0], WATCH_TIMEOUT[1]);
        match (self.phase, &self.last) {
            (Phase::Following, Some(last)) => {
                let after = self.again.as_ref().unwrap_or(last);
                Ask::Watch(WatchRequest::after(after.clone(), timeout))
            }
            (_, last) => {
                let version = last.clone().filter(|_| !self.use_newest);
                if self.by_list == 0 {
                    return Ask::WatchList(WatchRequest::with_initial_events(version, timeout));
                }
                let mut request = ListRequest::new();
                request.resource_version = version;
                request.limit = (!self.unpaged).then_some(self.config.page_size);
                Ask::List(request)
            }
        }
    }

    /// Whether a whole state of this version belongs to an earlier time than what has been handed on.
    pub(crate) fn is_back(&self, version: &ResourceVersion) -> bool {
        self.last.as_ref().is_some_and(|last| version.compare(last) == Some(Ordering::Less))
    }

    /// A whole state has been handed on.
    pub(crate) fn gathered(&mut self, version: ResourceVersion) {
        self.last = Some(version);
        self.again = None;
        self.phase = Phase::Following;
        self.use_newest = false;
        self.unpaged = false;
        self.unreadable = 0;
        match self.by_list {
            0 => self.distrust = 0,
            NEVER => {}
            _ => self.by_list -= 1,
        }
    }

    /// All up to this version has been handed on. Returns whether that brought us further.
    ///
    /// What a watch tells again is to be heard to its end: an object may have come back with it that was deleted since.
    pub(crate) fn followed(&mut self, version: ResourceVersion) -> bool {
        if version.is_point() {
            self.again = self.is_back(&version).then(|| version.clone());
        }
        let further =
            version.is_point() && self.last.as_ref().is_none_or(|last| version.may_follow(last));
        if further {
            self.last = Some(version);
            self.unreadable = 0;
        }
        further
    }

    /// The list failed. `continued` says that it was not at its first page.
    pub(crate) fn list_failed(&mut self, error: &ListError, continued: bool) -> Duration {
        if error.is_expired() && continued && !self.unpaged {
            self.unpaged = true;
            return Duration::ZERO;
        }
        // Or the server cannot even read the version.
        let misunderstood = error.refusal().is_some_and(Refusal::is_bad_request);
        let useless = error.is_expired() || error.is_too_large_resource_version() || misunderstood;
        if self.asks_for_newest_now(useless) {
            return Duration::ZERO;
        }
        // Pages that make no sense may do so in one piece.
        self.unpaged = continued && matches!(error, ListError::Corrupt { .. });
        if self.by_list == 1 && self.distrust == 0 {
            self.by_list = 0;
        }
        self.wait_for_whole(error.retry_after())
    }

    /// The watch failed or ended before it had brought the whole state.
    pub(crate) fn watch_list_failed(&mut self, error: &WatchError) -> Duration {
        if self.asks_for_newest_now(error.is_expired() || error.is_too_large_resource_version()) {
            return Duration::ZERO;
        }
        if error.is_too_many_requests() || matches!(error, WatchError::Unreachable { .. }) {
            // A list would fare no better.
            return self.wait_for_whole(error.retry_after());
        }
        self.by_list = 1;
        if matches!(error, WatchError::Incomplete { .. } | WatchError::Silent { .. }) {
            self.distrust = self.distrust.saturating_mul(2).clamp(1, MAX_DISTRUST);
            self.by_list = self.distrust;
        }
        let retry_after = error.retry_after();
        if retry_after.is_some() { self.wait(retry_after) } else { Duration::ZERO }
    }

    /// The whole state that came is older than asked for.
    pub(crate) fn whole_is_too_old(&mut self) -> Duration {
        if self.asks_for_newest_now(true) { Duration::ZERO } else { self.wait_for_whole(None) }
    }

    /// A watch that followed, or could not be opened, failed. It brought us further, or not.
    pub(crate) fn watch_failed(
        &mut self,
        error: &WatchError,
        lived: Duration,
        progress: bool,
    ) -> Duration {
        self.backoff.healthy(lived);
        if !matches!(error, WatchError::Refused { .. } | WatchError::Unreachable { .. }) {
            self.refused = 0;
        }
        if error.is_too_many_requests() {
            return self.wait(error.retry_after());
        }
        if error.refusal().is_some_and(leaves_no_way_on) {
            self.phase = Phase::Gathering;
            return self.wait(error.retry_after());
        }
        match error {
            WatchError::Torn { .. } | WatchError::Silent { .. } => {
                return self.watch_ended(lived, progress);
            }
            WatchError::Corrupt { .. } | WatchError::Ended { .. } => self.could_not_read(),
            // Nobody gets a list who is not known.
            WatchError::Refused { refusal, .. } if !refusal.is_unauthorized() => {
                self.refused += 1;
                if self.refused >= REFUSED {
                    self.phase = Phase::Detour;
                }
            }
            _ => {}
        }
        self.wait(error.retry_after())
    }

    /// The server closed a watch that followed. It brought us further, or not.
    pub(crate) fn watch_ended(&mut self, lived: Duration, progress: bool) -> Duration {
        self.backoff.healthy(lived);
        self.refused = 0;
        if progress || lived >= SHORT { Duration::ZERO } else { self.wait(None) }
    }

    /// A watch said nothing as long as it lived.
    ///
    /// Servers send a bookmark every minute. One that has none for us may have been set back to an older state: it says
    /// nothing until it has got as far again as we have been.
    pub(crate) fn heard_nothing(&mut self, lived: Duration) {
        if lived >= SILENT && self.phase == Phase::Following {
            self.phase = Phase::Detour;
        }
    }

    /// The author's code panicked.
    pub(crate) fn panicked(&mut self) -> Duration {
        if self.phase != Phase::Following {
            return self.wait_for_whole(None);
        }
        self.could_not_read();
        self.wait(None)
    }

    fn could_not_read(&mut self) {
        self.unreadable += 1;
        if self.unreadable >= UNREADABLE {
            self.phase = Phase::Detour;
        }
    }

    /// Drops the version from the question, if that is why there was no answer and it has not been tried yet.
    fn asks_for_newest_now(&mut self, version_is_useless: bool) -> bool {
        let ask = version_is_useless && !self.use_newest && self.last.is_some();
        self.use_newest |= ask;
        ask
    }

    /// There was no whole state this time.
    fn wait_for_whole(&mut self, retry_after: Option<Duration>) -> Duration {
        if self.phase == Phase::Detour {
            self.phase = Phase::Following;
        }
        self.wait(retry_after)
    }

    fn wait(&mut self, retry_after: Option<Duration>) -> Duration {
        self.backoff.next(retry_after, &mut self.chance)
    }
}

/// Whether asking again what follows this version is of no use.
fn leaves_no_way_on(refusal: &Refusal) -> bool {
    refusal.is_expired()
        || refusal.is_too_large_resource_version()
        || refusal.is_bad_request()
        // An object that the server itself cannot read was removed by force.
        || refusal.reason == "StoreReadError"
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
