//! The fates of a recorder's events.
//!
//! Each recorded event ends in one of six ways: sent, counted, dropped, filtered, refused or
//! unsent. The sum of these is `recorded`, less the events that wait. The numbers are read without
//! a lock, so that a snapshot taken while events are sent may be off by those.

use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_core::metrics::record;
use metrics::Counter;

/// Results of the events of an [`EventRecorder`](crate::EventRecorder), made by
/// [`EventRecorder::counts`](crate::EventRecorder::counts). Each number only grows.
///
/// The metric `homeostat_events_total` has the same numbers, with the labels `component` and
/// `result`. Several equal events may be one object on the server.
///
/// A growing `dropped` shows that events are recorded faster than the server takes them; a growing
/// `refused`, that the program lacks a permission.
///
/// # Examples
///
/// ```no_run
/// # fn doc(events: &homeostat::EventRecorder) {
/// let counts = events.counts();
/// assert_eq!(counts.refused, 0, "the controller lacks the right to create events");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventCounts {
    /// Events that were recorded.
    pub recorded: u64,
    /// Events that the server has.
    pub sent: u64,
    /// Events that raised the count of their series; the server gets the count with the next patch.
    /// 0 with [`EventsApi::Core`](super::EventsApi::Core).
    pub counted: u64,
    /// Events that were dropped because the queue was full.
    pub dropped: u64,
    /// Events that the spam filter dropped.
    pub filtered: u64,
    /// Events that the server refused.
    pub refused: u64,
    /// Events that got no answer in 12 attempts, or before the shutdown.
    pub unsent: u64,
}

/// The counters of one recorder, shared with its task.
///
/// The metric handles are registered once, when the recorder is built.
pub(super) struct Counts {
    recorded: AtomicU64,
    sent: Fate,
    counted: Fate,
    dropped: Fate,
    filtered: Fate,
    refused: Fate,
    unsent: Fate,
}

/// A counter with its metric.
struct Fate {
    count: AtomicU64,
    metric: Counter,
}

// === impl Counts ===

impl Counts {
    /// Registers the metric of each result.
    pub(super) fn new(component: &str) -> Self {
        let fate = |result: &'static str| {
            let mut metric = Counter::noop();
            record(|| {
                let component = component.to_owned();
                metric = metrics::counter!(
                    "homeostat_events_total", "component" => component, "result" => result
                );
            });
            Fate { count: AtomicU64::new(0), metric }
        };
        Self {
            recorded: AtomicU64::new(0),
            sent: fate("sent"),
            counted: fate("counted"),
            dropped: fate("dropped"),
            filtered: fate("filtered"),
            refused: fate("refused"),
            unsent: fate("unsent"),
        }
    }

    /// Reads all numbers.
    pub(super) fn get(&self) -> EventCounts {
        EventCounts {
            recorded: self.recorded.load(Ordering::Relaxed),
            sent: self.sent.get(),
            counted: self.counted.get(),
            dropped: self.dropped.get(),
            filtered: self.filtered.get(),
            refused: self.refused.get(),
            unsent: self.unsent.get(),
        }
    }

    /// Counts an event that the author recorded. It has no metric: it is the sum of the others.
    pub(super) fn recorded(&self) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of dropped events with this one.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.increment()
    }

    /// Counts an event that the spam filter dropped.
    pub(super) fn filtered(&self) {
        self.filtered.increment();
    }

    /// Counts an event that raised the count of its series.
    pub(super) fn counted(&self) {
        self.counted.increment();
    }

    /// Counts an event that the server has.
    pub(super) fn sent(&self) {
        self.sent.increment();
    }

    /// Counts an event that the server refused.
    pub(super) fn refused(&self) {
        self.refused.increment();
    }

    /// Counts an event without an answer.
    pub(super) fn unsent(&self) {
        self.unsent.increment();
    }
}

// === impl Fate ===

impl Fate {
    fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Adds 1 and returns the sum.
    fn increment(&self) -> u64 {
        record(|| self.metric.increment(1));
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}
