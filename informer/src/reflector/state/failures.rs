//! The ends and failures of requests, and the wait before the next one.

use std::cmp::Ordering;
use std::time::Duration;

use super::{Phase, State};
use crate::list_watch::{ApiError, ListError, WatchError};
use crate::object::ResourceVersion;

/// The maximum number of lists before the next watch-list after a failure.
const MAX_LISTS: u32 = 64;

/// After this many consecutive watches that the server refused (about a minute) or did not answer
/// in time, a relist is forced: a client that can list but not watch still gets a copy, although a
/// late one. With a smaller limit, every client would list a server that has just restarted.
pub(super) const MAX_REFUSED: u32 = 6;

/// The minimum lifetime of a healthy watch. A shorter watch without an event counts as a failure.
const SHORT: Duration = Duration::from_secs(1);

/// Consecutive watches that deliver nothing for this time, three bookmark periods, cause a probe.
const SILENT: Duration = Duration::from_secs(180);

/// After this many consecutive failures to read the events after a version, a relist is forced.
pub(super) const MAX_UNREADABLE: u32 = 3;

impl State {
    /// Records a failed list, and returns the wait before the next request. `continued` is true
    /// after the first page.
    ///
    /// In this order:
    ///
    /// 1. An expired continue token: at once, without pages.
    /// 2. A version that is useless: at once, for the newest state, if the request named a version.
    /// 3. Corrupt pages: after a wait, without pages.
    /// 4. Anything else: after a wait.
    pub(crate) fn list_failed(&mut self, error: &ListError, continued: bool) -> Duration {
        self.note_answer(error.is_unanswered());
        if error.is_expired() && continued && !self.unpaged {
            self.unpaged = true;
            return Duration::ZERO;
        }
        // The server may be unable to parse the version.
        let misunderstood = error.api_error().is_some_and(ApiError::is_bad_request);
        let useless = error.is_expired() || error.is_too_large_resource_version() || misunderstood;
        if self.asks_for_newest_now(useless) {
            return Duration::ZERO;
        }
        // A list with corrupt pages may succeed without pages.
        self.unpaged = continued && matches!(error, ListError::Corrupt { .. });
        if self.by_list == 1 && self.watch_list_failures == 0 {
            self.by_list = 0;
        }
        self.full_state_failed(error.retry_after())
    }

    /// Records that a watch-list failed before the full state was complete, and returns the wait
    /// before the next request.
    ///
    /// If the server is busy or unreachable, the same request follows after a wait: a list would
    /// fail as well. A server without the feature refuses the request; the next full state is then
    /// a list, at once. If the server did not complete the state in time, the number of lists
    /// before the next attempt doubles, up to 64: the attempt costs the server as much as a list.
    pub(crate) fn watch_list_failed(&mut self, error: &WatchError) -> Duration {
        self.note_answer(error.is_unanswered());
        if self.asks_for_newest_now(error.is_expired() || error.is_too_large_resource_version()) {
            return Duration::ZERO;
        }
        if error.is_too_many_requests() || matches!(error, WatchError::Unreachable { .. }) {
            // A list would fail as well.
            return self.full_state_failed(error.retry_after());
        }
        self.by_list = 1;
        if matches!(error, WatchError::Incomplete { .. } | WatchError::Silent { .. }) {
            self.by_list = 1 << self.watch_list_failures.min(MAX_LISTS.ilog2());
            self.watch_list_failures = self.watch_list_failures.saturating_add(1);
        }
        let retry_after = error.retry_after();
        if retry_after.is_some() { self.wait(retry_after) } else { Duration::ZERO }
    }

    /// Records that the received full state is older than requested, and returns the wait before
    /// the next request.
    pub(crate) fn full_state_too_old(&mut self) -> Duration {
        self.backoff.answered();
        if self.asks_for_newest_now(true) { Duration::ZERO } else { self.full_state_failed(None) }
    }

    /// Records a watch that failed or could not be opened, and returns the wait before the next
    /// request.
    ///
    /// `lived` resets the back-off if the watch was healthy for long enough.
    pub(crate) fn watch_failed(
        &mut self,
        error: &WatchError,
        lived: Duration,
        progress: bool,
    ) -> Duration {
        self.note_answer(error.is_unanswered());
        self.backoff.healthy(lived);
        if is_opened(error, lived) {
            self.refused = 0;
        }
        if error.is_too_many_requests() {
            return self.wait(error.retry_after());
        }
        if error.api_error().is_some_and(makes_version_useless) {
            self.phase = Phase::Gathering;
            self.unpaged |= std::mem::take(&mut self.inconsistent);
            return self.wait(error.retry_after());
        }
        match error {
            // A proxy may hold back the answer to a watch, and pass lists on.
            WatchError::Silent { .. } if !is_opened(error, lived) => self.could_not_open(),
            WatchError::Torn { .. } | WatchError::Silent { .. } => {
                return self.ended(lived, progress);
            }
            WatchError::Corrupt { .. } | WatchError::Ended { .. } => self.could_not_read(),
            // An unauthorized client cannot list either.
            WatchError::Refused { error, .. } if !error.is_unauthorized() => self.could_not_open(),
            _ => {}
        }
        self.wait(error.retry_after())
    }

