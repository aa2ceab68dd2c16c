//! The columns of what extends the API: definitions, API services, and webhooks and policies of
//! admission.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Cell::{Of, Text};
use super::columns::{AGE, NAME, Row, text, wide};
use super::{Column, Subject};
use crate::fields;

pub(super) const TABLE: &[Row] = &[
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", &[NAME, WEBHOOKS, AGE]),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", &[NAME, WEBHOOKS, AGE]),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        &[NAME, count("Validations", validations), PARAM_KIND, AGE],
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
        &[NAME, count("Mutations", mutations), PARAM_KIND, AGE],
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", BINDING),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", BINDING),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &[
            NAME,
            text("Scope", Text("spec.scope", "")),
            text("Versions", Of(served_versions)),
            Column { kind: "date", ..text("Created At", Text("metadata.creationTimestamp", "")) },
            wide(text("Group", Text("spec.group", ""))),
            wide(text("Kind", Text("spec.names.kind", ""))),
            wide(text("ShortNames", Of(short_names))),
            wide(Column { kind: "boolean", ..text("Established", Of(is_established)) }),
        ],
    ),
    (
        "apiregistration.k8s.io",
        "APIService",
        &[NAME, text("Service", Of(service)), text("Available", Of(availability)), AGE],
    ),
];

const WEBHOOKS: Column = count("Webhooks", webhooks);
const PARAM_KIND: Column = text("ParamKind", Of(parameter_kind));
const BINDING: &[Column] =
    &[NAME, text("PolicyName", Text("spec.policyName", "")), text("ParamRef", Of(parameters)), AGE];

const fn count(name: &'static str, make: fn(&Subject<'_>) -> Value) -> Column {
    Column { kind: "integer", ..text(name, Of(make)) }
}

fn webhooks(configuration: &Subject<'_>) -> Value {
    json!(configuration.list("webhooks").len())
}

fn validations(policy: &Subject<'_>) -> Value {
    json!(policy.list("spec.validations").len())
}

fn mutations(policy: &Subject<'_>) -> Value {
    json!(policy.list("spec.mutations").len())
}

fn present<'a>(subject: &'a Subject<'_>, path: &str) -> Option<&'a Value> {
    subject.get(path).filter(|value| !value.is_null())
}

fn parameter_kind(policy: &Subject<'_>) -> Value {
    let kind = present(policy, "spec.paramKind");
    let shown =
        |kind| format!("{}/{}", fields::text(kind, "apiVersion"), fields::text(kind, "kind"));
    json!(kind.map_or_else(|| "<unset>".to_owned(), shown))
}

fn parameters(binding: &Subject<'_>) -> Value {
    let Some(reference) = present(binding, "spec.paramRef") else { return json!("<unset>") };
    let [name, namespace] = ["name", "namespace"].map(|key| fields::text(reference, key));
    json!(match (name, namespace, reference.get("selector")) {
        ("", _, Some(selector)) if !selector.is_null() => go_selector(selector),
        ("", ..) => "<unset>".to_owned(),
        // The parameters may have no namespace: their kind decides.
        (name, "", _) => format!("*/{name}"),
        (name, namespace, _) => format!("{namespace}/{name}"),
    })
}

/// Formats a selector as Go formats the struct.
fn go_selector(selector: &Value) -> String {
    let mut labels = String::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        write!(labels, "{key}: {},", value.as_str().unwrap_or_default())
            .expect("writing to a String does not fail");
    }
    let mut expressions = String::new();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let values = expression["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let [key, operator] = ["key", "operator"].map(|name| fields::text(expression, name));
        let values = values.join(" ");
        write!(
            expressions,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        )
        .expect("writing to a String does not fail");
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn served_versions(definition: &Subject<'_>) -> Value {
    let served = definition.list("spec.versions").iter().filter(|one| one["served"] == true);
    let mut names: Vec<String> = served
        .map(|version| {
            let mark = if version["storage"] == true { "(storage)" } else { "" };
            format!("{}{mark}", fields::text(version, "name"))
        })
        .collect();
    names.sort_unstable();
    json!(names.join(","))
}

fn short_names(definition: &Subject<'_>) -> Value {
    json!(definition.joined("spec.names.shortNames"))
}

fn is_established(definition: &Subject<'_>) -> Value {
    let condition = definition.condition("status.conditions", "Established");
    json!(condition.is_some_and(|condition| fields::text(condition, "status") == "True"))
}

fn service(api: &Subject<'_>) -> Value {
    json!(match present(api, "spec.service") {
        Some(service) => {
            format!("{}/{}", fields::text(service, "namespace"), fields::text(service, "name"))
        }
        None => "Local".to_owned(),
    })
}

fn availability(api: &Subject<'_>) -> Value {
    let Some(condition) = api.condition("status.conditions", "Available") else {
        return json!("Unknown");
    };
    json!(match (fields::text(condition, "status"), fields::text(condition, "reason")) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    })
}
