//! The metrics of an informer, under the names that Kubernetes' dashboards expect.
//!
//! An informer records them only if its author names it
//! ([`InformerBuilder::metrics`](crate::InformerBuilder::metrics)). All have the labels `name`,
//! `group`, `version` and `resource`; those of handlers also have `handler`. Times are in seconds.
//!
//! | Metric | Type | Value |
//! |---|---|---|
//! | `informer_queued_items` | gauge | deltas in the queue |
//! | `informer_processing_latency_seconds` | histogram | time to apply a batch |
//! | `informer_store_resource_version` | gauge | last 15 digits of the store's version |
//! | `informer_opaque_objects` | gauge | cached objects that do not fit their type |
//! | `informer_skipped_nameless_objects_total` | counter | objects without a name |
//! | `informer_index_panics_total` | counter | panics of index functions |
//! | `informer_handler_queued_items` | gauge | events that wait for a handler |
//! | `informer_handler_panics_total` | counter | panics of a handler |
//! | `informer_handler_duration_seconds` | histogram | time of a call of a handler |
//! | `reflector_errors_total` | counter | failed lists and watches |
//! | `reflector_lists_total` | counter | lists that were started |
//! | `reflector_list_duration_seconds` | histogram | time of a complete list, all pages |
//! | `reflector_items_per_list` | histogram | objects of a complete list |
//! | `reflector_watches_total` | counter | watch requests |
//! | `reflector_short_watches_total` | counter | watches under 1 s without an object event |
//! | `reflector_watch_duration_seconds` | histogram | lifetime of a watch |
//! | `reflector_items_per_watch` | histogram | object events of a watch |
//!
//! When an informer is gone, its gauges are 0, except that of the version.
//!
//! A panic of the recorder is logged and does not end the informer.

mod measured;
mod names;
mod sum;

use std::sync::Arc;

use homeostat_core::metrics::{is_recorded, record};
use metrics::{Counter, Gauge, Histogram, Label};
use tokio::time::Instant;

pub(crate) use self::measured::Measured;
use self::names::{Reservation, Tenant};
use self::sum::Sum;
use crate::object::ResourceVersion;

/// The histograms and their buckets. The `metrics` facade carries none: pass these to the exporter.
/// Those of `informer_processing_latency_seconds` are Kubernetes' own.
///
/// Watch durations reach 600 s, because a watch is requested for 5 to 10 minutes.
///
/// # Examples
///
/// ```
/// use homeostat_informer::metrics::HISTOGRAM_BUCKETS;
///
/// let (name, buckets) = HISTOGRAM_BUCKETS[0];
/// assert_eq!(name, "informer_processing_latency_seconds");
/// assert_eq!(buckets.len(), 12);
/// ```
pub const HISTOGRAM_BUCKETS: [(&str, &[f64]); 6] = [
    ("informer_processing_latency_seconds", &SECONDS),
    ("informer_handler_duration_seconds", &CALLS),
    ("reflector_list_duration_seconds", &SECONDS),
    ("reflector_watch_duration_seconds", &[0.1, 1.0, 10.0, 60.0, 300.0, 450.0, 600.0]),
    ("reflector_items_per_list", &ITEMS),
    ("reflector_items_per_watch", &ITEMS),
];

/// In seconds, from 1 ms to 10 s: component-base's for `informer_processing_latency_seconds`.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// In seconds, from 10 µs to 10 s.
const CALLS: [f64; 7] = [0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0, 10.0];

/// In objects, from none to 100,000.
const ITEMS: [f64; 7] = [0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5];

/// The labels of an informer's metrics: the name that the process gave, and the resource.
#[derive(Clone, Debug)]
pub(crate) struct Labels(Vec<Label>);

/// Labels that no other informer records under.
pub(crate) struct Reserved {
    pub(crate) labels: Labels,
    /// `None` if no recorder is installed.
    reservation: Option<Reservation>,
}

/// An informer's metric handles, created once. Without labels they record nothing: the metrics of
/// two informers would be mixed.
pub(crate) struct Metrics {
    labels: Option<Labels>,
    /// Frees the labels for another informer when it is released or dropped.
    reservation: Option<Reservation>,
    queued: Gauge,
    latency: Histogram,
    version: Gauge,
    opaque: Gauge,
    skipped_nameless: Sum,
    index_panics: Sum,
}

