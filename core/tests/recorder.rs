//! A global recorder of a zero-sized type. A file of its own, because a process has one recorder.

use homeostat_core::metrics::is_recorded;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_global_recorder,
};

/// Has no fields, like a recorder that writes to a static.
struct Fieldless;

impl Recorder for Fieldless {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn global_recorder_without_fields_is_found() {
    assert!(!is_recorded());
    assert!(set_global_recorder(Fieldless).is_ok());
    assert!(is_recorded());
}
