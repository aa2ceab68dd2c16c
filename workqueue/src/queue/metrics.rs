//! What Kubernetes' dashboards expect of a work queue, under the very same names.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, SharedString};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::sync::Mutex;

use super::core::Change;
use super::shared::Shared;

/// The buckets that Kubernetes gives to `workqueue_queue_duration_seconds` and
/// `workqueue_work_duration_seconds`: from 10 ns on, each ten times the one before.
///
/// The `metrics` facade carries no buckets: tell these to the exporter.
pub const DURATION_BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// A queue's handles, taken once: a handle that was taken before there is a recorder stays silent.
///
/// Everything here is called outside of the queue's lock: a recorder is somebody else's code.
pub(super) struct Metrics {
    depth: Depth,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    retries: Counter,
    /// The task that keeps the gauges of what is held, while something is. Locked before the queue.
    ticker: Mutex<Option<Ticker>>,
}

/// How many items are asked for and not taken: as in client-go, those that are held and asked for again
/// count as well as those that are queued.
enum Depth {
    All(Gauge),
    ByPriority { name: SharedString, known: Mutex<Vec<(i32, Gauge)>>, others: Gauge },
}

/// Owns the task that sets the gauges; dropping this ends it.
struct Ticker(JoinHandle<()>);

/// How often the gauges of what is held are set, as in client-go.
const TICK: Duration = Duration::from_millis(500);

/// So many priorities have a label of their own, as in controller-runtime: each is a time series more.
const PRIORITIES: usize = 25;

/// The label that all other priorities share, as in controller-runtime.
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

// === impl Metrics ===

impl Metrics {
    /// `None` if nobody would see them: without a name, or without a recorder.
    pub(super) fn new(name: &str, by_priority: bool) -> Option<Self> {
        if name.is_empty() || !is_recorded() {
            return None;
        }
        let name = SharedString::from(name.to_owned());
        let labels = || [("name", name.clone())];
        Some(Self {
            depth: Depth::new(&name, by_priority),
            adds: metrics::counter!("workqueue_adds_total", &labels()),
            queue_duration: metrics::histogram!("workqueue_queue_duration_seconds", &labels()),
            work_duration: metrics::histogram!("workqueue_work_duration_seconds", &labels()),
            unfinished: metrics::gauge!("workqueue_unfinished_work_seconds", &labels()),
            longest: metrics::gauge!("workqueue_longest_running_processor_seconds", &labels()),
            retries: metrics::counter!("workqueue_retries_total", &labels()),
            ticker: Mutex::new(None),
        })
    }

    // Cold, as all that follow: whoever keeps no metrics has short steps for that.
    #[cold]
    pub(super) fn changed(&self, change: Change) {
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

    #[cold]
    pub(super) fn retried(&self) {
        self.retries.increment(1);
    }

    #[cold]
    pub(super) fn taken(&self, priority: i32, waited: Duration) {
        self.depth.add(priority, -1.0);
        self.queue_duration.record(waited);
    }

    /// An item was returned.
    #[cold]
    pub(super) fn released(&self, worked: Duration, change: Change) {
        self.work_duration.record(worked);
        self.changed(change);
    }

    /// Items of these priorities are asked for no longer.
    pub(super) fn handed_back(&self, priorities: Vec<i32>) {
        for priority in priorities {
            self.depth.add(priority, -1.0);
        }
    }

    /// Sees to it that the gauges of what is held are set. Outside of a runtime they are not.
    #[cold]
    pub(super) fn tick<T: Send + Sync + 'static>(&self, queue: &Arc<Shared<T>>) {
        let mut ticker = self.ticker.lock();
        if ticker.as_ref().is_some_and(|Ticker(task)| !task.is_finished()) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        *ticker = Some(Ticker(runtime.spawn(tick(Arc::downgrade(queue)))));
    }

    /// Nothing is held, and nothing will be.
    pub(super) fn stop(&self) {
        let ticker = self.ticker.lock().take();
        if ticker.is_some() {
            self.unfinished.set(0.0);
            self.longest.set(0.0);
        }
    }

    /// Sets the gauges of what is held; false, and the task is no longer owned, if nothing is.
    fn set_unfinished<T>(&self, queue: &Shared<T>) -> bool {
        let mut ticker = self.ticker.lock();
        let now = Instant::now();
        let core = queue.core.lock();
        let observer = core.observer.as_deref();
        let (sum, longest) = observer.map(|observer| observer.unfinished(now)).unwrap_or_default();
        let holds_any = observer.is_some_and(super::observer::Observer::holds_any);
        drop(core);
        let ended = if holds_any { None } else { mem::take(&mut *ticker) };
        drop(ticker);
        drop(ended);
        self.unfinished.set(sum.as_secs_f64());
        self.longest.set(longest.as_secs_f64());
        holds_any
    }
}

async fn tick<T>(queue: Weak<Shared<T>>) {
    loop {
        sleep(TICK).await;
        // The handle does not live across the wait, so that this ends with the queue's last one.
        let Some(queue) = queue.upgrade() else { return };
        let Some(metrics) = &queue.metrics else { return };
        if !metrics.set_unfinished(&queue) {
            return;
        }
    }
}

/// Whether metrics go anywhere. The facade does not tell; but what it calls when there is no recorder has
/// no state at all, and one that records has some.
fn is_recorded() -> bool {
    metrics::with_recorder(|recorder| size_of_val(recorder) > 0)
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

    /// A priority has its label for ever: what was added to a gauge is taken from the same one.
    fn add(&self, priority: i32, number: f64) {
        match self {
            Self::All(gauge) => gauge.increment(number),
            Self::ByPriority { name, known, others } => {
                Self::of(known, name, priority).as_ref().unwrap_or(others).increment(number);
            }
        }
    }

    /// The gauge of this priority, if it is among the first; asks the recorder while nothing is locked.
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
        // Another thread may have been faster.
        let faster = find(&known);
        if faster.is_none() && known.len() < PRIORITIES {
            known.push((priority, gauge.clone()));
            return Some(gauge);
        }
        faster
    }
}

// === impl Ticker ===

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}
