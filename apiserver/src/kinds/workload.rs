//! What kinds with a template of pods have in common.

use serde_json::{Value, json};

use super::read_path;
use crate::object::Fields;

const GENERATION: &str = "deprecated.daemonset.template.generation";

/// A replication controller selects what it makes.
pub(super) fn labels_of_template(spec: &Fields) -> Value {
    let labels = spec.get("template").and_then(|template| template.pointer("/metadata/labels"));
    labels.cloned().unwrap_or_default()
}

/// Without labels of its own, an object has those of its pods.
pub(super) fn take_labels_of_template(object: &mut Fields) {
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

pub(super) fn rolling_daemons(strategy: &Fields) -> Value {
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        json!({"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    } else {
        Value::Null
    }
}

/// Who does not name a strategy gets a rolling one, with its numbers; who names it may leave them out.
pub(super) fn rolling_by_default(strategy: &Fields) -> Value {
    if strategy.contains_key("type") { Value::Null } else { json!({}) }
}

/// The template of a new daemon set is its first.
pub(super) fn first_template(daemons: &mut Fields) {
    annotate(daemons, json!("1"));
}

/// Counts a change of the template, where clients of old look for it.
pub(super) fn count_templates(daemons: &mut Fields, old: &Fields) {
    let annotations = read_path(old, "metadata.annotations");
    let count = annotations.and_then(|all| all.get(GENERATION)).and_then(Value::as_str);
    let count: i64 = count.and_then(|text| text.parse().ok()).unwrap_or(1);
    let changed = read_path(daemons, "spec.template") != read_path(old, "spec.template");
    annotate(daemons, json!((count.saturating_add(i64::from(changed))).to_string()));
}

fn annotate(daemons: &mut Fields, count: Value) {
    let Some(Value::Object(metadata)) = daemons.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(GENERATION.to_owned(), count);
    }
}
