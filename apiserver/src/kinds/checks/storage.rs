//! Classes of storage and of volumes' attributes, and the capacity of storage.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Test::{By, OneOf, Required};
use super::{
    Causes, Check, check_text, is_empty, items, join, member, quantities, selectors, text,
};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

/// The most parameters of a class, and their largest size in bytes.
const MAX_PARAMETERS: usize = 512;
const MAX_SIZE: usize = 256 * 1024;

/// A value of each key of a topology, in any order.
type Terms<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn run(checks: &[Check], object: &Fields, causes: Causes<'_>) {
    super::run(checks, &Value::Object(object.clone()), "", causes);
}

pub(crate) fn class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const FIXED: &[&str] = &["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"];
    const CLASS: &[Check] = &[
        ("provisioner", By(provisioner)),
        ("parameters", By(parameters)),
        ("reclaimPolicy", By(reclaim_policy)),
        ("volumeBindingMode", OneOf(&["Immediate", "WaitForFirstConsumer"])),
        ("allowedTopologies", By(topologies)),
    ];
    run(CLASS, class, causes);
    if class.get("provisioner").is_none_or(is_empty) {
        causes.push(Cause::required("provisioner", ""));
    }
    super::unchanged(FIXED, class, old, causes);
}

/// Checks the name of a provisioner, whose case does not matter: messages show it in lower case.
fn provisioner(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let name = name.as_str().unwrap_or_default().to_lowercase();
    if !name.is_empty() {
        check_text(&json!(name), names::qualified, at, causes);
    }
}

fn reclaim_policy(_: &Value, policy: &Value, at: &str, causes: Causes<'_>) {
    const POLICIES: &[Check] = &[("", OneOf(&["Delete", "Retain"]))];
    if !is_empty(policy) {
        super::run(POLICIES, policy, at, causes);
    }
}

fn parameters(_: &Value, parameters: &Value, at: &str, causes: Causes<'_>) {
    let Some(parameters) = parameters.as_object() else { return };
    if parameters.len() > MAX_PARAMETERS {
        causes.push(Cause::too_long(at, MAX_PARAMETERS));
        return;
    }
    if parameters.contains_key("") {
        causes.push(Cause::invalid(at, &json!(""), "field can not be empty."));
    }
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if parameters.iter().map(size).sum::<usize>() > MAX_SIZE {
        causes.push(Cause::too_long(at, MAX_SIZE));
    }
}

/// Checks the topologies that a class allows. As in upstream, one without keys repeats another.
fn topologies(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let mut known: Vec<Terms<'_>> = vec![Terms::new()];
    for (place, term) in items(list).iter().enumerate() {
        let at = format!("{at}[{place}].matchLabelExpressions");
        let terms = topology(member(term, "matchLabelExpressions"), &at, causes);
        if known.contains(&terms) {
            causes.push(Cause::duplicate(at, &json!("")));
        }
        known.push(terms);
    }
}

fn topology<'a>(expressions: &'a Value, at: &str, causes: Causes<'_>) -> Terms<'a> {
    let mut terms = Terms::new();
    for (place, expression) in items(expressions).iter().enumerate() {
        let at = format!("{at}[{place}]");
        let (key, values) = (text(expression, "key"), items(member(expression, "values")));
        if values.is_empty() {
            causes.push(Cause::required(join(&at, "values"), ""));
        }
        let mut distinct = BTreeSet::new();
        for (place, value) in values.iter().enumerate() {
            if !distinct.insert(value.as_str().unwrap_or_default()) {
                causes.push(Cause::duplicate(format!("{at}.values[{place}]"), value));
            }
        }
        check_text(&json!(key), names::qualified, &join(&at, "key"), causes);
        if terms.insert(key, distinct).is_some() {
            causes.push(Cause::duplicate(join(&at, "key"), &json!(key)));
        }
    }
    terms
}

pub(crate) fn capacity(capacity: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const CAPACITY: &[Check] = &[
        ("nodeTopology", By(selectors::selector)),
        ("storageClassName", By(class_name)),
        ("capacity", By(quantities::not_negative)),
    ];
    run(CAPACITY, capacity, causes);
}

fn class_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(name.as_str().unwrap_or_default()), names::dns_subdomain, at, causes);
}

pub(crate) fn attributes_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const CLASS: &[Check] = &[
        ("driverName", Required("")),
        ("driverName", By(provisioner)),
        ("parameters", By(parameters)),
        ("parameters", Required("must contain at least one key/value pair")),
    ];
    let old = old.unwrap_or(class);
    for key in ["driverName", "parameters"] {
        if class.get(key) != old.get(key) {
            causes.push(Cause::forbidden(key, &format!("updates to {key} are forbidden.")));
        }
    }
    run(CLASS, class, causes);
}
