//! The work queue of an actor: holds each key once, hands it to one worker, retries after a
//! failure.

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use tokio::time::Instant;

/// The delay after the first failure; each consecutive failure doubles it.
const BACKOFF_BASE: Duration = Duration::from_millis(50);

/// The maximum delay after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Keys in the order in which they were added. A key is in `ready`, in `busy`, or in neither;
/// besides, it may be in `later`.
#[derive(Debug)]
pub(super) struct WorkQueue<K> {
    ready: VecDeque<K>,
    /// The keys in `ready`.
    queued: HashSet<K>,
    /// Keys that were handed out and not finished.
    busy: HashSet<K>,
    /// Keys that were added while busy; they become ready when they are finished.
    dirty: HashSet<K>,
    /// Delayed keys, by time and then by age.
    later: BTreeMap<(Instant, u64), K>,
    /// The position of a key in `later`.
    due: HashMap<K, (Instant, u64)>,
    /// The number of consecutive failures of a key.
    failures: HashMap<K, u32>,
    next_age: u64,
}

// === impl WorkQueue ===

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            dirty: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            next_age: 0,
        }
    }

    pub(super) fn add(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.dirty.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Adds the key at `time`, or earlier if it is already due earlier.
    pub(super) fn add_at(&mut self, key: K, time: Instant) {
        if let Some(due) = self.due.get(&key) {
            if due.0 <= time {
                return;
            }
            self.later.remove(due);
        }
        let due = (time, self.next_age);
        self.next_age += 1;
        self.due.insert(key.clone(), due);
        self.later.insert(due, key);
    }

    /// Returns the next key. It is busy until [`finish`](Self::finish).
    pub(super) fn next(&mut self, now: Instant) -> Option<K> {
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key);
        }
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    /// Takes a key back. After a failure it is due again after [`backoff`].
    pub(super) fn finish(&mut self, key: K, failed: bool, now: Instant) {
        self.busy.remove(&key);
        if failed {
            let failures = self.failures.entry(key.clone()).or_insert(0);
            let wait = backoff(*failures);
            *failures = failures.saturating_add(1);
            self.add_at(key.clone(), now + wait);
        } else {
            self.failures.remove(&key);
        }
        if self.dirty.remove(&key) {
            self.add(key);
        }
    }

    /// Returns the time at which the next delayed key is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((time, _), _)| *time)
    }
}

/// Returns the delay after `failures` earlier failures: 50 ms, doubled up to 5 s. There is no
/// jitter: each actor is alone, and runs must be repeatable.
pub(super) fn backoff(failures: u32) -> Duration {
    BACKOFF_BASE.saturating_mul(2_u32.saturating_pow(failures)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(work: &mut WorkQueue<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| work.next(now)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn key_is_handed_out_once_and_not_while_busy() {
        let now = Instant::now();
        let mut work = WorkQueue::new();
        work.add("a");
        work.add("b");
        work.add("a");
        assert_eq!(drain(&mut work, now), ["a", "b"]);
        work.add("a");
        assert_eq!(work.next(now), None);
        work.finish("a", false, now);
        work.finish("b", false, now);
        assert_eq!(drain(&mut work, now), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_double_the_delay_and_success_resets_it() {
        let now = Instant::now();
        let mut work = WorkQueue::new();
        work.add("a");
        for wait in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let at = work.deadline().unwrap_or(now);
            assert_eq!(work.next(at), Some("a"));
            work.finish("a", true, at);
            assert_eq!(work.deadline().unwrap() - at, Duration::from_millis(wait));
        }
        let at = work.deadline().unwrap();
        assert_eq!(work.next(at), Some("a"));
        work.finish("a", false, at);
        assert_eq!(work.deadline(), None);
        assert!(work.failures.is_empty());
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn earliest_of_several_times_is_used() {
        let now = Instant::now();
        let mut work = WorkQueue::new();
        work.add_at("a", now + Duration::from_secs(2));
        work.add_at("a", now + Duration::from_secs(1));
        work.add_at("a", now + Duration::from_secs(3));
        assert_eq!(work.deadline(), Some(now + Duration::from_secs(1)));
        assert_eq!(work.next(now), None);
        assert_eq!(drain(&mut work, now + Duration::from_secs(9)), ["a"]);
        assert_eq!(work.deadline(), None);
    }
}
