//! What only namespaces do: their label, their finalizer, their phase.

use serde_json::{Value, json};

use super::read_path;
use crate::object::Fields;
use crate::status::Cause;

/// What a namespace waits for before it goes: the namespace controller removes it when nothing is left inside.
const FINALIZER: &str = "kubernetes";

/// A namespace carries its name as a label.
pub(super) fn label_with_name(namespace: &mut Fields) {
    let Some(name) = read_path(namespace, "metadata.name").cloned() else { return };
    if let Some(Value::Object(metadata)) = namespace.get_mut("metadata") {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name);
        }
    }
}

pub(super) fn prepare(namespace: &mut Fields) {
    namespace.insert("status".to_owned(), json!({"phase": "Active"}));
    if let Some(Value::Object(spec)) = namespace.get_mut("spec") {
        let list = spec.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&json!(FINALIZER))) {
            list.push(json!(FINALIZER));
        }
    }
}

/// A namespace says in its phase that it is going.
pub(super) fn mark(namespace: &mut Fields) {
    if let Some(Value::Object(status)) = namespace.get_mut("status") {
        status.insert("phase".to_owned(), json!("Terminating"));
    }
    if let Some(Value::Object(metadata)) = namespace.get_mut("metadata") {
        // Its own way of deletion knows no grace.
        metadata.remove("deletionGracePeriodSeconds");
    }
}

pub(super) fn validate(namespace: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let (Some(phase), Some(_)) = (read_path(namespace, "status.phase"), old) else { return };
    let marked = read_path(namespace, "metadata.deletionTimestamp").is_some();
    let why = match (marked, phase == "Active") {
        (false, false) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, true) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return,
    };
    causes.push(Cause::invalid("status.Phase", phase, why));
}
