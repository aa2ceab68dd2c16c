//! Guards and tokens that lower expectations.
//!
//! Kubernetes' controllers lower an expectation by hand after each failed request, and lower the
//! rest when they stop early. That is easy to forget, and hard to get right when a future is
//! cancelled. Here a guard stands for all requests of one decision, and a token for one request.
//! Dropping a guard lowers the requests that were never started. Dropping a token keeps its request
//! expected, because the API server may have carried it out.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::{fmt, mem};

use crate::entries::{Generation, Shared};
use crate::sync::Mutex;

/// A guard for expected creations and deletions; dropping it lowers those that were never started.
///
/// It lowers only its own entry, not an entry that has replaced it since.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::ControllerExpectations;
///
/// let expectations = ControllerExpectations::<&str, u8>::default();
/// let expected = expectations.expect(&"default/agent", &1, 2, 1);
/// expected.start_creation().sent();
/// expected.start_deletion().refused();
/// drop(expected); // the second creation was never started
///
/// let outstanding = expectations.outstanding(&"default/agent", &1).unwrap();
/// assert_eq!((outstanding.creations, outstanding.deletions), (1, 0));
/// ```
#[must_use = "dropping the guard lowers every request: take a token before each request"]
pub struct Expected<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if there was no entry to raise; then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
    /// The requests without a token. Never held together with the lock of the entries.
    not_started: Mutex<Counts>,
}

/// A guard for expected creations; dropping it lowers those that were never started.
///
/// It lowers only its own entry, not an entry that has replaced it since.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, u8>::default();
/// let expected = expectations.expect_creations(&"default/web", &1, 3);
/// expected.start().sent();
/// drop(expected); // the other two were never started
/// assert_eq!(expectations.outstanding(&"default/web", &1).unwrap().creations, 1);
/// ```
#[must_use = "dropping the guard lowers every request: take a token before each request"]
pub struct ExpectedCreations<Key: Eq + Hash, Uid: Eq + Hash> {
    counted: Expected<Key, Uid>,
}

/// A guard for expected deletions; dropping it lowers those that were never started.
///
/// It lowers only its own entry, not an entry that has replaced it since.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, u8>::default();
/// let expected = expectations.expect_deletions(&"default/web", &1, [7, 8]);
/// expected.start(&7).sent();
/// drop(expected); // the deletion of 8 was never started
/// assert_eq!(expectations.outstanding(&"default/web", &1).unwrap().deletions, 1);
/// ```
#[must_use = "dropping the guard lowers every request: take a token before each request"]
pub struct ExpectedDeletions<Key: Eq + Hash, Uid: Eq + Hash> {
    entry: Arc<EntryOf<Key, Uid>>,
    /// The uids without a token; a token moves its uid out. Never held together with the lock of
    /// the entries.
    not_started: Mutex<HashSet<Uid>>,
}

/// A token for one creation request that is about to be sent, or is in flight.
///
/// # Cancel safety
///
/// Dropping the token means that the outcome is unknown (a timeout, a broken connection, a
/// cancelled future): the creation stays expected.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, u8>::default();
/// let expected = expectations.expect_creations(&"default/web", &1, 1);
/// drop(expected.start()); // the request timed out
/// drop(expected);
/// assert!(!expectations.satisfied(&"default/web", &1), "the server may have carried it out");
/// ```
#[must_use = "report the outcome of the request: `sent` or `refused`"]
pub struct CreationToken<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if the guard had no expected creation left; then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
}

/// A token for one deletion request that is about to be sent, or is in flight.
///
/// # Cancel safety
///
/// Dropping the token means that the outcome is unknown (a timeout, a broken connection, a
/// cancelled future): the deletion stays expected.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::UidTrackingExpectations;
///
/// let expectations = UidTrackingExpectations::<&str, u8>::default();
/// let expected = expectations.expect_deletions(&"default/web", &1, [7]);
/// expected.start(&7).refused(); // not found: the object was gone already
/// assert!(expectations.satisfied(&"default/web", &1));
/// ```
#[must_use = "report the outcome of the request: `sent` or `refused`"]
pub struct DeletionToken<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if the deletion was not expected or already started; then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
    /// The uid of the deleted object; `None` if the deletion is only counted.
    uid: Option<Uid>,
}

/// The requests of a guard that were not started. They only go down: a token takes one, the drop of
/// the guard takes the rest. The guard's own lock protects them, so that requests of one decision
/// can start on several threads.
struct Counts {
    creations: usize,
    deletions: usize,
}

/// The entry that a guard and its tokens lower.
///
/// The generation makes it safe to keep this for any time: if the entry was replaced or removed,
/// both methods have no effect.
pub(crate) struct EntryOf<Key, Uid> {
    pub(crate) shared: Arc<Shared<Key, Uid>>,
    pub(crate) key: Key,
    pub(crate) generation: Generation,
}

// === impl Expected ===

impl<Key: Eq + Hash, Uid: Eq + Hash> Expected<Key, Uid> {
    pub(crate) fn new(
        entry: Option<EntryOf<Key, Uid>>,
        creations: usize,
        deletions: usize,
    ) -> Self {
        let entry = entry.map(Arc::new);
        Self { entry, not_started: Mutex::new(Counts { creations, deletions }) }
    }

