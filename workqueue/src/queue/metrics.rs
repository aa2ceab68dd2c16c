//! The metrics of client-go's queues, under the same names
//! (component-base/metrics/prometheus/workqueue).
//!
//! A queue without a name or without a recorder has no `Metrics` at all, so that it pays for a
//! check of an `Option` and nothing else. The panics of a recorder are caught: a worker never ends
//! because of a metric.
//!
//! Lifetime of a gauge: each item that is added to `workqueue_depth` is subtracted exactly once,
//! when it is taken, when a drain returns it, or when the queue is dropped. The gauges of held
//! items are the work of a task, the ticker.

use std::time::Duration;

use homeostat_core::metrics::{is_recorded, record};
use metrics::{Counter, Gauge, Histogram, SharedString};

use crate::sync::Mutex;

use super::core::Change;
use super::task::OwnedTask;

/// The histogram buckets that Kubernetes uses for `workqueue_queue_duration_seconds` and
/// `workqueue_work_duration_seconds`: from 10 ns to 10 s in powers of 10.
///
/// The `metrics` facade has no buckets: configure the exporter with these.
///
/// The unit is the second. Work that takes longer than 10 s is in the last, unbounded bucket only.
pub const DURATION_BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The metric handles of a queue, registered when the queue is built. Handles that are registered
/// before a recorder is installed record nothing.
///
/// All methods run outside of the queue's lock, because a recorder is the author's code.
pub(super) struct Metrics {
    /// `workqueue_depth`. Each item is subtracted when it is taken, handed back, or dropped with
    /// the queue.
    depth: Depth,
    /// `workqueue_adds_total`: requests that were not merged.
    adds: Counter,
    /// `workqueue_queue_duration_seconds`: from the request to the hand-out.
    queue_duration: Histogram,
    /// `workqueue_work_duration_seconds`: from the hand-out to its end, with or without `done`.
    work_duration: Histogram,
    /// `workqueue_unfinished_work_seconds`: the sum over all held items.
    unfinished: Gauge,
    /// `workqueue_longest_running_processor_seconds`: the longest of them.
    longest: Gauge,
    /// `workqueue_retries_total`: `add_after` and `add_rate_limited`.
    retries: Counter,
    /// The task that updates the gauges of held items while items are held. Locked before the
    /// queue.
    pub(super) ticker: Mutex<Option<OwnedTask>>,
}

/// The number of requested items that no worker has taken yet. As in client-go, this includes held
/// items that were added again.
///
/// A queue by priority has one gauge for each of its first 25 priorities and one for all others.
/// The gauge of a priority is never removed, so that the number of time series stays bounded.
enum Depth {
    All(Gauge),
    ByPriority { name: SharedString, known: Mutex<Vec<(i32, Gauge)>>, others: Gauge },
}

/// The number of priorities with their own label, as in controller-runtime. Each label value is a
/// time series.
const PRIORITIES: usize = 25;

/// The label that all other priorities share, as in controller-runtime.
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

// === impl Metrics ===

impl Metrics {
    /// Returns `None` without a name, without a recorder, or if the recorder panics.
    pub(super) fn new(name: &str, by_priority: bool) -> Option<Self> {
        if name.is_empty() || !is_recorded() {
            return None;
        }
        let mut handles = None;
        record(|| handles = Some(Self::register(name, by_priority)));
        handles
    }

    /// Registers all handles. The names, the label `name` and the units (seconds) are those of
    /// client-go; `workqueue_depth` has the label `priority` in addition if the queue orders by
    /// priority, as in controller-runtime.
    fn register(name: &str, by_priority: bool) -> Self {
        let name = SharedString::from(name.to_owned());
        let labels = || [("name", name.clone())];
        Self {
            depth: Depth::new(&name, by_priority),
            adds: metrics::counter!("workqueue_adds_total", &labels()),
            queue_duration: metrics::histogram!("workqueue_queue_duration_seconds", &labels()),
            work_duration: metrics::histogram!("workqueue_work_duration_seconds", &labels()),
            unfinished: metrics::gauge!("workqueue_unfinished_work_seconds", &labels()),
            longest: metrics::gauge!("workqueue_longest_running_processor_seconds", &labels()),
            retries: metrics::counter!("workqueue_retries_total", &labels()),
            ticker: Mutex::new(None),
        }
    }

