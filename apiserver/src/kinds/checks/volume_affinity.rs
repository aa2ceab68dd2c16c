//! The nodes that reach a persistent volume: they do not change.

use serde_json::Value;

use super::{Causes, items, member, text};
use crate::status::Cause;

/// The beta labels of nodes, and the labels that replace them.
const REPLACED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Checks that an update of the spec of a volume keeps its nodes, once it has some.
pub(super) fn unchanged(spec: &Value, old: &Value, causes: Causes<'_>) {
    let [new, old] = [spec, old].map(|spec| member(spec, "nodeAffinity"));
    if old.is_null() || (!new.is_null() && are_equal(new, old)) {
        return;
    }
    let shown = super::internal("core.VolumeNodeAffinity", new);
    let detail = "field is immutable, except for updating from beta label to GA";
    causes.push(Cause::invalid("nodeAffinity", &shown, detail));
}

fn are_equal(new: &Value, old: &Value) -> bool {
    let terms = |affinity| items(member(member(affinity, "required"), "nodeSelectorTerms"));
    all_equal(terms(new), terms(old), |new, old| {
        ["matchExpressions", "matchFields"].iter().all(|list| {
            all_equal(items(member(new, list)), items(member(old, list)), is_same_requirement)
        })
    })
}

fn all_equal(new: &[Value], old: &[Value], is_equal: fn(&Value, &Value) -> bool) -> bool {
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| is_equal(new, old))
}

fn is_same_requirement(new: &Value, old: &Value) -> bool {
    let replaced = (text(old, "key"), text(new, "key"));
    let is_same_key = replaced.0 == replaced.1 || REPLACED.contains(&replaced);
    let same = |name| member(new, name) == member(old, name);
    is_same_key && same("operator") && same("values")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_accepted(new: Value, old: Value) -> bool {
        let spec = |affinity: Value| json!({ "nodeAffinity": affinity });
        let mut causes = Vec::new();
        unchanged(&spec(new), &spec(old), &mut causes);
        causes.is_empty()
    }

    #[test]
    fn nodes_of_a_volume_change_only_from_a_beta_label() {
        let nodes = |key: &str, value: &str| {
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": key, "operator": "In", "values": [value]}]}]}})
        };
        assert!(is_accepted(nodes("a", "b"), Value::Null), "it had none");
        assert!(is_accepted(nodes("a", "b"), nodes("a", "b")));
        assert!(is_accepted(nodes("kubernetes.io/os", "b"), nodes("beta.kubernetes.io/os", "b")));
        assert!(!is_accepted(nodes("beta.kubernetes.io/os", "b"), nodes("kubernetes.io/os", "b")));
        assert!(!is_accepted(nodes("a", "c"), nodes("a", "b")));
        assert!(!is_accepted(Value::Null, nodes("a", "b")));
    }
}
