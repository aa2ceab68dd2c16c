//! Resource quotas.

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub(crate) use super::limit_ranges::limit_range;
use super::quantities::{amount, is_standard_limit, quota_name};
use super::{Causes, is_empty, items, member, text};
use crate::fields::Fields;
use crate::status::Cause;

fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

pub(crate) fn quota(object: &Fields, causes: Causes<'_>) {
    let spec = spec(object);
    amounts(member(spec, "hard"), "spec.hard", causes);
    let hard = member(spec, "hard").as_object();
    let names: Vec<&str> = hard.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    scopes(member(spec, "scopes"), &names, causes);
    selector(spec, &names, causes);
}

/// Checks the amounts of a quota, in its spec and its status.
pub(crate) fn amounts(list: &Value, at: &str, causes: Causes<'_>) {
    for (name, value) in list.as_object().into_iter().flatten() {
        let at = format!("{at}[{name}]");
        quota_name(name, &at, causes);
        amount(name, value, &at, causes);
    }
}

/// The scopes, in the order of upstream's set and its exception.
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
/// The scopes that a selector can only require to exist.
const PLAIN_SCOPES: [&str; 5] =
    ["Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"];
/// Scopes that exclude each other.
const CONFLICTS: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
/// The resources that a scope of pods can limit. The quality of service limits pods only.
const COMPUTE: [&str; 7] =
    ["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const STORAGE_SCOPED: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
const MISFIT: &str = "unsupported scope applied to resource";

/// Returns true if some limit does not fit a scope. Other names than the standard ones fit.
fn is_misfit(scope: &str, names: &[&str]) -> bool {
    let fits = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => STORAGE_SCOPED.contains(&name),
        known if SCOPES.contains(&known) => COMPUTE.contains(&name),
        _ => true,
    };
    names.iter().any(|name| is_standard_limit(name) && !fits(name))
}

fn do_conflict(scopes: &[&str]) -> bool {
    CONFLICTS.iter().any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn scopes(list: &Value, names: &[&str], causes: Causes<'_>) {
    let scopes: Vec<&str> = items(list).iter().filter_map(Value::as_str).collect();
    let mut wrong = |detail: &str| causes.push(Cause::invalid("spec.scopes", list, detail));
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            wrong("unsupported scope");
        }
        if is_misfit(scope, names) {
            wrong(MISFIT);
        }
    }
    if do_conflict(&scopes) {
        wrong("conflicting scopes");
    }
}

/// Checks that an update keeps the scopes. Their order does not matter.
pub(crate) fn scopes_stay(object: &Fields, old: &Fields, causes: Causes<'_>) {
    let set = |object| -> BTreeSet<&str> {
        items(member(spec(object), "scopes")).iter().filter_map(Value::as_str).collect()
    };
    if set(object) != set(old) {
        let scopes = member(spec(object), "scopes");
        causes.push(Cause::invalid("spec.scopes", scopes, "field is immutable"));
    }
}

fn selector(spec: &Value, names: &[&str], causes: Causes<'_>) {
    const AT: &str = "spec.scopeSelector.matchExpressions";
    let expressions = items(member(member(spec, "scopeSelector"), "matchExpressions"));
    let mut scopes = Vec::new();
    for expression in expressions {
        let name = text(expression, "scopeName");
        if !SCOPES.contains(&name) {
            let at = format!("{AT}.scopeName");
            causes.push(Cause::invalid(at, &json!(name), "unsupported scope"));
        }
        if is_misfit(name, names) {
            causes.push(Cause::invalid(AT, &shown_selector(expressions), MISFIT));
        }
        operator(expression, AT, causes);
        scopes.push(name);
    }
    if do_conflict(&scopes) {
        causes.push(Cause::invalid(AT, member(spec, "scopes"), "conflicting scopes"));
    }
}

/// Shows a selector as the real server's messages do.
fn shown_selector(expressions: &[Value]) -> Value {
    let shown = |expression: &Value| {
        let [name, operator, values] =
            ["scopeName", "operator", "values"].map(|key| member(expression, key));
        json!({"ScopeName": name, "Operator": operator, "Values": values})
    };
    json!({"MatchExpressions": expressions.iter().map(shown).collect::<Vec<_>>()})
}

/// Checks the operator of an expression. The real server does not say which of them is wrong.
fn operator(expression: &Value, at: &str, causes: Causes<'_>) {
    let [name, operator] = ["scopeName", "operator"].map(|key| text(expression, key));
    let operator_at = format!("{at}.operator");
    if PLAIN_SCOPES.contains(&name) && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
            ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
            ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        causes.push(Cause::invalid(&operator_at, &json!(operator), detail));
    }
    let no_values = is_empty(member(expression, "values"));
    match operator {
        "In" | "NotIn" if no_values => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            causes.push(Cause::required(format!("{at}.values"), detail));
        }
        "Exists" | "DoesNotExist" if !no_values => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            causes.push(Cause::invalid(
                format!("{at}.values"),
                member(expression, "values"),
                detail,
            ));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            causes.push(Cause::invalid(&operator_at, &json!(other), detail));
        }
    }
}
