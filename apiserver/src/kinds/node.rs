//! What only nodes do.

use serde_json::{Value, json};

use super::{checks, read_path};
use crate::object::Fields;
use crate::status::Cause;

/// What pods may use is all there is, unless the kubelet keeps some.
pub(super) fn allocatable(status: &Fields) -> Value {
    status.get("capacity").cloned().unwrap_or_default()
}

/// A new node takes no pods until somebody has seen it ready.
pub(super) fn prepare(node: &mut Fields) {
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
        let why = "field cannot be modified once set";
        causes.push(Cause::invalid("spec.providerID", &Value::Null, why));
    }
}
