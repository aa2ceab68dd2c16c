//! What claims to devices do.

use serde_json::{Value, json};

use super::{checks, read_path};
use crate::object::Fields;
use crate::status::Cause;

const ALLOCATION: &str = "status.allocation";

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

/// A taint that is written again without its time is the same one.
pub(super) fn inherit_times(slice: &mut Fields, old: &Fields) {
    let devices = |slice: &Fields| read_path(slice, "spec.devices").cloned().unwrap_or_default();
    let (mut new, old) = (devices(slice), devices(old));
    for device in new.as_array_mut().into_iter().flatten() {
        let same = checks::items(&old).iter().find(|one| one.get("name") == device.get("name"));
        let known = same.map_or(&Value::Null, |one| checks::member(one, "taints"));
        let taints = device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            let is_same =
                |one: &&Value| ["key", "effect"].iter().all(|key| one.get(key) == taint.get(*key));
            let time =
                checks::items(known).iter().find(is_same).and_then(|one| one.get("timeAdded"));
            if let Some(time) = time.cloned() {
                taint.entry("timeAdded").or_insert(time);
            }
        }
    }
    if let Some(Value::Object(spec)) = slice.get_mut("spec").filter(|_| !new.is_null()) {
        spec.insert("devices".to_owned(), new);
    }
    date_taints(slice);
}

pub(super) fn validate(claim: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let devices = read_path(claim, "spec.devices").unwrap_or(&Value::Null);
    if old.is_none() {
        checks::run(checks::devices::CLAIM, devices, "spec.devices", causes);
    }
    if let Some(old) = old {
        if claim.get("spec") != old.get("spec") {
            // The real server does not show the value here.
            causes.push(Cause::invalid("spec", &Value::Null, "field is immutable"));
        }
        let (new, old) = (read_path(claim, ALLOCATION), read_path(old, ALLOCATION));
        if old.is_some() && new.is_some() && new != old {
            let why = "field cannot be modified once set";
            causes.push(Cause::invalid(ALLOCATION, &Value::Null, why));
        }
    }
    checks::devices::consumers(claim.get("status").unwrap_or(&Value::Null), causes);
}

pub(super) fn validate_template(template: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let devices = read_path(template, "spec.spec.devices").unwrap_or(&Value::Null);
    if old.is_none() {
        if read_path(template, "spec.metadata.name").is_some() {
            causes.push(Cause::forbidden("spec.metadata.name", "cannot be set"));
        }
        checks::run(checks::devices::CLAIM, devices, "spec.spec.devices", causes);
    }
}
