//! Namespaces: their label, their finalizer, their phase.

use serde_json::{Value, json};

use super::checks::metadata;
use crate::fields::{Fields, read_path};
use crate::status::Cause;

/// The finalizer of a namespace: the namespace controller removes it when the namespace is empty.
const FINALIZER: &str = "kubernetes";

/// Sets the namespace's name as a label.
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

/// Sets the phase of a deleted namespace.
pub(super) fn mark(namespace: &mut Fields) {
    if let Some(Value::Object(status)) = namespace.get_mut("status") {
        status.insert("phase".to_owned(), json!("Terminating"));
    }
    if let Some(Value::Object(metadata)) = namespace.get_mut("metadata") {
        // The deletion of a namespace has no grace period.
        metadata.remove("deletionGracePeriodSeconds");
    }
}

pub(super) fn validate(namespace: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    check_finalizers(namespace, old.is_none(), causes);
    let (Some(phase), Some(_)) = (read_path(namespace, "status.phase"), old) else { return };
    let marked = read_path(namespace, "metadata.deletionTimestamp").is_some();
    let detail = match (marked, phase == "Active") {
        (false, false) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, true) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return,
    };
    causes.push(Cause::invalid("status.Phase", phase, detail));
}

/// Checks the finalizers of the spec.
fn check_finalizers(namespace: &Fields, is_new: bool, causes: &mut Vec<Cause>) {
    let list = read_path(namespace, "spec.finalizers").and_then(Value::as_array);
    for (place, finalizer) in list.into_iter().flatten().enumerate() {
        let at = if is_new { String::new() } else { format!("[{place}]") };
        metadata::check_finalizer(finalizer, &format!("spec.finalizers{at}"), causes);
    }
}
