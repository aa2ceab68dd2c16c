//! Quotas, limits and claims to storage.

use serde_json::{Value, json};

use super::Test::{self, By, Each, Text};
use super::quantities::{amount, container_name, quota_name};
use super::workloads::all_known;
use super::{Check, is_empty, items, judge, member, text};
use crate::names;
use crate::object::Fields;
use crate::quantity::Quantity;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const STORAGE: &[Check] = &[
    ("storageClassName", Text(names::dns_subdomain)),
    ("volumeMode", Test::OneOf(&["Block", "Filesystem"])),
];

pub(crate) fn storage_claim(object: &Fields, causes: Causes<'_>) {
    let spec = spec(object);
    let modes = member(spec, "accessModes");
    if is_empty(modes) {
        let why = "at least 1 access mode is required";
        causes.push(Cause::required("spec.accessModes", why));
    } else if let Some(unknown) = all_known(modes, &MODES) {
        causes.push(Cause::unsupported("spec.accessModes", unknown, &MODES));
    }
    let storage = member(member(member(spec, "resources"), "requests"), "storage");
    match Quantity::read(storage) {
        None => causes.push(Cause::required("spec.resources[storage]", "")),
        Some(size) if size.nano() <= 0 => {
            let why = "must be greater than zero";
            causes.push(Cause::invalid("spec.resources[storage]", storage, why));
        }
        Some(_) => {}
    }
    super::run(STORAGE, spec, "spec", causes);
}

const SELECTOR: &[Check] = &[("scopeSelector.matchExpressions", Each(&[("", By(scope))]))];

pub(crate) fn quota(object: &Fields, causes: Causes<'_>) {
    let spec = spec(object);
    amounts(member(spec, "hard"), "spec.hard", causes);
    let hard = member(spec, "hard").as_object();
    let names: Vec<&str> = hard.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    scopes(member(spec, "scopes"), &names, causes);
    super::run(SELECTOR, spec, "spec", causes);
}

/// The amounts of a quota, in its spec and its status.
pub(crate) fn amounts(list: &Value, at: &str, causes: Causes<'_>) {
    for (name, value) in list.as_object().into_iter().flatten() {
        let at = format!("{at}[{name}]");
        quota_name(name, &at, causes);
        amount(name, value, &at, causes);
    }
}

const SCOPES: [&str; 6] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
];
/// What a scope about time can limit; one about guarantees limits pods only.
const COMPUTE: [&str; 7] =
    ["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

fn scopes(list: &Value, names: &[&str], causes: Causes<'_>) {
    let scopes: Vec<&str> = items(list).iter().filter_map(Value::as_str).collect();
    let mut wrong = |why: &str| causes.push(Cause::invalid("spec.scopes", list, why));
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            wrong("unsupported scope");
        }
        let fits = |name: &&str| match *scope {
            "BestEffort" => *name == "pods",
            "Terminating" | "NotTerminating" | "NotBestEffort" => COMPUTE.contains(name),
            _ => true,
        };
        for _ in names.iter().filter(|name| !fits(name)) {
            wrong("unsupported scope applied to resource");
        }
    }
    let both = |a, b| scopes.contains(&a) && scopes.contains(&b);
    if both("BestEffort", "NotBestEffort") || both("Terminating", "NotTerminating") {
        wrong("conflicting scopes");
    }
}

fn scope(_: &Value, expression: &Value, at: &str, causes: Causes<'_>) {
    // The real server does not say which of them it is.
    let at = at.split('[').next().unwrap_or(at);
    let [name, operator] = ["scopeName", "operator"].map(|key| text(expression, key));
    if !SCOPES.contains(&name) {
        causes.push(Cause::invalid(format!("{at}.scopeName"), &json!(name), "unsupported scope"));
    }
    let needs_exists = SCOPES.contains(&name) && name != "PriorityClass";
    let operator_at = format!("{at}.operator");
    if needs_exists && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                   ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                   ResourceQuotaScopeCrossNamespacePodAffinity";
        causes.push(Cause::invalid(&operator_at, &json!(operator), why));
    }
    let no_values = is_empty(member(expression, "values"));
    match operator {
        "In" | "NotIn" if no_values => {
            let why =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            causes.push(Cause::required(format!("{at}.values"), why));
        }
        "Exists" | "DoesNotExist" if !no_values => {
            let why =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            causes.push(Cause::invalid(format!("{at}.values"), member(expression, "values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let why = "not a valid selector operator";
            causes.push(Cause::invalid(&operator_at, &json!(other), why));
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
        judge(&json!(kind), names::qualified, &format!("{at}.type"), causes);
        if causes.len() == before && !KINDS.contains(&kind) && !kind.contains('/') {
            let why = "must be a standard limit type or fully qualified";
            causes.push(Cause::invalid(format!("{at}.type"), &json!(kind), why));
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
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            causes.push(Cause::required(format!("{at}.limits"), why));
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

/// A member, and what it is called.
type Called = (&'static str, &'static str);

/// What of a limit must not be greater than what: (the member at fault, the member that is shown, the smaller, the larger,
/// and what each of these is called).
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
    let names: std::collections::BTreeSet<&str> =
        all.flatten().map(|(name, _)| name.as_str()).collect();
    for name in names {
        let amount = |list: &str| Quantity::read(member(member(limit, list), name));
        for (fault, shown, (small, small_called), (large, large_called)) in ORDER {
            let (Some(less), Some(more)) = (amount(small), amount(large)) else { continue };
            if less.nano() > more.nano() {
                let why = format!("{small_called} {less} is greater than {large_called} {more}");
                let shown = member(member(limit, shown), name);
                causes.push(Cause::invalid(format!("{at}.{fault}[{name}]"), shown, &why));
            }
        }
        let ratio = member(member(limit, "maxLimitRequestRatio"), name);
        if let Some(given) = Quantity::read(ratio)
            && given.nano() < 1_000_000_000
        {
            let why = format!("ratio {given} is less than 1");
            let at = format!("{at}.maxLimitRequestRatio[{name}]");
            causes.push(Cause::invalid(at, ratio, &why));
        }
    }
}
