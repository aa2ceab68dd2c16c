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
    /// How many creations the cache has yet to show; below zero if it has shown more than were expected.
    pub creations: i64,
    /// How many deletions the cache has yet to show; below zero if it has shown more than were expected.
    pub deletions: i64,
    /// How long ago these were set.
    pub age: Duration,
}

/// What was set at one time, less what was observed or refused since.
pub(crate) struct Pending<Uid> {
    creations: i64,
    deletions: i64,
    /// Which deletions these are, if that is known: then `deletions` is their number. Each is removed by
    /// the first observation: a pod's `deletionTimestamp` and its removal count once.
    uids: HashSet<Uid>,
    set_at: Instant,
    expiry_told: bool,
}

/// Whether an owner may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The cache has shown everything.
    Fulfilled,
    /// It has not, and is not waited for any longer. `first` the first time that this is said.
    Expired { first: bool },
    /// It has not yet.
    Waiting,
}

// === impl Pending ===

impl<Uid: Eq + Hash> Pending<Uid> {
    pub(crate) fn counts(creations: usize, deletions: usize, now: Instant) -> Self {
        let uids = HashSet::new();
        Self {
            creations: signed(creations),
            deletions: signed(deletions),
            uids,
            set_at: now,
            expiry_told: false,
        }
    }

    pub(crate) fn deletions_of(uids: HashSet<Uid>, now: Instant) -> Self {
        let counts = Self::counts(0, uids.len(), now);
        Self { uids, ..counts }
    }

    /// The cache has shown this much, or it will never be.
    pub(crate) fn lower(&mut self, creations: usize, deletions: usize) {
        self.creations = self.creations.saturating_sub(signed(creations));
        self.deletions = self.deletions.saturating_sub(signed(deletions));
    }

    /// More is expected. It is not believed any longer for that.
    pub(crate) fn raise(&mut self, creations: usize, deletions: usize) {
        self.creations = self.creations.saturating_add(signed(creations));
        self.deletions = self.deletions.saturating_add(signed(deletions));
    }

    /// The cache has shown this deletion, or it will never be. The uid is returned to be dropped
    /// outside of a lock; `None` if it was not expected, or not any longer.
    pub(crate) fn lower_deletion_of(&mut self, uid: &Uid) -> Option<Uid> {
        let expected = self.uids.take(uid);
        self.deletions -= i64::from(expected.is_some());
        expected
    }

    /// Whether some of the deletions that are known by uid were not shown.
    pub(crate) fn awaits_uids(&self) -> bool {
        !self.uids.is_empty()
    }

    pub(crate) fn verdict(&mut self, now: Instant) -> Verdict {
        if self.creations <= 0 && self.deletions <= 0 {
            Verdict::Fulfilled
        } else if now.saturating_duration_since(self.set_at) > TIMEOUT {
            let first = !std::mem::replace(&mut self.expiry_told, true);
            Verdict::Expired { first }
        } else {
            Verdict::Waiting
        }
    }

    pub(crate) fn outstanding(&self, now: Instant) -> Outstanding {
        Outstanding {
            creations: self.creations,
            deletions: self.deletions,
            age: now.saturating_duration_since(self.set_at),
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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
