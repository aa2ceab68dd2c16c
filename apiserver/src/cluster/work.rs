//! What an actor has to look at: each key once, never twice at a time, again after a failure.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

/// The first wait after a failure; doubled by each one that follows.
const BACKOFF_BASE: Duration = Duration::from_millis(50);

/// The longest wait after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Keys that wait, in the order they came. A key is in one of three places: `ready`, `busy`, or at
/// rest; besides it may be due `later`.
#[derive(Debug)]
pub(super) struct Work<K> {
    ready: VecDeque<K>,
    /// What is in `ready`.
    queued: HashSet<K>,
    /// Handed out and not finished.
    busy: HashSet<K>,
    /// Added while busy: ready again once finished.
    again: HashSet<K>,
    /// By time, then by age.
    later: BTreeMap<(Instant, u64), K>,
    /// Where a key is in `later`.
    due: HashMap<K, (Instant, u64)>,
    /// How often a key has failed in a row.
    failures: HashMap<K, u32>,
    next_age: u64,
}

// === impl Work ===

impl<K: Clone + Eq + Hash> Work<K> {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            again: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            next_age: 0,
        }
    }

    pub(super) fn add(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Adds the key at `time`, or earlier if it was to be added earlier.
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

    /// The next key to look at. It is busy until [`finish`](Self::finish).
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

    /// Gives a key back; after a failure it is due again, later each time.
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
        if self.again.remove(&key) {
            self.add(key);
        }
    }

    /// When the next key becomes due that is not ready yet.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((time, _), _)| *time)
    }
}

/// How long to wait after so many failures before: 50 ms, doubled up to 5 s. No jitter: there is one
/// actor of a kind, and runs are to be repeatable.
pub(super) fn backoff(failures: u32) -> Duration {
    BACKOFF_BASE.saturating_mul(2_u32.saturating_pow(failures)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(work: &mut Work<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| work.next(now)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_handed_out_once_and_never_while_busy() {
        let now = Instant::now();
        let mut work = Work::new();
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
    async fn failures_wait_longer_each_time_and_a_success_forgets_them() {
        let now = Instant::now();
        let mut work = Work::new();
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
    async fn the_earliest_of_several_times_wins() {
        let now = Instant::now();
        let mut work = Work::new();
        work.add_at("a", now + Duration::from_secs(2));
        work.add_at("a", now + Duration::from_secs(1));
        work.add_at("a", now + Duration::from_secs(3));
        assert_eq!(work.deadline(), Some(now + Duration::from_secs(1)));
        assert_eq!(work.next(now), None);
        assert_eq!(drain(&mut work, now + Duration::from_secs(9)), ["a"]);
        assert_eq!(work.deadline(), None);
    }
}