    /// Records that the server closed a watch, and returns the wait before the next request.
    pub(crate) fn watch_ended(&mut self, lived: Duration, progress: bool) -> Duration {
        self.backoff.answered();
        self.ended(lived, progress)
    }

    /// A watch that made progress or lived for at least 1 s is followed by the next one at once.
    fn ended(&mut self, lived: Duration, progress: bool) -> Duration {
        self.backoff.healthy(lived);
        self.refused = 0;
        if progress || lived >= SHORT { Duration::ZERO } else { self.wait(None) }
    }

    /// Records a watch that delivered nothing during its lifetime.
    ///
    /// Servers send a bookmark every minute. A server that sends none may have been restored to an
    /// older state: it delivers nothing until its version exceeds the requested one. The lifetimes
    /// of consecutive watches add up: a proxy may close each idle watch after a minute.
    pub(crate) fn silent_watch_ended(&mut self, lived: Duration) {
        self.silent = self.silent.saturating_add(lived);
        if self.silent >= SILENT && self.phase == Phase::Following {
            self.silent = Duration::ZERO;
            self.phase = Phase::Probing;
        }
    }

    /// Records a watch that delivered something, if only a bookmark.
    pub(crate) fn watch_delivered(&mut self) {
        self.silent = Duration::ZERO;
    }

    /// Records the server's version after a silent watch. A server whose version has no order with
    /// the newest queued one may have gone back.
    pub(crate) fn probed(&mut self, version: &ResourceVersion) {
        let newest = self.newest();
        let order = newest.and_then(|newest| version.compare(newest));
        let is_behind = order.map_or_else(|| newest != Some(version), Ordering::is_lt);
        self.phase = if is_behind { Phase::Gathering } else { Phase::Following };
    }

    /// Records a probe that failed, and returns the wait before the next request. The watch
    /// continues after the last version.
    pub(crate) fn probe_failed(&mut self, error: &ListError) -> Duration {
        self.note_answer(error.is_unanswered());
        self.phase = Phase::Following;
        self.wait(error.retry_after())
    }

    /// Records a panic of the author's code, and returns the wait before the next request.
    pub(crate) fn panicked(&mut self) -> Duration {
        if self.phase == Phase::Probing {
            self.phase = Phase::Following;
        } else if self.phase != Phase::Following {
            return self.full_state_failed(None);
        }
        self.could_not_read();
        self.wait(None)
    }

    /// Counts a watch that the server did not open, and forces a relist after the sixth.
    fn could_not_open(&mut self) {
        self.refused += 1;
        if self.refused >= MAX_REFUSED {
            self.phase = Phase::ForcedRelist;
        }
    }

    /// Counts a failure to read on, and forces a relist after the third.
    fn could_not_read(&mut self) {
        self.unreadable += 1;
        if self.unreadable >= MAX_UNREADABLE {
            self.phase = Phase::ForcedRelist;
        }
    }

    /// Drops the version from the next request if it caused the failure and that was not tried yet.
    /// Returns true if it did.
    fn asks_for_newest_now(&mut self, version_is_useless: bool) -> bool {
        let has_version = self.last.is_some() || self.config.from_cache;
        let ask = version_is_useless && !self.use_newest && has_version;
        self.use_newest |= ask;
        ask
    }

    /// Ends a forced relist that failed, and returns the wait before the next request.
    fn full_state_failed(&mut self, retry_after: Option<Duration>) -> Duration {
        if self.phase == Phase::ForcedRelist {
            self.phase = Phase::Following;
        }
        self.wait(retry_after)
    }

    /// Passes to the back-off whether the server answered: the next answer undoes the steps without
    /// an answer.
    fn note_answer(&mut self, is_unanswered: bool) {
        if is_unanswered {
            self.backoff.unanswered();
        } else {
            self.backoff.answered();
        }
    }

    /// Takes the next wait from the back-off.
    ///
    /// A `Retry-After` of the server is a minimum for the wait, up to 5 minutes.
    fn wait(&mut self, retry_after: Option<Duration>) -> Duration {
        self.backoff.next(retry_after, &mut self.random)
    }
}

/// Returns true if the server had opened the watch that ended with this error. A watch that was not
/// opened has no lifetime.
fn is_opened(error: &WatchError, lived: Duration) -> bool {
    match error {
        WatchError::Refused { .. } | WatchError::Unreachable { .. } => false,
        WatchError::Silent { .. } => !lived.is_zero(),
        _ => true,
    }
}

/// Returns true if repeating a watch from this version is useless.
fn makes_version_useless(error: &ApiError) -> bool {
    error.is_expired()
        || error.is_too_large_resource_version()
        || error.is_bad_request()
        // An object that the server could not read was deleted by force.
        || error.reason == "StoreReadError"
}
