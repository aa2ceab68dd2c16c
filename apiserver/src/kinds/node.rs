//! Nodes.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::plugin::{Addition, AdmissionPlugin, At};

/// The allocatable resources are the capacity by default.
pub(super) fn allocatable(status: &Fields) -> Value {
    status.get("capacity").cloned().unwrap_or_default()
}

pub(super) const TAINT: [Addition; 1] =
    [Addition { plugin: AdmissionPlugin::TaintNodesByCondition, at: At::Create, apply: taint }];

/// A new node is tainted until the node controller sees that it is ready.
fn taint(node: &mut Fields, _: Option<&Fields>) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let Some(Value::Object(spec)) = node.get_mut("spec") else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    let is_same = |one: &Value| one["key"] == taint["key"] && one["effect"] == taint["effect"];
    if let Some(taints) = taints.as_array_mut().filter(|taints| !taints.iter().any(is_same)) {
        taints.push(taint);
    }
}

/// Drops what no feature of a new node uses.
pub(super) fn prepare(node: &mut Fields) {
    inherit(node, &Fields::new());
}

/// Drops what no feature uses, unless the stored node has it.
pub(super) fn inherit(node: &mut Fields, old: &Fields) {
    let unused = [("spec", "configSource"), ("spec", "podPreemptionPolicy"), ("status", "config")];
    for (part, name) in unused {
        let is_stored = old.get(part).is_some_and(|part| part.get(name).is_some());
        if !is_stored && let Some(Value::Object(part)) = node.get_mut(part) {
            part.remove(name);
        }
    }
}
