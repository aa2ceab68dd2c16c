//! What Kubernetes' dashboards expect of an informer, under the very same names; and what they would like to know.

mod measured;

use std::panic::{AssertUnwindSafe, catch_unwind};

use metrics::{Counter, Gauge, Histogram, Label};
use tokio::time::Instant;

pub(crate) use self::measured::Measured;
use crate::{
    object::{Object, ResourceVersion},
    store::Store,
};

/// Metrics that are histograms, and the buckets for each: the `metrics` facade carries none, so tell these to the
/// exporter. Those of `informer_processing_latency_seconds` are Kubernetes' own.
pub const HISTOGRAM_BUCKETS: [(&str, &[f64]); 5] = [
    ("informer_processing_latency_seconds", &SECONDS),
    ("reflector_list_duration_seconds", &SECONDS),
    ("reflector_watch_duration_seconds", &[0.1, 1.0, 10.0, 60.0, 300.0, 450.0, 600.0]),
    ("reflector_items_per_list", &ITEMS),
    ("reflector_items_per_watch", &ITEMS),
];

const SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];

const ITEMS: [f64; 7] = [0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5];

/// Whose metrics these are: a process' name for its informers, and what they follow.
#[derive(Clone, Debug)]
pub(crate) struct Labels(Vec<Label>);

/// An informer's handles, taken once: a handle that was taken before there is a recorder stays silent. Without labels
/// nobody could tell them from others', so then they all are.
pub(crate) struct Metrics {
    labels: Option<Labels>,
    queued: Gauge,
    latency: Histogram,
    version: Gauge,
    opaque: Gauge,
    left_out: Counter,
    index_panics: Counter,
}

/// A handler's.
pub(crate) struct HandlerMetrics {
    pub(crate) queued: Gauge,
    pub(crate) panics: Counter,
}

/// When a batch was taken from the queue; `None` if nobody wants to know.
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

    fn all(&self) -> Vec<Label> {
        self.0.clone()
    }
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(labels: Option<Labels>) -> Self {
        let Some(of) = labels else {
            return Self {
                labels: None,
                queued: Gauge::noop(),
                latency: Histogram::noop(),
                version: Gauge::noop(),
                opaque: Gauge::noop(),
                left_out: Counter::noop(),
                index_panics: Counter::noop(),
            };
        };
        Self {
            queued: metrics::gauge!("informer_queued_items", of.all()),
            latency: metrics::histogram!("informer_processing_latency_seconds", of.all()),
            version: metrics::gauge!("informer_store_resource_version", of.all()),
            opaque: metrics::gauge!("informer_opaque_objects", of.all()),
            left_out: metrics::counter!("informer_left_out_objects_total", of.all()),
            index_panics: metrics::counter!("informer_index_panics_total", of.all()),
            labels: Some(of),
        }
    }

    pub(crate) fn handler(&self, name: &str) -> HandlerMetrics {
        let Some(of) = &self.labels else {
            return HandlerMetrics { queued: Gauge::noop(), panics: Counter::noop() };
        };
        let mut labels = of.all();
        labels.push(Label::new("handler", name.to_owned()));
        HandlerMetrics {
            queued: metrics::gauge!("informer_handler_queued_items", labels.clone()),
            panics: metrics::counter!("informer_handler_panics_total", labels),
        }
    }

    /// A batch has been taken from the queue, and so many deltas are still in it or in the batch. Counted only if somebody
    /// wants to know.
    #[expect(clippy::cast_precision_loss, reason = "no queue has 2^52 items")]
    pub(crate) fn taken(&self, queued: impl FnOnce() -> usize) -> Taken {
        Taken(self.labels.is_some().then(|| {
            let queued = queued();
            quietly(|| self.queued.set(queued as f64));
            Instant::now()
        }))
    }

    /// The batch is in the store; so many deltas are queued, and so many objects were left out so far.
    #[expect(clippy::cast_precision_loss, reason = "no queue and no store has 2^52 items")]
    pub(crate) fn applied<K: Object>(
        &self,
        taken: &Taken,
        counts: impl FnOnce() -> (usize, u64),
        store: &Store<K>,
    ) {
        let Some(taken) = taken.0 else { return };
        let (queued, left_out) = counts();
        quietly(|| {
            self.latency.record(taken.elapsed());
            self.queued.set(queued as f64);
            self.opaque.set(store.count().1 as f64);
            self.left_out.absolute(left_out);
            self.index_panics.absolute(store.index_panics());
            if let Some(version) = store.resource_version().as_ref().and_then(exact) {
                self.version.set(version);
            }
        });
        for handler in store.handlers() {
            handler.show();
        }
    }
}

/// A recorder that panics must not end what it records.
pub(crate) fn quietly(record: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(record)).is_err() {
        tracing::error!("the recorder of metrics panicked");
    }
}

/// A version as a number that a float can hold: its last 15 digits, as in client-go.
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
