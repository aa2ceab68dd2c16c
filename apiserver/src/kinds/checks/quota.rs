//! Resource quotas and limit ranges.

use std::collections::BTreeSet;

use homeostat_quantity::Quantity;
use serde_json::{Value, json};

use super::quantities::{amount, container_name, is_standard_limit, quota_name};
use super::{check_text, is_empty, items, member, text};
use crate::fields::Fields;
use crate::names;
use crate::quantity;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

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

/// Returns whether some limit does not fit a scope. Other names than the standard ones fit.
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

const KINDS: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

pub(crate) fn limit_range(object: &Fields, causes: Causes<'_>) {
    let mut known = Vec::new();
    for (place, limit) in items(member(spec(object), "limits")).iter().enumerate() {
        let at = format!("spec.limits[{place}]");
        let kind = text(limit, "type");
        let before = causes.len();
        check_text(&json!(kind), names::qualified, &format!("{at}.type"), causes);
        if causes.len() == before && !KINDS.contains(&kind) && !kind.contains('/') {
            let detail = "must be a standard limit type or fully qualified";
            causes.push(Cause::invalid(format!("{at}.type"), &json!(kind), detail));
        }
        if known.contains(&kind) {
            causes.push(Cause::duplicate(format!("{at}.type"), &json!(kind)));
        }
        known.push(kind);
        for list in ["max", "min", "default", "defaultRequest"] {
            limit_names(kind, member(limit, list), &format!("{at}.{list}"), causes);
        }
        limits_in_order(limit, &at, causes);
        let storage = |list| !member(member(limit, list), "storage").is_null();
        if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let detail =
                "either minimum or maximum storage value is required, but neither was provided";
            causes.push(Cause::required(format!("{at}.limits"), detail));
        }
    }
}

fn limit_names(kind: &str, list: &Value, at: &str, causes: Causes<'_>) {
    let is_default = at.ends_with("default") || at.ends_with("defaultRequest");
    if kind == "Pod" && is_default && !list.is_null() {
        causes.push(Cause::forbidden(at, "may not be specified when `type` is 'Pod'"));
        return;
    }
    let names = list.as_object().into_iter().flatten().map(|(name, _)| name);
    for name in names.filter(|_| kind != "PersistentVolumeClaim") {
        container_name(name, &format!("{at}[{name}]"), causes);
    }
}

/// A member, and its name in messages.
type Called = (&'static str, &'static str);

/// Pairs of limits in ascending order: (the member at fault, the member that is shown, the smaller,
/// the larger, and their names).
const ORDER: [(&str, &str, Called, Called); 6] = [
    ("min", "min", ("min", "min value"), ("max", "max value")),
    (
        "defaultRequest",
        "defaultRequest",
        ("min", "min value"),
        ("defaultRequest", "default request value"),
    ),
    (
        "defaultRequest",
        "defaultRequest",
        ("defaultRequest", "default request value"),
        ("max", "max value"),
    ),
    (
        "defaultRequest",
        "defaultRequest",
        ("defaultRequest", "default request value"),
        ("default", "default limit value"),
    ),
    ("default", "min", ("min", "min value"), ("default", "default value")),
    ("default", "max", ("default", "default value"), ("max", "max value")),
];

fn limits_in_order(limit: &Value, at: &str, causes: Causes<'_>) {
    let lists = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let all = lists.iter().filter_map(|list| member(limit, list).as_object());
    let names: BTreeSet<&str> = all.flatten().map(|(name, _)| name.as_str()).collect();
    for name in names {
        let amount = |list: &str| quantity::read(member(member(limit, list), name));
        for (fault, shown, (small, small_called), (large, large_called)) in ORDER {
            let (Some(less), Some(more)) = (amount(small), amount(large)) else { continue };
            if less > more {
                let detail = format!("{small_called} {less} is greater than {large_called} {more}");
                let shown = member(member(limit, shown), name);
                causes.push(Cause::invalid(format!("{at}.{fault}[{name}]"), shown, &detail));
            }
        }
        let ratio = member(member(limit, "maxLimitRequestRatio"), name);
        if let Some(given) = quantity::read(ratio)
            && given < Quantity::from(1)
        {
            let detail = format!("ratio {given} is less than 1");
            let at = format!("{at}.maxLimitRequestRatio[{name}]");
            causes.push(Cause::invalid(at, ratio, &detail));
        }
    }
}
