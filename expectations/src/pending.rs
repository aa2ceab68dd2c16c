//! One key's expectations. Pure: it is told what time it is.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How long to believe that the cache will still show something.
///
/// Long enough for a loaded API server and a watch that has to be listed again; after that a
/// controller that waits for ever is worse than one that acts on what it sees. (Upstream's value.)
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What one key's owner still waits for, as it was at one moment. For logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// How many creations the cache has yet to show.
    pub creations: usize,
    /// How many deletions the cache has yet to show.
    pub deletions: usize,
    /// How long ago these were set.
    pub age: Duration,
}

/// What was set at one time, less what was observed or refused since.
pub(crate) struct Pending<Uid> {
    /// Never below zero: what is observed without being expected has no effect.
    creations: usize,
    /// Each removed by the first observation: a pod's `deletionTimestamp` and its removal count once.
    deletions: HashSet<Uid>,
    set_at: Instant,
}

// === impl Pending ===

impl<Uid: Eq + Hash> Pending<Uid> {
    pub(crate) fn creations(count: usize, now: Instant) -> Self {
        Self { creations: count, deletions: HashSet::new(), set_at: now }
    }

    pub(crate) fn deletions(uids: HashSet<Uid>, now: Instant) -> Self {
        Self { creations: 0, deletions: uids, set_at: now }
    }

    /// The cache has shown this many creations, or they will never be.
    pub(crate) fn lower_creations(&mut self, count: usize) {
        self.creations = self.creations.saturating_sub(count);
    }

    /// The cache has shown this deletion, or it will never be. The uid is returned to be dropped
    /// outside of a lock; `None` if it was not expected, or not any longer.
    pub(crate) fn lower_deletion(&mut self, uid: &Uid) -> Option<Uid> {
        self.deletions.take(uid)
    }

    /// Whether the cache has shown everything.
    pub(crate) fn fulfilled(&self) -> bool {
        self.creations == 0 && self.deletions.is_empty()
    }

    /// Whether this is too old to be believed.
    pub(crate) fn expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.set_at) > TIMEOUT
    }

    pub(crate) fn outstanding(&self, now: Instant) -> Outstanding {
        Outstanding {
            creations: self.creations,
            deletions: self.deletions.len(),
            age: now.saturating_duration_since(self.set_at),
        }
    }
}

// === impl Outstanding ===

impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { creations, deletions, age } = self;
        write!(f, "{creations} creations and {deletions} deletions since {age:.1?}")
    }
}

#[cfg(test)]
mod tests;
