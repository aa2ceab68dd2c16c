//! Nodes.

use serde_json::{Value, json};

use super::checks;
use crate::fields::{Fields, read_path};
use crate::plugin::{Addition, AdmissionPlugin, At};
use crate::status::Cause;

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

pub(super) fn validate(node: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::core::node(node, causes);
    let provider = |node| read_path(node, "spec.providerID");
    if let Some(before) = old.and_then(provider)
        && provider(node) != Some(before)
    {
        let detail = "field cannot be modified once set";
        causes.push(Cause::invalid("spec.providerID", &Value::Null, detail));
    }
}
