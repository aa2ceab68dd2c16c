//! A recorder that keeps metrics by name and labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit,
};
use parking_lot::Mutex;

/// Keeps every increment of a counter and every value of a histogram.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    values: Arc<Mutex<BTreeMap<String, Vec<f64>>>>,
}

struct Series {
    recorder: Recorder,
    name: String,
}

// === impl Recorder ===

impl Recorder {
    /// Returns all values recorded under `name{label="value",…}`.
    pub(crate) fn recorded(&self, name: &str) -> Vec<f64> {
        self.values.lock().get(name).cloned().unwrap_or_default()
    }

    fn series(&self, key: &Key) -> Arc<Series> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={:?}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(Series { recorder: self.clone(), name })
    }
}

impl Series {
    fn push(&self, value: f64) {
        self.recorder.values.lock().entry(self.name.clone()).or_default().push(value);
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.push(f64::from(u32::try_from(value).expect("increments are small")));
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        self.push(value);
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
    }
}
