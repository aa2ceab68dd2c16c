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

use crate::sync::Mutex;
use crate::uid_tracking::{Generation, Shared};

/// Creations that were noted; dropping it lowers those that were never started.
///
/// It lowers only what it noted itself, not what has replaced that since.
#[must_use = "dropped at once, nothing is expected any more: take a token before each request"]
pub struct ExpectedCreations<Key: Eq + Hash, Uid: Eq + Hash> {
    entry: Arc<EntryOf<Key, Uid>>,
    not_started: Mutex<usize>,
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
    /// `None` if the uid was not expected, or started before: then there is nothing to lower.
    lowers: Option<(Arc<EntryOf<Key, Uid>>, Uid)>,
}

/// Which entry a guard and its tokens lower.
struct EntryOf<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
    key: Key,
    generation: Generation,
}

// === impl ExpectedCreations ===

impl<Key: Eq + Hash, Uid: Eq + Hash> ExpectedCreations<Key, Uid> {
    pub(crate) fn new(
        shared: Arc<Shared<Key, Uid>>,
        key: Key,
        generation: Generation,
        count: usize,
    ) -> Self {
        let entry = Arc::new(EntryOf { shared, key, generation });
        Self { entry, not_started: Mutex::new(count) }
    }

    /// Takes the token of one request, before it is sent. Requests may run concurrently.
    ///
    /// Of more tokens than were expected, the surplus ones lower nothing.
    pub fn start(&self) -> CreationToken<Key, Uid> {
        let mut not_started = self.not_started.lock();
        let rest = not_started.checked_sub(1);
        *not_started = rest.unwrap_or(0);
        CreationToken { entry: rest.map(|_| Arc::clone(&self.entry)) }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Drop for ExpectedCreations<Key, Uid> {
    fn drop(&mut self) {
        let EntryOf { shared, key, generation } = &*self.entry;
        let count = mem::take(self.not_started.get_mut());
        if count > 0 {
            shared.lower_creations(key, *generation, count);
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for ExpectedCreations<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_started = *self.not_started.lock();
        f.debug_struct("ExpectedCreations")
            .field("not_started", &not_started)
            .finish_non_exhaustive()
    }
}

// === impl ExpectedDeletions ===

impl<Key: Eq + Hash, Uid: Eq + Hash> ExpectedDeletions<Key, Uid> {
    pub(crate) fn new(
        shared: Arc<Shared<Key, Uid>>,
        key: Key,
        generation: Generation,
        uids: HashSet<Uid>,
    ) -> Self {
        let entry = Arc::new(EntryOf { shared, key, generation });
        Self { entry, not_started: Mutex::new(uids) }
    }

    /// Takes the token of the request that deletes `uid`, before it is sent. Requests may run
    /// concurrently.
    ///
    /// The token of a uid that was not expected, or that was started before, lowers nothing.
    pub fn start(&self, uid: &Uid) -> DeletionToken<Key, Uid> {
        let uid = self.not_started.lock().take(uid);
        DeletionToken { lowers: uid.map(|uid| (Arc::clone(&self.entry), uid)) }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> Drop for ExpectedDeletions<Key, Uid> {
    fn drop(&mut self) {
        let EntryOf { shared, key, generation } = &*self.entry;
        let uids = mem::take(self.not_started.get_mut());
        if !uids.is_empty() {
            shared.lower_deletions(key, *generation, uids.iter());
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
            entry.shared.lower_creations(&entry.key, entry.generation, 1);
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
        if let Some((entry, uid)) = self.lowers {
            let uids = std::iter::once(&uid);
            entry.shared.lower_deletions(&entry.key, entry.generation, uids);
        }
    }
}

impl<Key: Eq + Hash, Uid: Eq + Hash> fmt::Debug for DeletionToken<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeletionToken").finish_non_exhaustive()
    }
}
