//! The last error of each key that fails, for the debug page.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::text::beginning;

/// The number of keys whose errors are kept. The page shows fewer.
const REMEMBERED: usize = 1000;

/// The longest error that is kept, in characters.
const LONGEST: usize = 500;

/// The last error of each failing key of a controller. Its workers share it.
///
/// A success without an earlier failure costs one load of an atomic.
#[derive(Debug)]
pub(crate) struct LastErrors<Key> {
    errors: Mutex<HashMap<Key, LastError>>,
    /// True if there is no error. Written under the lock.
    is_empty: AtomicBool,
}

/// The error of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastError {
    /// At most [`LONGEST`] characters.
    pub(crate) text: Arc<str>,
    /// The time of the failure.
    pub(crate) at: Instant,
    /// False if the key is not retried before a change.
    pub(crate) is_retried: bool,
}

// === impl LastErrors ===

impl<Key: Clone + Eq + Hash> LastErrors<Key> {
    /// Returns a map without errors.
    pub(crate) fn new() -> Self {
        Self { errors: Mutex::default(), is_empty: AtomicBool::new(true) }
    }

    /// Records a failure of `key`. From 1,000 failing keys on, new ones are not kept.
    pub(crate) fn failed(&self, key: &Key, error: &str, is_retried: bool) {
        let text = beginning(error, LONGEST).into();
        let error = LastError { text, at: Instant::now(), is_retried };
        let mut errors = self.errors.lock();
        if errors.len() < REMEMBERED || errors.contains_key(key) {
            errors.insert(key.clone(), error);
            self.is_empty.store(false, Ordering::Release);
        }
    }

    /// Records a success of `key`.
    pub(crate) fn succeeded(&self, key: &Key) {
        if self.is_empty.load(Ordering::Acquire) {
            return;
        }
        let mut errors = self.errors.lock();
        errors.remove(key);
        self.is_empty.store(errors.is_empty(), Ordering::Release);
    }

    /// Returns the errors.
    pub(crate) fn all(&self) -> HashMap<Key, LastError> {
        self.errors.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn success_removes_the_error() {
        let errors = LastErrors::new();
        errors.succeeded(&"a");
        errors.failed(&"a", &"x".repeat(600), true);
        errors.failed(&"b", "no", false);
        assert_eq!(errors.all()["a"].text.len(), 500);
        errors.succeeded(&"a");
        errors.succeeded(&"b");
        assert!(errors.all().is_empty() && errors.is_empty.load(Ordering::Acquire));
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_errors_is_bounded() {
        let errors = LastErrors::new();
        for n in 0..2000 {
            errors.failed(&n, "no", true);
        }
        errors.failed(&7, "other", true);
        let all = errors.all();
        assert_eq!((all.len(), all[&7].text.as_ref()), (REMEMBERED, "other"));
    }
}
