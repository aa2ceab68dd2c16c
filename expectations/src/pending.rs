//! The expectations of one key. Pure: the caller passes the time.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// The time after which an entry expires: 5 minutes (`ExpectationsTimeout` of
/// `controller_utils.go`).
///
/// This is long enough for a loaded API server and for a watch that has to relist. After that it is
/// worse to wait without limit than to act on the cache.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The creations and deletions that one owner waits for, read together. For logs.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, u8>::default();
/// assert_eq!(expectations.outstanding(&"default/web", &1), None);
///
/// expectations.expect_creations(&"default/web", &1, 1).start().sent();
/// let outstanding = expectations.outstanding(&"default/web", &1).unwrap();
/// assert_eq!((outstanding.creations, outstanding.deletions), (1, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// The number of creations that the cache has yet to show; below zero if it has shown more than
    /// were expected.
    pub creations: i64,
    /// The number of deletions that the cache has yet to show; below zero if it has shown more than
    /// were expected.
    pub deletions: i64,
    /// The time since the entry was set.
    pub age: Duration,
}

/// The expected creations and deletions of one entry that were neither observed nor refused.
///
/// The counts may go below zero: the informer may report a write before the response arrives, and
/// clamping at zero would then lose that observation when the count is raised. A count at or below
/// zero is fulfilled.
pub(crate) struct Pending<Uid> {
    creations: i64,
    deletions: i64,
    /// The uids of the deletions, if they are known; then `deletions` is their number. The first
    /// observation removes a uid: a pod's `deletionTimestamp` and its removal count once.
    uids: HashSet<Uid>,
    /// The start of the entry's life. Neither `raise` nor `lower` changes it.
    set_at: Instant,
    /// True after the first verdict `Expired`; never reset.
    expiry_reported: bool,
}

/// The state of an entry at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The cache has shown everything.
    Fulfilled,
    /// The cache has not, and the entry is too old. `first` is true in the first such verdict.
    Expired { first: bool },
    /// The cache has not shown everything yet.
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
            expiry_reported: false,
        }
    }

    pub(crate) fn deletions_of(uids: HashSet<Uid>, now: Instant) -> Self {
        let counts = Self::counts(0, uids.len(), now);
        Self { uids, ..counts }
    }

    /// Lowers the counts: the cache has shown these writes, or never will.
    pub(crate) fn lower(&mut self, creations: usize, deletions: usize) {
        self.creations = self.creations.saturating_sub(signed(creations));
        self.deletions = self.deletions.saturating_sub(signed(deletions));
    }

    /// Raises the counts. The entry does not expire later.
    pub(crate) fn raise(&mut self, creations: usize, deletions: usize) {
        self.creations = self.creations.saturating_add(signed(creations));
        self.deletions = self.deletions.saturating_add(signed(deletions));
    }

    /// Lowers one deletion: the cache has shown it, or never will. Returns the uid, so that the
    /// caller drops it outside of the lock; `None` if the deletion was not expected.
    pub(crate) fn lower_deletion_of(&mut self, uid: &Uid) -> Option<Uid> {
        let expected = self.uids.take(uid);
        self.deletions -= i64::from(expected.is_some());
        expected
    }

    /// Returns true if the cache has yet to show a deletion that is known by uid.
    pub(crate) fn awaits_uids(&self) -> bool {
        !self.uids.is_empty()
    }

    /// Returns the state of the entry. Fulfilment is checked first: an old entry that is fulfilled
    /// has not expired.
    pub(crate) fn verdict(&mut self, now: Instant) -> Verdict {
        if self.creations <= 0 && self.deletions <= 0 {
            Verdict::Fulfilled
        } else if now.saturating_duration_since(self.set_at) > TIMEOUT {
            let first = !std::mem::replace(&mut self.expiry_reported, true);
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
