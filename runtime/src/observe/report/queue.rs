//! The state of a work queue, and of the reconciles of its controller.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use homeostat_workqueue::Queue;
use homeostat_workqueue::inspect::Snapshot;
use serde::Serialize;
use tokio::time::Instant;

use super::{optional_seconds, seconds};
use crate::last_errors::LastError;
use crate::last_reconciles::PastReconcile;
use crate::text::Guarded;

/// The longest list of keys of a report: a page of a queue with 100,000 keys stays readable.
const SHOWN: usize = 200;

/// A work queue.
///
/// A queue is inspected if it was built with `QueueBuilder::inspect` or has metrics. Of another
/// queue only the depth is known, and the failing keys if it is a controller's.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct QueueReport {
    /// The queue's name.
    pub name: String,
    /// The number of keys that wait for a worker.
    pub depth: usize,
    /// The keys that wait for a worker, longest waiting first; at most 200, as the other lists.
    /// Empty if the queue is not inspected.
    pub queued: Vec<Key>,
    /// The keys that wait for a time, earliest first. The time is the rest of the delay.
    pub delayed: Vec<Key>,
    /// The keys that workers hold, longest held first.
    pub held: Vec<Key>,
    /// The keys whose last reconcile has failed, most failures first.
    pub failing: Vec<FailingKey>,
    /// The last reconciles of the queue's controller, latest first; at most 100. Empty if the queue
    /// is not a controller's, and for a second queue: the first one has the reconciles of both.
    pub reconciles: Vec<ReconcileReport>,
}

/// A reconcile that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReconcileReport {
    /// The key.
    pub key: String,
    /// The reason for which the key was queued.
    pub trigger: String,
    /// 1 plus the failures since the key's last success.
    pub attempt: u32,
    /// The time since its end.
    #[serde(serialize_with = "seconds")]
    pub ended: Duration,
    /// The time that it took.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
    /// `done`, the delay of the next try, or the error.
    pub outcome: String,
    /// The first 20 requests of its task with their status codes, as
    /// `POST /api/v1/namespaces/shop/pods 201`. Only a client of [`client`](crate::client) records
    /// them.
    pub calls: Vec<String>,
    /// The number of all requests.
    pub call_count: usize,
}

/// A key whose last reconcile has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailingKey {
    /// The key.
    pub key: String,
    /// The failures since its last success; 0 after a terminal error.
    pub failures: u32,
    /// The last error. `None` if the queue is not a controller's, or if more than 1,000 keys fail.
    pub error: Option<String>,
    /// The time since the last failure.
    #[serde(serialize_with = "optional_seconds")]
    pub failed: Option<Duration>,
    /// The time until the next try; 0 if it is queued or running. `None` after a terminal error,
    /// because the key is not tried before a change.
    #[serde(serialize_with = "optional_seconds")]
    pub next_try: Option<Duration>,
}

/// A key in a queue.
///
/// The failures are those that the rate limiter counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Key {
    /// The key.
    pub key: String,
    /// The time since it was queued or taken, or until its delay ends.
    #[serde(serialize_with = "seconds")]
    pub time: Duration,
    /// The failures since its last success.
    pub failures: u32,
}

// === impl QueueReport ===

impl QueueReport {
    /// Returns the state of `queue`.
    pub(crate) fn of<T, Cause>(name: &str, queue: &Queue<T, Cause>) -> Self
    where
        T: Clone + Eq + Hash + Display + Send + Sync + 'static,
        Cause: Send + Sync + 'static,
    {
        Self::with_errors(name, queue, HashMap::new())
    }

    /// Returns the state of `queue` with the last errors of its keys. The errors of keys that the
    /// queue does not have belong to keys that are not retried.
    pub(crate) fn with_errors<T, Cause>(
        name: &str,
        queue: &Queue<T, Cause>,
        errors: HashMap<T, LastError>,
    ) -> Self
    where
        T: Clone + Eq + Hash + Display + Send + Sync + 'static,
        Cause: Send + Sync + 'static,
    {
        let (name, depth) = (name.to_owned(), queue.len());
        let Some(snapshot) = queue.inspect() else {
            let failing = uninspected(queue, errors);
            return Self { name, depth, failing, ..Self::default() };
        };
        let now = Instant::now();
        let since = |then| now.saturating_duration_since(then);
        let until = |then: Instant| then.saturating_duration_since(now);
        let queued = snapshot.queued.iter();
        let delayed = snapshot.delayed.iter();
        let held = snapshot.held.iter();
        Self {
            name,
            depth,
            queued: keys(queued.map(|key| (&key.item, since(key.since), key.failures))),
            delayed: keys(delayed.map(|key| (&key.item, until(key.until), key.failures))),
            held: keys(held.map(|key| (&key.item, since(key.since), key.failures))),
            failing: failing(&snapshot, errors, now),
            reconciles: Vec::new(),
        }
    }

