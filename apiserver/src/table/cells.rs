//! Cells that need more than a path.

pub(super) mod bindings;
pub(super) mod claims;
pub(super) mod cron_jobs;
pub(super) mod events;
pub(super) mod jobs;
pub(super) mod nodes;
pub(super) mod quotas;
pub(super) mod services;

use serde_json::{Value, json};

use super::Subject;
use super::text::{labels, members, selector};

pub(super) fn data_count(object: &Subject<'_>) -> Value {
    let count =
        |path: &str| object.get(path).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    json!(count("data") + count("binaryData"))
}

pub(super) fn ready_of_desired(workload: &Subject<'_>) -> Value {
    json!(format!(
        "{}/{}",
        workload.number("status.readyReplicas"),
        workload.number("spec.replicas")
    ))
}

pub(super) fn containers(workload: &Subject<'_>) -> Value {
    json!(members(workload.list("spec.template.spec.containers"), "name"))
}

pub(super) fn images(workload: &Subject<'_>) -> Value {
    json!(members(workload.list("spec.template.spec.containers"), "image"))
}

pub(super) fn spec_selector(workload: &Subject<'_>) -> Value {
    json!(selector(workload.get("spec.selector")))
}

pub(super) fn spec_labels(workload: &Subject<'_>) -> Value {
    json!(labels(workload.get("spec.selector")))
}

pub(super) fn node_selector(workload: &Subject<'_>) -> Value {
    json!(labels(workload.get("spec.template.spec.nodeSelector")))
}

pub(super) fn resource_claim_state(claim: &Subject<'_>) -> Value {
    let mut states = Vec::new();
    if claim.is_terminating() {
        states.push("deleted");
    }
    if claim.get("status.allocation").is_some_and(Value::is_object) {
        states.push("allocated");
        if !claim.list("status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !claim.is_terminating() {
        states.push("pending");
    }
    json!(states.join(","))
}

pub(super) fn global_default(class: &Subject<'_>) -> Value {
    json!(class.get("globalDefault") == Some(&json!(true)))
}
