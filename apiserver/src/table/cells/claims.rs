//! Claims of volumes.

use serde_json::{Value, json};

use crate::table::Subject;

pub(in crate::table) fn status(claim: &Subject<'_>) -> Value {
    json!(if claim.is_terminating() { "Terminating" } else { claim.text("status.phase") })
}

pub(in crate::table) fn capacity(claim: &Subject<'_>) -> Value {
    json!(if is_bound(claim) { claim.text("status.capacity.storage") } else { "" })
}

pub(in crate::table) fn access_modes(claim: &Subject<'_>) -> Value {
    if !is_bound(claim) {
        return json!("");
    }
    json!(short_modes(claim.list("status.accessModes")))
}

/// Returns access modes in short: `RWO,ROX`.
pub(in crate::table) fn short_modes(modes: &[Value]) -> String {
    let held: Vec<&str> = modes.iter().filter_map(Value::as_str).collect();
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<&str> =
        known.iter().filter(|(mode, _)| held.contains(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

pub(in crate::table) fn class(claim: &Subject<'_>) -> Value {
    let annotations = claim.get("metadata.annotations");
    let old = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    json!(old.and_then(Value::as_str).unwrap_or_else(|| claim.text("spec.storageClassName")))
}

pub(in crate::table) fn mode(claim: &Subject<'_>) -> Value {
    let mode = claim.text("spec.volumeMode");
    json!(if mode.is_empty() { "<unset>" } else { mode })
}

fn is_bound(claim: &Subject<'_>) -> bool {
    !claim.text("spec.volumeName").is_empty()
}
