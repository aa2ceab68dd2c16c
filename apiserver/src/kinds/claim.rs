//! What claims to devices do.

use serde_json::{Value, json};

use super::read_path;
use crate::object::Fields;
use crate::status::Cause;

/// A request is for one device, unless it says otherwise.
pub(super) fn one_device(request: &Fields) -> Value {
    match request.get("allocationMode").and_then(Value::as_str) {
        None | Some("ExactCount") => json!({"allocationMode": "ExactCount", "count": 1}),
        Some(_) => Value::Null,
    }
}

/// A taint counts from when it is first written.
pub(super) fn date_taints(slice: &mut Fields) {
    let now = read_path(slice, "metadata.creationTimestamp").cloned().unwrap_or_default();
    let devices = slice.get_mut("spec").and_then(|spec| spec.get_mut("devices"));
    let devices = devices.and_then(Value::as_array_mut).into_iter().flatten();
    for device in devices {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| now.clone());
        }
    }
}

pub(super) fn validate(_claim: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}

pub(super) fn validate_template(_claim: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}

pub(super) fn validate_slice(_slice: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
