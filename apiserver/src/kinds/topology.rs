//! The place of a pod's node, which labels of the pod repeat (the plugin `PodTopologyLabels`).

use serde_json::{Value, json};

use super::columns::AdmitError;
use crate::fields::{Fields, read_path};

/// The labels of a node that a pod on it gets.
const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Labels a new pod that has a node.
#[expect(clippy::unnecessary_wraps, reason = "the type of an admission")]
pub(super) fn label_pod(
    pod: &mut Fields,
    find: &dyn Fn(&str) -> Option<Fields>,
    _: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    let name = read_path(pod, "spec.nodeName").and_then(Value::as_str).unwrap_or_default();
    let node = (!name.is_empty()).then(|| find(name)).flatten();
    copy_labels(node, pod);
    Ok(())
}

/// Labels the binding of a pod to a node, which gives its labels to the pod.
pub(super) fn label_binding(binding: &mut Fields, find: &dyn Fn(&str) -> Option<Fields>) {
    let text = |path: &str| read_path(binding, path).and_then(Value::as_str).unwrap_or_default();
    let node = (text("target.kind") == "Node").then(|| find(text("target.name"))).flatten();
    copy_labels(node, binding);
}

fn copy_labels(node: Option<Fields>, object: &mut Fields) {
    let node = node.unwrap_or_default();
    let Some(Value::Object(labels)) = read_path(&node, "metadata.labels") else { return };
    let known =
        LABELS.iter().filter_map(|key| Some(((*key).to_owned(), labels.get(*key)?.clone())));
    let known: Vec<_> = known.collect();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if !known.is_empty() {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        labels.as_object_mut().into_iter().for_each(|labels| labels.extend(known.clone()));
    }
}
