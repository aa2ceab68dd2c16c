//! Guards and tokens: who has to lower what, as values.
//!
//! "After each request that failed, lower by one; and by the rest if you stop half-way" is easy to
//! forget and hard to get right when a future is cancelled. Here a guard stands for all requests of
//! one decision and a token for one of them, and dropping either does the safe thing: what was never
//! started is lowered, what may have reached the server stays expected.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use crate::entries::{Generation, Shared};
use crate::sync::Mutex;

/// Creations and deletions that were noted; dropping it lowers those that were never started.
///
/// It lowers only what it noted itself, not what has replaced that since.
#[must_use = "dropped at once, nothing is expected any more: take a token before each request"]
pub struct Expected<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if there was no entry to raise: then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
    not_started: Mutex<Counts>,
}

/// Creations that were noted; dropping it lowers those that were never started.
///
/// It lowers only what it noted itself, not what has replaced that since.
#[must_use = "dropped at once, nothing is expected any more: take a token before each request"]
pub struct ExpectedCreations<Key: Eq + Hash, Uid: Eq + Hash> {
    counted: Expected<Key, Uid>,
}

/// Deletions that were noted; dropping it lowers those that were never started.
///
/// It lowers only what it noted itself, not what has replaced that since.
#[must_use = "dropped at once, nothing is expected any more: take a token before each request"]
pub struct ExpectedDeletions<Key: Eq + Hash, Uid: Eq + Hash> {
    entry: Arc<EntryOf<Key, Uid>>,
    not_started: Mutex<HashSet<Uid>>,
}

/// One creation whose request is about to be sent, or was.
///
/// Dropping it means that nobody knows whether the server has carried it out (a timeout, a broken
/// connection, a cancelled future): it stays expected.
#[must_use = "say what became of the request: `sent` or `refused`"]
pub struct CreationToken<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if more were started than were expected: then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
}

/// One deletion whose request is about to be sent, or was.
///
/// Dropping it means that nobody knows whether the server has carried it out (a timeout, a broken
/// connection, a cancelled future): it stays expected.
#[must_use = "say what became of the request: `sent` or `refused`"]
pub struct DeletionToken<Key: Eq + Hash, Uid: Eq + Hash> {
    /// `None` if the deletion was not expected, or started before: then there is nothing to lower.
    entry: Option<Arc<EntryOf<Key, Uid>>>,
    /// What is deleted; `None` if it was only counted.
    uid: Option<Uid>,
}

struct Counts {
    creations: usize,
    deletions: usize,
}

/// Which entry a guard and its tokens lower.
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

    /// Takes the token of one creation, before its request is sent. Requests may run concurrently.
    ///
    /// Of more tokens than were expected, the surplus ones lower nothing.
    pub fn start_creation(&self) -> CreationToken<Key, Uid> {
        let counted = take_one(&mut self.not_started.lock().creations);
        CreationToken { entry: self.entry.clone().filter(|_| counted) }
    }

    /// Takes the token of one deletion, before its request is sent. Requests may run concurrently.
    ///
    /// Of more tokens than were expected, the surplus ones lower nothing.
    pub fn start_deletion(&self) -> DeletionToken<Key, Uid> {
        let counted = take_one(&mut self.not_started.lock().deletions);
        DeletionToken { entry: self.entry.clone().filter(|_| counted), uid: None }
    }
}

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

    /// Takes the token of one request, before it is sent. Requests may run concurrently.
    ///
    /// Of more tokens than were expected, the surplus ones lower nothing.
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

    /// Takes the token of the request that deletes `uid`, before it is sent. Requests may run
    /// concurrently.
    ///
    /// The token of a uid that was not expected, or that was started before, lowers nothing.
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
    /// The server has carried the request out: the cache will show it, or has already.
    pub fn sent(self) {}

    /// The server has certainly not carried the request out: it is expected no longer.
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
    /// The server has carried the request out: the cache will show it, or has already.
    pub fn sent(self) {}

    /// The server has certainly not carried the request out: it is expected no longer.
    ///
    /// If the object was not found, it was gone before: that is a refusal, too, since the cache may
    /// have shown it already.
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
    /// These will never be; no effect if the entry was replaced or forgotten.
    fn lower(&self, creations: usize, deletions: usize) {
        self.shared.change_own(&self.key, self.generation, |pending| {
            pending.lower(creations, deletions);
        });
    }

    /// These deletions will never be; no effect if the entry was replaced or forgotten.
    fn lower_deletions_of<'a>(&self, uids: impl IntoIterator<Item = &'a Uid>)
    where
        Uid: 'a,
    {
        let mut lowered: Vec<Uid> = Vec::new(); // uids are the user's: not dropped under the lock
        self.shared.change_own(&self.key, self.generation, |pending| {
            lowered = uids.into_iter().filter_map(|uid| pending.lower_deletion_of(uid)).collect();
        });
    }
}