/// A handler's metric handles.
///
/// They record nothing if the informer has no name for metrics.
pub(crate) struct HandlerMetrics {
    queued: Gauge,
    /// `None` if no recorder is installed.
    tenant: Option<Arc<Tenant>>,
    pub(crate) panics: Counter,
    pub(crate) duration: Histogram,
}

/// The state of an informer after a batch.
pub(crate) struct Applied {
    /// Deltas in the queue.
    pub(crate) queued: usize,
    pub(crate) skipped_nameless: u64,
    /// Cached objects that do not fit their type.
    pub(crate) opaque: usize,
    pub(crate) index_panics: u64,
    /// The version of the store.
    pub(crate) version: Option<ResourceVersion>,
}

/// The time at which a batch was taken from the queue; `None` if no metrics are recorded.
pub(crate) struct Taken(Option<Instant>);

// === impl Labels ===

impl Labels {
    pub(crate) fn new(name: &str, resource: &kube_core::GroupVersionResource) -> Self {
        Self(vec![
            Label::new("name", name.to_owned()),
            Label::new("group", resource.group.clone()),
            Label::new("version", resource.version.clone()),
            Label::new("resource", resource.resource.clone()),
        ])
    }

    /// Reserves the labels for one informer. Without a recorder there is nothing to reserve.
    ///
    /// Returns `None` if another informer records under these labels.
    pub(crate) fn reserve(self) -> Option<Reserved> {
        if !is_recorded() {
            return Some(Reserved { labels: self, reservation: None });
        }
        if let Some(reservation) = Reservation::new(&self.0) {
            return Some(Reserved { labels: self, reservation: Some(reservation) });
        }
        let [name, group, version, resource] =
            [0, 1, 2, 3].map(|label: usize| self.0[label].value());
        tracing::error!(
            informer_name = name,
            group,
            version,
            resource,
            "duplicate informer registration: metrics will not be published"
        );
        None
    }

    /// Creates the counter of failed requests.
    pub(crate) fn errors(&self) -> Counter {
        self.counter("reflector_errors_total")
    }

    /// Registers a counter with these labels.
    fn counter(&self, name: &'static str) -> Counter {
        registered(Counter::noop(), || metrics::counter!(name, self.0.clone()))
    }

    /// Registers a gauge with these labels.
    fn gauge(&self, name: &'static str) -> Gauge {
        registered(Gauge::noop(), || metrics::gauge!(name, self.0.clone()))
    }

    /// Registers a histogram with these labels.
    fn histogram(&self, name: &'static str) -> Histogram {
        registered(Histogram::noop(), || metrics::histogram!(name, self.0.clone()))
    }
}

/// Returns what `register` returns, or `noop` if the recorder panics.
fn registered<T>(noop: T, register: impl FnOnce() -> T) -> T {
    let mut handle = noop;
    record(|| handle = register());
    handle
}

// === impl Metrics ===

impl Metrics {
    /// Creates the handles. Without labels they record nothing.
    ///
    /// Registers the handles, which calls the recorder.
    pub(crate) fn new(reserved: Option<Reserved>) -> Self {
        let Some(Reserved { labels: of, reservation }) = reserved else {
            return Self {
                labels: None,
                reservation: None,
                queued: Gauge::noop(),
                latency: Histogram::noop(),
                version: Gauge::noop(),
                opaque: Gauge::noop(),
                skipped_nameless: Sum::new(Counter::noop()),
                index_panics: Sum::new(Counter::noop()),
            };
        };
        Self {
            queued: of.gauge("informer_queued_items"),
            latency: of.histogram("informer_processing_latency_seconds"),
            version: of.gauge("informer_store_resource_version"),
            opaque: of.gauge("informer_opaque_objects"),
            skipped_nameless: Sum::new(of.counter("informer_skipped_nameless_objects_total")),
            index_panics: Sum::new(of.counter("informer_index_panics_total")),
            labels: Some(of),
            reservation,
        }
    }

