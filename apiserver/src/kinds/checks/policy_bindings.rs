//! Bindings of admission policies.

use serde_json::Value;

use super::Test::{By, Has, OneOf, Required, Text};
use super::admission_rules::{self as rules, MATCH};
use super::{Causes, Check, check_text, is_empty, items, join, member, policies, selectors};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const COMMON: &[Check] = &[
    ("policyName", Text(names::dns_subdomain)),
    ("paramRef", By(parameters)),
    ("matchResources", Has(MATCH)),
];

pub(crate) fn validating(binding: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const ACTIONS: &[Check] = &[("validationActions", By(actions))];
    // The real server reports what is missing after all others.
    const NEEDED: &[Check] = &[("policyName", Required("")), ("validationActions", Required(""))];
    let spec = binding.get("spec").unwrap_or(&Value::Null);
    super::run(COMMON, spec, "spec", causes);
    super::run(ACTIONS, spec, "spec", causes);
    rules::name(binding, old, causes);
    super::run(NEEDED, spec, "spec", causes);
}

pub(crate) fn mutating(binding: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const REST: &[Check] = &[("matchResources", By(policies::no_deletes))];
    let spec = binding.get("spec").unwrap_or(&Value::Null);
    super::run(&[("policyName", Required(""))], spec, "spec", causes);
    super::run(COMMON, spec, "spec", causes);
    super::run(REST, spec, "spec", causes);
    rules::name(binding, old, causes);
}

/// Checks a reference to parameters: by name, or by their labels.
fn parameters(_: &Value, reference: &Value, at: &str, causes: Causes<'_>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    const ACTION: &[Check] =
        &[("parameterNotFoundAction", Required("")), ("parameterNotFoundAction", By(not_found))];
    if reference.is_null() {
        return;
    }
    let (name, selector) = (member(reference, "name"), member(reference, "selector"));
    let both = !is_empty(name) && !selector.is_null();
    if !is_empty(name) {
        check_text(name, names::path_segment, &join(at, "name"), causes);
    }
    if both {
        causes.push(Cause::forbidden(join(at, "name"), EXCLUSIVE));
    }
    selectors::selector(reference, selector, &join(at, "selector"), causes);
    if both {
        causes.push(Cause::forbidden(join(at, "selector"), EXCLUSIVE));
    }
    if is_empty(name) && selector.is_null() {
        causes.push(Cause::required(at, "one of name or selector must be specified"));
    }
    super::run(ACTION, reference, at, causes);
}

fn not_found(_: &Value, action: &Value, at: &str, causes: Causes<'_>) {
    const ACTIONS: &[Check] = &[("", OneOf(&["Deny", "Allow"]))];
    if !is_empty(action) {
        super::run(ACTIONS, action, at, causes);
    }
}

fn actions(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
    let all = items(list);
    for (place, action) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if !ACTIONS.iter().any(|known| action == known) {
            causes.push(Cause::unsupported(&at, action, ACTIONS));
        }
        if all[..place].contains(action) {
            causes.push(Cause::duplicate(at, action));
        }
    }
    let has = |name: &str| all.iter().any(|action| action == name);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        causes.push(Cause::invalid(at, list, detail));
    }
}
