//! Selectors of a new pod that follow its own labels: of its affinity and its spread.

use serde_json::{Value, json};

use crate::fields::Fields;

/// The lists of terms in a spec, and the place of the term within an item.
const LISTS: [(&str, &str); 5] = [
    ("/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution", WEIGHTED),
    ("/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution", ""),
    ("/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution", WEIGHTED),
    ("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution", ""),
    ("/topologySpreadConstraints", ""),
];
const WEIGHTED: &str = "/podAffinityTerm";

/// Adds a requirement to each selector for each key of its term that the pod has a label of
/// (`mutatePodAffinity`, `mutateTopologySpreadConstraints`).
pub(super) fn merge(pod: &mut Fields) {
    let Some(labels) = pod.get("metadata").and_then(|metadata| metadata.get("labels")).cloned()
    else {
        return;
    };
    let Some(spec) = pod.get_mut("spec") else { return };
    for (list, within) in LISTS {
        let terms = spec.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for term in terms.filter_map(|item| item.pointer_mut(within)) {
            merge_into(term, &labels);
        }
    }
}

fn merge_into(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(list).and_then(Value::as_array).into_iter().flatten();
        for key in keys.filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(Value::Object(selector)) = term.get_mut("labelSelector") else { return };
    if added.is_empty() {
        return;
    }
    let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    if let Some(expressions) = expressions.as_array_mut() {
        expressions.extend(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_requirements_of_the_selector() {
        let Value::Object(mut pod) = json!({
            "metadata": {"labels": {"app": "a", "hash": "1"}},
            "spec": {
                "affinity": {"podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {
                        "labelSelector": {}, "matchLabelKeys": ["app"],
                        "mismatchLabelKeys": ["hash", "none"]}}]}},
                "topologySpreadConstraints": [{"matchLabelKeys": ["app"]}],
            },
        }) else {
            unreachable!()
        };
        merge(&mut pod);
        let spec = &pod["spec"];
        let term = spec
            .pointer("/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0")
            .unwrap();
        assert_eq!(
            term["podAffinityTerm"]["labelSelector"]["matchExpressions"],
            json!([{"key": "app", "operator": "In", "values": ["a"]},
                {"key": "hash", "operator": "NotIn", "values": ["1"]}])
        );
        let constraint = &spec["topologySpreadConstraints"][0];
        assert_eq!(constraint.get("labelSelector"), None, "no selector matches nothing");
    }
}