    /// Creates the handles of a handler with this name.
    pub(crate) fn handler(&self, name: &str) -> HandlerMetrics {
        let Some(of) = &self.labels else {
            return HandlerMetrics {
                queued: Gauge::noop(),
                tenant: None,
                panics: Counter::noop(),
                duration: Histogram::noop(),
            };
        };
        let mut of = of.clone();
        of.0.push(Label::new("handler", name.to_owned()));
        HandlerMetrics {
            queued: of.gauge("informer_handler_queued_items"),
            tenant: self.tenant().cloned(),
            panics: of.counter("informer_handler_panics_total"),
            duration: of.histogram("informer_handler_duration_seconds"),
        }
    }

    /// Records that a batch was taken from the queue. `queued` is called only if metrics are
    /// recorded.
    ///
    /// The time between this call and [`applied`](Self::applied) is the latency of the batch.
    #[expect(clippy::cast_precision_loss, reason = "no queue has 2^52 items")]
    pub(crate) fn taken(&self, queued: impl FnOnce() -> usize) -> Taken {
        let is_on = self.labels.is_some() && !is_succeeded(self.tenant());
        Taken(is_on.then(|| {
            let queued = queued();
            record(|| self.queued.set(queued as f64));
            Instant::now()
        }))
    }

    /// Frees the labels for another informer. Once one has taken them, the gauges of this one stand
    /// still.
    ///
    /// It is called before the informer counts as stopped, and not after its tasks have ended: its
    /// successor may be built meanwhile, and a handler may take long.
    pub(crate) fn release(&self) {
        if let Some(reservation) = &self.reservation {
            reservation.release();
        }
    }

    fn tenant(&self) -> Option<&Arc<Tenant>> {
        self.reservation.as_ref().map(Reservation::tenant)
    }

    /// Returns true if the informer has a name for its metrics.
    pub(crate) fn is_recorded(&self) -> bool {
        self.labels.is_some()
    }

    /// Records that the batch is in the store.
    #[expect(clippy::cast_precision_loss, reason = "no queue and no store has 2^52 items")]
    pub(crate) fn applied(&self, taken: &Taken, applied: &Applied) {
        let Some(taken) = taken.0 else { return };
        record(|| self.latency.record(taken.elapsed()));
        record(|| self.skipped_nameless.follow(applied.skipped_nameless));
        record(|| self.index_panics.follow(applied.index_panics));
        if is_succeeded(self.tenant()) {
            return;
        }
        record(|| {
            self.queued.set(applied.queued as f64);
            self.opaque.set(applied.opaque as f64);
            if let Some(version) = applied.version.as_ref().and_then(exact) {
                self.version.set(version);
            }
        });
    }
}

/// Takes the informer's items and objects from the gauges: nothing else would reset them.
impl Drop for Metrics {
    fn drop(&mut self) {
        if !is_succeeded(self.tenant()) {
            record(|| {
                self.queued.set(0.0);
                self.opaque.set(0.0);
            });
        }
    }
}

// === impl HandlerMetrics ===

impl HandlerMetrics {
    /// Shows the number of events that wait for the handler.
    #[expect(clippy::cast_precision_loss, reason = "no queue has 2^52 events")]
    pub(crate) fn queued(&self, events: usize) {
        if !is_succeeded(self.tenant.as_ref()) {
            record(|| self.queued.set(events as f64));
        }
    }
}

/// Returns true if another informer has taken the labels over.
fn is_succeeded(tenant: Option<&Arc<Tenant>>) -> bool {
    tenant.is_some_and(|tenant| tenant.is_succeeded())
}

/// Returns a version as a number that a float can hold: its last 15 digits, as in client-go.
fn exact(version: &ResourceVersion) -> Option<f64> {
    let digits = version.as_str();
    let last = digits.get(digits.len().saturating_sub(15)..)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| last.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_cut_to_what_a_float_can_hold() {
        let exact = |version: &str| exact(&version.into());
        assert_eq!(exact("42"), Some(42.0));
        assert_eq!(exact("123456789012345678"), Some(456_789_012_345_678.0));
        assert_eq!((exact("abc"), exact("1é3456789012345"), exact("")), (None, None, None));
    }
}
