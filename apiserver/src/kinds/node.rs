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

/// Makes the single range of addresses and the list of ranges agree.
pub(super) fn derive(node: &mut Fields) {
    let Some(Value::Object(spec)) = node.get_mut("spec") else { return };
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match spec.get("podCIDR").filter(|one| one.as_str().is_some_and(|one| !one.is_empty())) {
        Some(one) if first.as_ref() != Some(one) => {
            let list = json!([one]);
            spec.insert("podCIDRs".to_owned(), list);
        }
        None if first.is_some() => {
            spec.insert("podCIDR".to_owned(), json!(first));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_of_a_node_is_the_first_of_its_list() {
        let derived = |spec: Value| {
            let mut node = Fields::from_iter([("spec".to_owned(), spec)]);
            derive(&mut node);
            node["spec"].clone()
        };
        let both = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]});
        assert_eq!(derived(json!({"podCIDR": "10.0.0.0/24"})), both);
        assert_eq!(derived(json!({"podCIDRs": ["10.0.0.0/24"]})), both);
        let other = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24"]});
        assert_eq!(derived(other), both);
        assert_eq!(derived(json!({})), json!({}));
    }
}
