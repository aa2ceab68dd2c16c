//! Mutating policies beside webhooks: the order of the changes, and the second pass.

use serde_json::{Value, json};

use super::{Case, Send, case, on_maps, part, post, with};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const DRY: &str = "/api/v1/namespaces/NS/configmaps?dryRun=All";

/// Counts the calls of a policy.
const COUNT: &str = "Object{data: {'n': (has(object.data.n) ? object.data.n : '') + 'x'}}";
/// Notes whether the second webhook has changed the object.
const NOTE: &str = "Object{metadata: Object.metadata{annotations: {
    'seen': string(has(object.metadata.labels.second))
}}}";

/// Returns the requests that create a policy for the config maps with its name as the label `case`.
fn policy(name: &str, expression: &str, reinvocation: &str, condition: &str) -> [Send; 2] {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]);
    let spec = json!({
        "matchConstraints": {"resourceRules": rules,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "policies"}},
            "objectSelector": {"matchLabels": {"case": name}}},
        "matchConditions": [{"name": "condition", "expression": condition}],
        "mutations": [{"patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": expression}}],
        "reinvocationPolicy": reinvocation,
    });
    let metadata = json!({"name": format!("webhooks-{name}")});
    let binding = json!({"metadata": metadata, "spec": {"policyName": metadata["name"]}});
    [post(POLICIES, json!({"metadata": metadata, "spec": spec})), post(BINDINGS, binding)]
}

fn map_of(case: &str) -> Value {
    json!({"metadata": {"name": "m", "labels": {"case": case}}, "data": {"a": "1"}})
}

pub(super) fn policies() -> Case {
    let again = |hook| with(hook, json!({"reinvocationPolicy": "IfNeeded"}));
    let second = || on_maps("second", "/label/second");
    let is_labelled = "has(object.metadata.labels.second)";
    let before = [
        policy("once", COUNT, "Never", "true"),
        policy("again", COUNT, "IfNeeded", "true"),
        policy("note", NOTE, "IfNeeded", "true"),
        policy("late", COUNT, "IfNeeded", is_labelled),
        policy("ready", "Object{data: {'a': object.data.missing}}", "Never", "true"),
    ];
    Case {
        before: before.into_iter().flatten().collect(),
        until_refused: Some(post(DRY, map_of("ready"))),
        ..case(
            "policies",
            vec![
                part(
                    "policies come first",
                    vec![on_maps("first", "/allow")],
                    vec![on_maps("validate", "/allow")],
                    vec![post(DRY, map_of("once"))],
                ),
                part(
                    "policies call webhooks again",
                    vec![again(on_maps("first", "/allow")), on_maps("never", "/allow")],
                    vec![],
                    vec![post(DRY, map_of("again"))],
                ),
                part(
                    "webhooks call policies again",
                    vec![second()],
                    vec![],
                    vec![post(DRY, map_of("note")), post(DRY, map_of("once"))],
                ),
                part(
                    "a policy that was not called before",
                    vec![second()],
                    vec![],
                    vec![post(DRY, map_of("late"))],
                ),
            ],
        )
    }
}
