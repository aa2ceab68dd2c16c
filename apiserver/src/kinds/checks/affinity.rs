//! The affinity of pods to nodes and to other pods.

use serde_json::{Value, json};

use super::Test::{By, Each, Has};
use super::{Check, check_text, items, label_keys, member, selectors, text};
use crate::names;
use crate::status::Cause;

/// The affinity of a pod (`validateAffinity`).
pub(super) const AFFINITY: &[Check] = &[
    ("nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", Has(NODE_SELECTOR)),
    ("nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", Each(PREFERRED_NODES)),
    ("podAffinity", Has(PODS)),
    ("podAntiAffinity", Has(PODS)),
];

/// The nodes that a selector with terms names (`ValidateNodeSelector`).
pub(super) const NODE_SELECTOR: &[Check] = &[("", By(nodes))];

const PREFERRED_NODES: &[Check] = &[("weight", By(weight)), ("preference", By(preference))];

const PODS: &[Check] = &[
    ("requiredDuringSchedulingIgnoredDuringExecution", Each(TERM)),
    ("preferredDuringSchedulingIgnoredDuringExecution", Each(WEIGHTED_TERM)),
];

const WEIGHTED_TERM: &[Check] = &[("weight", By(weight)), ("podAffinityTerm", Has(TERM))];

const TERM: &[Check] = &[
    ("labelSelector", By(selectors::selector)),
    ("namespaceSelector", By(selectors::selector)),
    ("", By(namespaces)),
    ("", By(label_keys::check)),
    ("topologyKey", By(topology)),
];

fn weight(_: &Value, weight: &Value, at: &str, causes: &mut Vec<Cause>) {
    let number = weight.as_i64().unwrap_or_default();
    if !(1..=100).contains(&number) {
        causes.push(Cause::invalid(at, &json!(number), "must be in the range 1-100"));
    }
}

// === nodes ===

fn nodes(_: &Value, selector: &Value, at: &str, causes: &mut Vec<Cause>) {
    let terms = items(member(selector, "nodeSelectorTerms"));
    let at = format!("{at}.nodeSelectorTerms");
    if terms.is_empty() {
        causes.push(Cause::required(&*at, "must have at least one node selector term"));
    }
    for (place, term) in terms.iter().enumerate() {
        node_term(term, true, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the term of a preference, whose values may be no labels.
fn preference(_: &Value, term: &Value, at: &str, causes: &mut Vec<Cause>) {
    node_term(term, false, at, causes);
}

fn node_term(term: &Value, has_labels: bool, at: &str, causes: &mut Vec<Cause>) {
    for (place, expression) in items(member(term, "matchExpressions")).iter().enumerate() {
        let at = format!("{at}.matchExpressions[{place}]");
        node_labels(expression, &at, causes);
        if has_labels {
            selectors::values(expression, &at, causes);
        }
    }
    for (place, expression) in items(member(term, "matchFields")).iter().enumerate() {
        node_fields(expression, &format!("{at}.matchFields[{place}]"), causes);
    }
}

fn node_labels(expression: &Value, at: &str, causes: &mut Vec<Cause>) {
    let count = items(member(expression, "values")).len();
    let values_at = format!("{at}.values");
    match text(expression, "operator") {
        "In" | "NotIn" if count == 0 => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(values_at, detail));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(values_at, detail));
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            causes.push(Cause::required(values_at, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => unknown_operator(other, at, causes),
    }
    let key = json!(text(expression, "key"));
    check_text(&key, names::qualified, &format!("{at}.key"), causes);
}

fn unknown_operator(operator: &str, at: &str, causes: &mut Vec<Cause>) {
    let detail = "not a valid selector operator";
    causes.push(Cause::invalid(format!("{at}.operator"), &json!(operator), detail));
}

/// Checks an expression about the fields of a node, of which the name alone is known.
fn node_fields(expression: &Value, at: &str, causes: &mut Vec<Cause>) {
    let values = items(member(expression, "values"));
    match text(expression, "operator") {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.push(Cause::required(format!("{at}.values"), detail));
        }
        other => unknown_operator(other, at, causes),
    }
    let key = text(expression, "key");
    if key != "metadata.name" {
        let detail = "not a valid field selector key";
        causes.push(Cause::invalid(format!("{at}.key"), &json!(key), detail));
        return;
    }
    for (place, value) in values.iter().enumerate() {
        check_text(value, names::dns_subdomain, &format!("{at}.values[{place}]"), causes);
    }
}

// === pods ===

/// Checks the namespaces of a term. The real server writes their member in the singular.
fn namespaces(_: &Value, term: &Value, at: &str, causes: &mut Vec<Cause>) {
    for name in items(member(term, "namespaces")) {
        check_text(name, names::dns_label, &format!("{at}.namespace"), causes);
    }
}

fn topology(_: &Value, key: &Value, at: &str, causes: &mut Vec<Cause>) {
    let key = key.as_str().unwrap_or_default();
    if key.is_empty() {
        causes.push(Cause::required(at, "can not be empty"));
    }
    check_text(&json!(key), names::qualified, at, causes);
}
