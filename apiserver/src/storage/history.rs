//! The last changes of one resource: a window that grows while it fills quickly, as the real watch cache does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::object::Stored;

/// One write: what was there before, and after.
#[derive(Debug)]
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
    /// Every change after this revision is kept.
    kept_after: u64,
    /// New requests may not ask for anything before this revision.
    floor: u64,
}

const SMALLEST: usize = 100;
const LARGEST: usize = 102_400;
/// A window that fills faster than this is too small: a client would not be back in time.
const FRESH: Duration = Duration::from_secs(75);

// === impl History ===

impl Default for History {
    fn default() -> Self {
        Self::new(0)
    }
}

impl History {
    pub(super) fn new(revision: u64) -> Self {
        Self { changes: VecDeque::new(), window: SMALLEST, kept_after: revision, floor: revision }
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
        if age < FRESH {
            self.window = (self.window * 2).min(LARGEST);
            return;
        }
        let recent = self.changes.get(self.changes.len() - self.window / 4);
        let quiet = recent.is_some_and(|(written, _)| now.duration_since(*written) > FRESH);
        if quiet {
            self.window = (self.window / 2).max(SMALLEST);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, change)) = self.changes.pop_front() {
            self.kept_after = self.kept_after.max(change.revision);
        }
    }

    /// The changes after `revision`, as far as they are kept.
    pub(super) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Change> {
        let start = self.changes.partition_point(|(_, change)| change.revision <= revision);
        self.changes.range(start..).map(|(_, change)| change)
    }

    /// The first change that was written after this moment.
    pub(super) fn first_after(&self, then: Instant) -> Option<&Change> {
        let start = self.changes.partition_point(|(written, _)| *written <= then);
        self.changes.get(start).map(|(_, change)| change)
    }

    pub(super) fn kept_after(&self) -> u64 {
        self.kept_after
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor.max(self.kept_after)
    }

    /// New requests start here at the earliest. The changes stay, for watches that are already reading them.
    pub(super) fn raise_floor(&mut self, revision: u64) {
        self.floor = self.floor.max(revision);
    }
}
