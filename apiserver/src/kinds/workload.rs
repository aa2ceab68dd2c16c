//! Kinds with a pod template.

use serde_json::{Value, json};

use crate::fields::{Fields, read_path};

const GENERATION: &str = "deprecated.daemonset.template.generation";

/// A `ReplicationController` selects the labels of its template by default.
pub(super) fn labels_of_template(spec: &Fields) -> Value {
    let labels = spec.get("template").and_then(|template| template.pointer("/metadata/labels"));
    labels.cloned().unwrap_or_default()
}

/// An object without labels gets those of its pods.
pub(super) fn default_labels_from_template(object: &mut Fields) {
    let Some(labels) = read_path(object, "spec.template.metadata.labels").cloned() else { return };
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.entry("labels").or_insert(labels);
    }
}

pub(super) fn rolling_deployment(strategy: &Fields) -> Value {
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        json!({"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    } else {
        Value::Null
    }
}

/// The numbers of a rolling update. Those of another strategy get Go's zeros, if they are there.
pub(super) fn rolling_daemons(strategy: &Fields) -> Value {
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        json!({"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    } else if strategy.get("rollingUpdate").is_some_and(Value::is_object) {
        json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}})
    } else {
        Value::Null
    }
}

/// The numbers of a rolling update that the client asks for, or that is the default.
pub(super) fn rolling_sets(strategy: &Fields) -> Value {
    let is_rolling = strategy.get("type") == Some(&json!("RollingUpdate"));
    if is_rolling && strategy.contains_key("rollingUpdate") {
        json!({"rollingUpdate": {"partition": 0, "maxUnavailable": 1}})
    } else {
        Value::Null
    }
}

/// The default strategy is a rolling update, with its default numbers.
pub(super) fn rolling_by_default(strategy: &Fields) -> Value {
    if strategy.contains_key("type") { Value::Null } else { json!({}) }
}

/// Sets the replicas of an empty object: the real server's internal type has a number there.
pub(super) fn convert_no_replicas(workload: &mut Fields) {
    if let Some(Value::Object(spec)) = workload.get_mut("spec") {
        spec.insert("replicas".to_owned(), json!(0));
    }
}

/// Sets the annotation to 0 unless the client sets it, as the conversion of the real server does.
/// The writer owns it: the number that is stored comes later.
pub(super) fn default_template_generation(daemons: &mut Fields) {
    let annotations = read_path(daemons, "metadata.annotations");
    if annotations.and_then(|all| all.get(GENERATION)).is_none() {
        annotate(daemons, json!("0"));
    }
}

/// The template of a new `DaemonSet` has generation 1.
pub(super) fn set_first_template_generation(daemons: &mut Fields) {
    annotate(daemons, json!("1"));
}

/// Increments the annotation for the template's generation, which old clients read.
pub(super) fn increment_template_generation(daemons: &mut Fields, old: &Fields) {
    let annotations = read_path(old, "metadata.annotations");
    let count = annotations.and_then(|all| all.get(GENERATION)).and_then(Value::as_str);
    let count: i64 = count.and_then(|text| text.parse().ok()).unwrap_or(1);
    let changed = read_path(daemons, "spec.template") != read_path(old, "spec.template");
    annotate(daemons, json!((count.saturating_add(i64::from(changed))).to_string()));
}

fn annotate(daemons: &mut Fields, count: Value) {
    let Some(Value::Object(metadata)) = daemons.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(GENERATION.to_owned(), count);
    }
}