    /// Takes a token for one creation. Call it before sending the request; requests may run
    /// concurrently.
    ///
    /// A token beyond the expected number lowers nothing.
    pub fn start_creation(&self) -> CreationToken<Key, Uid> {
        let counted = take_one(&mut self.not_started.lock().creations);
        CreationToken { entry: self.entry.clone().filter(|_| counted) }
    }

    /// Takes a token for one deletion. Call it before sending the request; requests may run
    /// concurrently.
    ///
    /// A token beyond the expected number lowers nothing.
    pub fn start_deletion(&self) -> DeletionToken<Key, Uid> {
        let counted = take_one(&mut self.not_started.lock().deletions);
        DeletionToken { entry: self.entry.clone().filter(|_| counted), uid: None }
    }
}

/// Decrements `rest` and returns true; returns false if it is zero.
fn take_one(rest: &mut usize) -> bool {
    let any = *rest > 0;
    *rest -= usize::from(any);
    any
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Drop for Expected<Key, Uid> {
    fn drop(&mut self) {
        let Counts { creations, deletions } = *self.not_started.get_mut();
        if let Some(entry) = self.entry.as_ref().filter(|_| creations > 0 || deletions > 0) {
            entry.lower(creations, deletions);
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for Expected<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_started = self.not_started.lock();
        f.debug_struct("Expected")
            .field("creations_not_started", &not_started.creations)
            .field("deletions_not_started", &not_started.deletions)
            .finish_non_exhaustive()
    }
}

// === impl ExpectedCreations ===

impl<Key: Eq + Hash, Uid: Eq + Hash> ExpectedCreations<Key, Uid> {
    pub(crate) fn new(entry: EntryOf<Key, Uid>, count: usize) -> Self {
        Self { counted: Expected::new(Some(entry), count, 0) }
    }

    /// Takes a token for one creation. Call it before sending the request; requests may run
    /// concurrently.
    ///
    /// A token beyond the expected number lowers nothing.
    pub fn start(&self) -> CreationToken<Key, Uid> {
        self.counted.start_creation()
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for ExpectedCreations<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExpectedCreations").field(&self.counted).finish()
    }
}

// === impl ExpectedDeletions ===

impl<Key: Eq + Hash, Uid: Eq + Hash> ExpectedDeletions<Key, Uid> {
    pub(crate) fn new(entry: EntryOf<Key, Uid>, uids: HashSet<Uid>) -> Self {
        Self { entry: Arc::new(entry), not_started: Mutex::new(uids) }
    }

    /// Takes the token for the deletion of `uid`. Call it before sending the request; requests may
    /// run concurrently.
    ///
    /// The token of a uid that was not expected or already started lowers nothing.
    pub fn start(&self, uid: &Uid) -> DeletionToken<Key, Uid> {
        let uid = self.not_started.lock().take(uid);
        DeletionToken { entry: uid.is_some().then(|| Arc::clone(&self.entry)), uid }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Drop for ExpectedDeletions<Key, Uid> {
    fn drop(&mut self) {
        let uids = mem::take(self.not_started.get_mut());
        if !uids.is_empty() {
            self.entry.lower_deletions_of(&uids);
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for ExpectedDeletions<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_started = self.not_started.lock().len();
        f.debug_struct("ExpectedDeletions")
            .field("not_started", &not_started)
            .finish_non_exhaustive()
    }
}

// === impl CreationToken ===

impl<Key: Eq + Hash, Uid: Eq + Hash> CreationToken<Key, Uid> {
    /// Reports that the server has carried out the request. The write stays expected until the
    /// cache shows it.
    pub fn sent(self) {}

    /// Reports that the server has certainly not carried out the request. Lowers the expectation.
    pub fn refused(self) {
        if let Some(entry) = self.entry {
            entry.lower(1, 0);
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for CreationToken<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreationToken").finish_non_exhaustive()
    }
}

// === impl DeletionToken ===

impl<Key: Eq + Hash, Uid: Eq + Hash> DeletionToken<Key, Uid> {
    /// Reports that the server has carried out the request. The write stays expected until the
    /// cache shows it.
    pub fn sent(self) {}

    /// Reports that the server has certainly not carried out the request. Lowers the expectation.
    ///
    /// Also call it if the server answers `NotFound`: the object was deleted earlier, and the cache
    /// may have shown that already.
    pub fn refused(self) {
        let Some(entry) = self.entry else { return };
        match self.uid {
            Some(uid) => entry.lower_deletions_of([&uid]),
            None => entry.lower(0, 1),
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for DeletionToken<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeletionToken").finish_non_exhaustive()
    }
}

// === impl EntryOf ===

impl<Key: Eq + Hash, Uid: Eq + Hash> EntryOf<Key, Uid> {
    /// Lowers the entry by these counts; no effect if it was replaced or removed.
    fn lower(&self, creations: usize, deletions: usize) {
        self.shared.change_own(&self.key, self.generation, |pending| {
            pending.lower(creations, deletions);
        });
    }

    /// Lowers the entry by these deletions; no effect if it was replaced or removed.
    fn lower_deletions_of<'a>(&self, uids: impl IntoIterator<Item = &'a Uid>)
    where
        Uid: 'a,
    {
        let mut lowered: Vec<Uid> = Vec::new(); // the user's type: not dropped under the lock
        self.shared.change_own(&self.key, self.generation, |pending| {
            lowered = uids.into_iter().filter_map(|uid| pending.lower_deletion_of(uid)).collect();
        });
    }
}