    /// Adds the last reconciles of the queue's controller.
    pub(crate) fn with_reconciles(self, reconciles: &[Arc<PastReconcile>]) -> Self {
        let now = Instant::now();
        let reports = reconciles.iter().map(|past| ReconcileReport {
            key: past.key.clone(),
            trigger: past.trigger.clone(),
            attempt: past.attempt,
            ended: now.saturating_duration_since(past.ended),
            took: past.took,
            outcome: past.outcome.clone(),
            calls: past.calls.clone(),
            call_count: past.call_count,
        });
        Self { reconciles: reports.collect(), ..self }
    }
}

/// Returns the failing keys of a queue that is not inspected: those that have an error. The queue
/// is looked up for each, and not copied.
fn uninspected<T, Cause>(queue: &Queue<T, Cause>, errors: HashMap<T, LastError>) -> Vec<FailingKey>
where
    T: Clone + Eq + Hash + Display + Send + Sync + 'static,
    Cause: Send + Sync + 'static,
{
    let now = Instant::now();
    let failing = errors.into_iter().filter_map(|(item, error)| {
        let next_try = queue.time_until_due(&item);
        // A key that is retried and not in this queue belongs to another one.
        let is_here = next_try.is_some() || !error.is_retried;
        let failures = queue.failures(&item);
        is_here.then(|| FailingKey::new(&item, failures, Some(error), next_try, now))
    });
    most_failures_first(failing.collect())
}

/// Sorts the keys and keeps at most [`SHOWN`].
fn most_failures_first(mut failing: Vec<FailingKey>) -> Vec<FailingKey> {
    failing.sort_by(|one, other| {
        other.failures.cmp(&one.failures).then_with(|| one.key.cmp(&other.key))
    });
    failing.truncate(SHOWN);
    failing
}

/// Returns at most [`SHOWN`] keys that fail, most failures first.
fn failing<T: Clone + Eq + Hash + Display>(
    snapshot: &Snapshot<T>,
    mut errors: HashMap<T, LastError>,
    now: Instant,
) -> Vec<FailingKey> {
    // A key may be held and delayed: the first entry counts.
    let ready = Duration::ZERO;
    let held = snapshot.held.iter().map(|key| (&key.item, key.failures, ready));
    let queued = snapshot.queued.iter().map(|key| (&key.item, key.failures, ready));
    let delayed = snapshot
        .delayed
        .iter()
        .map(|key| (&key.item, key.failures, key.until.saturating_duration_since(now)));
    let mut seen = HashSet::new();
    let mut failing = Vec::new();
    for (item, failures, next_try) in held.chain(queued).chain(delayed) {
        if seen.insert(item) && (failures > 0 || errors.contains_key(item)) {
            let error = errors.remove(item);
            failing.push(FailingKey::new(item, failures, error, Some(next_try), now));
        }
    }
    let unretried = errors.into_iter().filter(|(_, error)| !error.is_retried);
    failing
        .extend(unretried.map(|(item, error)| FailingKey::new(&item, 0, Some(error), None, now)));
    most_failures_first(failing)
}

// === impl FailingKey ===

impl FailingKey {
    fn new(
        key: &impl Display,
        failures: u32,
        error: Option<LastError>,
        next_try: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            key: Guarded(key).to_string(),
            failures,
            failed: error.as_ref().map(|error| now.saturating_duration_since(error.at)),
            error: error.map(|error| error.text.to_string()),
            next_try,
        }
    }
}

/// Formats at most [`SHOWN`] keys.
fn keys<'a, T: Display + 'a>(keys: impl Iterator<Item = (&'a T, Duration, u32)>) -> Vec<Key> {
    let shown = keys.take(SHOWN);
    shown
        .map(|(key, time, failures)| Key { key: Guarded(key).to_string(), time, failures })
        .collect()
}
