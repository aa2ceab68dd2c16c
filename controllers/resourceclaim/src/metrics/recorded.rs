//! A recorder that keeps the values of counters and gauges, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;

/// The values by name and labels, as `name{allocated=true,…}` without the common prefix.
#[derive(Default)]
pub(crate) struct Recorded {
    counters: Values,
    gauges: Values,
}

type Values = Mutex<BTreeMap<String, Arc<AtomicU64>>>;

// === impl Recorded ===

impl Recorded {
    /// Returns the counters that are not 0, as `name{label=value,…} value`.
    pub(crate) fn counters(&self) -> Vec<String> {
        shown(&self.counters, |bits| bits)
    }

    /// Returns the controller's own gauges that are not 0: without those of the runtime.
    #[expect(clippy::cast_possible_truncation, reason = "a test counts a few objects")]
    #[expect(clippy::cast_sign_loss, reason = "a count is not negative")]
    pub(crate) fn gauges(&self) -> Vec<String> {
        let mut gauges = shown(&self.gauges, |bits| f64::from_bits(bits) as u64);
        gauges.retain(|gauge| !gauge.starts_with("controller_runtime_"));
        gauges
    }
}

fn shown(values: &Values, value: impl Fn(u64) -> u64) -> Vec<String> {
    let values = values.lock();
    let values = values.iter().map(|(name, bits)| (name, value(bits.load(Ordering::Relaxed))));
    values.filter(|(_, value)| *value > 0).map(|(name, value)| format!("{name} {value}")).collect()
}

fn cell(values: &Values, key: &Key) -> Arc<AtomicU64> {
    let name = key.name().trim_start_matches("dynamic_resource_allocation_");
    let label = |label: &Label| format!("{}={}", label.key(), label.value());
    let mut labels: Vec<_> = key.labels().map(label).collect();
    labels.sort();
    let name = format!("{name}{{{}}}", labels.join(","));
    Arc::clone(values.lock().entry(name).or_default())
}

impl Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(cell(&self.counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(cell(&self.gauges, key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
