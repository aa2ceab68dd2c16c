//! [`Requested`]: the kind of recount that is wanted for each key.
//!
//! A queue holds keys only. The kind is kept beside it: a request notes the kind first and adds the
//! key after that, so that the worker that takes the key finds it. Of two kinds the full one stays.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::plan::Recount;

/// The recounts that are requested and have not begun.
pub(crate) struct Requested<K> {
    keys: Arc<Mutex<HashMap<K, Entry>>>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    recount: Option<Recount>,
    /// The moment after which a charge ends without an event, so that a full recount is due.
    release: Option<Timestamp>,
    /// True if a pass has failed since the key was added, so that it waits for its retry.
    has_failed: bool,
}

/// A recount that a worker has begun. Dropping it without [`done`](Self::done) requests the recount
/// again.
pub(crate) struct Begun<K: Eq + Hash> {
    requested: Requested<K>,
    /// `None` after `done`.
    key: Option<K>,
    recount: Recount,
}

// === impl Requested ===

impl<K: Eq + Hash + Clone> Requested<K> {
    pub(crate) fn new() -> Self {
        Self { keys: Arc::default() }
    }

    /// Notes that `key` needs a recount. The caller then adds the key to the queue.
    ///
    /// Returns false if the key is in the queue already: a recount is requested and has not begun.
    /// A caller that has to add many keys can save the addition then. A key whose last pass failed
    /// waits for its retry, and is to be added.
    pub(crate) fn request(&self, key: &K, recount: Recount) -> bool {
        let mut keys = self.keys.lock();
        let entry = keys.entry(key.clone()).or_default();
        let is_queued = entry.recount.is_some() && !entry.has_failed;
        entry.recount = entry.recount.max(Some(recount));
        entry.has_failed = false;
        !is_queued
    }

    /// Takes the requested recount, or returns `None` if there is none: another worker has done it.
    pub(crate) fn begin(&self, key: &K, now: Timestamp) -> Option<Begun<K>> {
        let mut keys = self.keys.lock();
        let entry = keys.get_mut(key)?;
        if entry.release.is_some_and(|release| release < now) {
            *entry = Entry { recount: Some(Recount::Full), ..Entry::default() };
        }
        let recount = entry.recount.take()?;
        entry.has_failed = false;
        if entry.release.is_none() {
            keys.remove(key);
        }
        Some(Begun { requested: self.clone(), key: Some(key.clone()), recount })
    }

    /// Returns the moment after which a charge of `key` ends.
    pub(crate) fn release(&self, key: &K) -> Option<Timestamp> {
        self.keys.lock().get(key)?.release
    }

    /// Notes that a charge of `key` ends after `release`; `None` if none does.
    pub(crate) fn set_release(&self, key: &K, release: Option<Timestamp>) {
        let mut keys = self.keys.lock();
        if release.is_some() {
            keys.entry(key.clone()).or_default().release = release;
        } else if let Some(entry) = keys.get_mut(key) {
            entry.release = None;
            if entry.recount.is_none() {
                keys.remove(key);
            }
        }
    }
}

impl<K> Clone for Requested<K> {
    fn clone(&self) -> Self {
        Self { keys: Arc::clone(&self.keys) }
    }
}

// === impl Begun ===

impl<K: Eq + Hash> Begun<K> {
    pub(crate) fn recount(&self) -> Recount {
        self.recount
    }

    /// The recount is complete.
    pub(crate) fn done(mut self) {
        self.key = None;
    }
}

impl<K: Eq + Hash> Drop for Begun<K> {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut keys = self.requested.keys.lock();
        let entry = keys.entry(key).or_default();
        entry.recount = entry.recount.max(Some(self.recount));
        entry.has_failed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn full_recount_replaces_raise_only_and_not_the_reverse() {
        let requested = Requested::new();
        for order in [[Recount::RaiseOnly, Recount::Full], [Recount::Full, Recount::RaiseOnly]] {
            for recount in order {
                requested.request(&"a", recount);
            }
            let begun = requested.begin(&"a", at(0)).unwrap();
            assert_eq!(begun.recount(), Recount::Full);
            begun.done();
            assert!(requested.begin(&"a", at(0)).is_none());
        }
    }

    #[test]
    fn failed_recount_is_requested_again() {
        let requested = Requested::new();
        requested.request(&"a", Recount::Full);
        let begun = requested.begin(&"a", at(0)).unwrap();
        requested.request(&"a", Recount::RaiseOnly);
        drop(begun);
        assert_eq!(requested.begin(&"a", at(0)).unwrap().recount(), Recount::Full);
    }

    #[test]
    fn key_is_added_once_until_its_pass_begins_or_fails() {
        let requested = Requested::new();
        assert!(requested.request(&"a", Recount::RaiseOnly));
        assert!(!requested.request(&"a", Recount::Full), "it is in the queue");
        let begun = requested.begin(&"a", at(0)).unwrap();
        assert!(requested.request(&"a", Recount::RaiseOnly), "the pass may not see the change");
        drop(begun);
        assert!(requested.request(&"a", Recount::RaiseOnly), "the retry may be minutes away");
        assert!(!requested.request(&"a", Recount::RaiseOnly));
        requested.begin(&"a", at(0)).unwrap().done();
        requested.set_release(&"a", Some(at(5)));
        assert!(requested.request(&"a", Recount::Full), "a release adds no key");
    }

    #[test]
    fn recount_is_full_after_the_release_of_a_charge() {
        let requested = Requested::new();
        requested.set_release(&"a", Some(at(5)));
        assert!(requested.begin(&"a", at(5)).is_none(), "the charge counts up to this moment");
        requested.request(&"a", Recount::RaiseOnly);
        let begun = requested.begin(&"a", at(5)).unwrap();
        assert_eq!(begun.recount(), Recount::RaiseOnly);
        begun.done();
        let begun = requested.begin(&"a", at(6)).unwrap();
        assert_eq!(begun.recount(), Recount::Full);
        begun.done();
        assert!(requested.begin(&"a", at(7)).is_none());
        assert!(requested.keys.lock().is_empty());
    }
}
