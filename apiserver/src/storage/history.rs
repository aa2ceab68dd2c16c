//! The recent changes of one resource: a window that grows while it fills quickly, as the real
//! watch cache does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::object::Stored;

/// A write: the object before and after it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Arc<str>,
    pub(crate) old: Option<Arc<Stored>>,
    pub(crate) new: Option<Arc<Stored>>,
}

/// The changes of one resource, oldest first.
#[derive(Debug)]
pub(super) struct History {
    changes: VecDeque<(Instant, Change)>,
    window: usize,
    /// All changes after this revision are kept.
    kept_after: u64,
    /// No older state can be listed.
    list_floor: u64,
    /// No older state can be listed, because it is old; the watch cache may still have it.
    age_floor: u64,
    /// No watch can start at an older revision.
    watch_floor: u64,
}

const MIN_WINDOW: usize = 100;
const MAX_WINDOW: usize = 102_400;
/// A window that fills within this time grows, so that a client has time to reconnect; upstream's
/// value.
const GROWTH_PERIOD: Duration = Duration::from_secs(75);

// === impl History ===

impl Default for History {
    fn default() -> Self {
        Self::new(0)
    }
}

impl History {
    pub(super) fn new(revision: u64) -> Self {
        Self {
            changes: VecDeque::new(),
            window: MIN_WINDOW,
            kept_after: revision,
            list_floor: revision,
            age_floor: revision,
            watch_floor: revision,
        }
    }

    pub(super) fn push(&mut self, change: Change, now: Instant) {
        if self.changes.len() >= self.window {
            self.resize(now);
        }
        while self.changes.len() >= self.window {
            self.forget_oldest();
        }
        self.changes.push_back((now, change));
    }

    fn resize(&mut self, now: Instant) {
        let age =
            self.changes.front().map_or(Duration::MAX, |(written, _)| now.duration_since(*written));
        if age < GROWTH_PERIOD {
            self.window = (self.window * 2).min(MAX_WINDOW);
            return;
        }
        let recent = self.changes.get(self.changes.len() - self.window / 4);
        let quiet = recent.is_some_and(|(written, _)| now.duration_since(*written) > GROWTH_PERIOD);
        if quiet {
            self.window = (self.window / 2).max(MIN_WINDOW);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, change)) = self.changes.pop_front() {
            self.kept_after = self.kept_after.max(change.revision);
        }
    }

    /// Returns the kept changes after `revision`.
    pub(super) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Change> {
        let start = self.changes.partition_point(|(_, change)| change.revision <= revision);
        self.changes.range(start..).map(|(_, change)| change)
    }

    /// Returns the first change after this instant.
    pub(super) fn first_after(&self, then: Instant) -> Option<&Change> {
        let start = self.changes.partition_point(|(written, _)| *written <= then);
        self.changes.get(start).map(|(_, change)| change)
    }

    pub(super) fn kept_after(&self) -> u64 {
        self.kept_after
    }

    /// Returns the oldest revision whose state can be listed.
    pub(super) fn list_floor(&self) -> u64 {
        self.cache_floor().max(self.age_floor)
    }

    /// Returns the oldest revision whose state a lagging server can show.
    pub(super) fn cache_floor(&self) -> u64 {
        self.list_floor.max(self.kept_after)
    }

    /// Returns the oldest revision at which a watch can start.
    pub(super) fn watch_floor(&self) -> u64 {
        self.watch_floor.max(self.kept_after)
    }

    /// Sets the oldest revision that can be listed.
    pub(super) fn raise_list_floor(&mut self, revision: u64) {
        self.list_floor = self.list_floor.max(revision);
    }

    /// Sets the oldest revision that can be listed, but leaves lagging servers as they are.
    pub(super) fn raise_age_floor(&mut self, revision: u64) {
        self.age_floor = self.age_floor.max(revision);
    }

    /// Sets the revision at which new watches can start. Open watches still read older changes.
    pub(super) fn raise_watch_floor(&mut self, revision: u64) {
        self.watch_floor = self.watch_floor.max(revision);
    }
}