    // Cold, like all methods below, so that the steps of a queue without metrics stay short.
    /// Records the effect of an add or a release on the depth and on the number of adds.
    #[cold]
    pub(super) fn changed(&self, change: Change) {
        record(|| self.change(change));
    }

    /// Maps a change to the gauges. A [`Change::Returned`] item raises the depth but not the adds:
    /// it is no new request.
    fn change(&self, change: Change) {
        match change {
            Change::None => {}
            Change::Queued(priority) | Change::Wanted(priority) => {
                self.adds.increment(1);
                self.depth.add(priority, 1.0);
            }
            Change::Returned(priority) => self.depth.add(priority, 1.0),
            Change::Raised { from, to } => {
                self.depth.add(from, -1.0);
                self.depth.add(to, 1.0);
            }
        }
    }

    /// Counts a request by `add_after` or `add_rate_limited`.
    #[cold]
    pub(super) fn retried(&self) {
        record(|| self.retries.increment(1));
    }

    /// Records that a worker took an item of this priority after it had `waited`.
    ///
    /// Two separate calls: if the recorder panics in the first, the second still runs.
    #[cold]
    pub(super) fn taken(&self, priority: i32, waited: Duration) {
        record(|| self.depth.add(priority, -1.0));
        record(|| self.queue_duration.record(waited));
    }

    /// Records that a worker returned an item after `worked`.
    #[cold]
    pub(super) fn released(&self, worked: Duration, change: Change) {
        record(|| self.work_duration.record(worked));
        self.changed(change);
    }

    /// Removes items of these priorities from the depth.
    pub(super) fn handed_back(&self, priorities: Vec<i32>) {
        for priority in priorities {
            record(|| self.depth.add(priority, -1.0));
        }
    }

    /// Stops the task and sets its gauges to 0. The queue holds no item any more.
    pub(super) fn stop(&self) {
        let ticker = self.ticker.lock().take();
        if ticker.is_some() {
            self.set_gauges(Duration::ZERO, Duration::ZERO);
        }
    }

    /// Sets both gauges, in seconds.
    pub(super) fn set_gauges(&self, sum: Duration, longest: Duration) {
        record(|| self.unfinished.set(sum.as_secs_f64()));
        record(|| self.longest.set(longest.as_secs_f64()));
    }
}

// === impl Depth ===

impl Depth {
    fn new(name: &SharedString, by_priority: bool) -> Self {
        if by_priority {
            let others = Self::gauge(name, OTHER_PRIORITIES.into());
            Self::ByPriority { name: name.clone(), known: Mutex::new(Vec::new()), others }
        } else {
            Self::All(metrics::gauge!("workqueue_depth", "name" => name.clone()))
        }
    }

    fn gauge(name: &SharedString, priority: SharedString) -> Gauge {
        metrics::gauge!("workqueue_depth", "name" => name.clone(), "priority" => priority)
    }

    /// Adds to the gauge of this priority. A priority keeps its gauge, so that an item is
    /// subtracted from the gauge to which it was added.
    fn add(&self, priority: i32, number: f64) {
        match self {
            Self::All(gauge) => gauge.increment(number),
            Self::ByPriority { name, known, others } => {
                Self::of(known, name, priority).as_ref().unwrap_or(others).increment(number);
            }
        }
    }

    /// Returns the gauge of this priority if it is one of the first 25. Calls the recorder outside
    /// of the lock.
    fn of(known: &Mutex<Vec<(i32, Gauge)>>, name: &SharedString, priority: i32) -> Option<Gauge> {
        let find = |known: &[(i32, Gauge)]| {
            let mut all = known.iter();
            all.find_map(|(known, gauge)| (*known == priority).then(|| gauge.clone()))
        };
        let found = {
            let known = known.lock();
            find(&known).ok_or(known.len())
        };
        match found {
            Ok(gauge) => return Some(gauge),
            Err(labels) if labels >= PRIORITIES => return None,
            Err(_) => {}
        }
        let gauge = Self::gauge(name, priority.to_string().into());
        let mut known = known.lock();
        // Another thread may have registered the gauge in the meantime.
        let faster = find(&known);
        if faster.is_none() && known.len() < PRIORITIES {
            known.push((priority, gauge.clone()));
            return Some(gauge);
        }
        faster
    }
}
