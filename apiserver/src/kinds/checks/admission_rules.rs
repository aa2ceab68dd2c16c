//! Rules, conditions and names that configurations and policies of admission share.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Test::{By, Each, OneOf, Required};
use super::{Causes, Check, check_text, is_empty, items, join, member, selectors, text};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The end of the names of objects that only files on the real server's machine define.
const OF_FILES: &str = ".static.k8s.io";

/// The longest list of conditions.
const MAX_CONDITIONS: usize = 64;

pub(super) const FAILURE_POLICY: Check = ("failurePolicy", OneOf(&["Fail", "Ignore"]));
pub(super) const MATCH_POLICY: Check = ("matchPolicy", OneOf(&["Equivalent", "Exact"]));
pub(super) const REINVOCATION: &[&str] = &["IfNeeded", "Never"];

/// A rule: operations on resources.
pub(super) const RULE: &[Check] = &[
    ("operations", By(operations)),
    ("apiGroups", By(groups)),
    ("apiVersions", By(versions)),
    ("resources", By(resources)),
    ("scope", OneOf(&["*", "Cluster", "Namespaced"])),
];

/// The objects that a policy applies to, or its binding.
pub(super) const MATCH: &[Check] = &[
    MATCH_POLICY,
    ("namespaceSelector", By(selectors::selector)),
    ("objectSelector", By(selectors::selector)),
    ("resourceRules", Each(NAMED_RULE)),
    ("excludeResourceRules", Each(NAMED_RULE)),
];
const NAMED_RULE: &[Check] = &[("resourceNames", By(resource_names)), ("", By(rule))];

/// Checks that a new object has no name that is reserved for files.
pub(super) fn name(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let name = read_path(object, "metadata.name").unwrap_or(&Value::Null);
    if old.is_none() && is_of_files(name) {
        causes.push(Cause::invalid("metadata.name", name, &reserved()));
    }
}

/// Returns the warning about an update of an object whose name is reserved for files.
pub(crate) fn warn(object: &Fields, old: Option<&Fields>) -> Vec<String> {
    let name = read_path(object, "metadata.name").unwrap_or(&Value::Null);
    let warning = || format!("metadata.name: {}", reserved());
    (old.is_some() && is_of_files(name)).then(warning).into_iter().collect()
}

fn is_of_files(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.ends_with(OF_FILES))
}

fn reserved() -> String {
    format!(
        "names ending with \"{OF_FILES}\" are reserved for static manifest-based configurations \
         and cannot be managed via the API"
    )
}

// === rules ===

fn rule(_: &Value, rule: &Value, at: &str, causes: Causes<'_>) {
    super::run(RULE, rule, at, causes);
}

fn resource_names(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    for (place, name) in items(list).iter().enumerate() {
        let at = format!("{at}[{place}]");
        check_text(name, names::path_segment, &at, causes);
        if items(list)[..place].contains(name) {
            causes.push(Cause::duplicate(at, name));
        }
    }
}

/// Checks that a list is not empty, and that `*` is alone in it.
fn exclusive(list: &Value, others: &str, at: &str, causes: Causes<'_>) {
    let all = items(list);
    if all.is_empty() {
        causes.push(Cause::required(at, ""));
    }
    if all.len() > 1 && all.iter().any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {others}");
        causes.push(Cause::invalid(at, list, &detail));
    }
}

fn operations(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    exclusive(list, "operations", at, causes);
    for (place, operation) in items(list).iter().enumerate() {
        if !OPERATIONS.iter().any(|known| operation == known) {
            causes.push(Cause::unsupported(format!("{at}[{place}]"), operation, OPERATIONS));
        }
    }
}

fn groups(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    exclusive(list, "API groups", at, causes);
}

fn versions(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    exclusive(list, "API versions", at, causes);
    for (place, version) in items(list).iter().enumerate() {
        if is_empty(version) {
            causes.push(Cause::required(format!("{at}[{place}]"), ""));
        }
    }
}

fn resources(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let all = items(list);
    if all.is_empty() {
        causes.push(Cause::required(at, ""));
    }
    // Resources of which all subresources are named, and subresources named of all resources.
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let names = all.iter().map(|name| name.as_str().unwrap_or_default());
    for (place, name) in names.clone().enumerate() {
        let at = || format!("{at}[{place}]");
        if name.is_empty() {
            causes.push(Cause::required(at(), ""));
        }
        let Some((resource, part)) = name.split_once('/') else { continue };
        let wide = [
            whole.contains(resource).then(|| format!("{resource}/*")),
            everywhere.contains(part).then(|| format!("*/{part}")),
        ];
        for wide in wide.into_iter().flatten() {
            let detail = format!("if '{wide}' is present, must not specify {name}");
            causes.push(Cause::invalid(at(), &json!(name), &detail));
        }
        if part == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(part);
        }
    }
    if all.len() > 1 && names.clone().any(|name| name == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        causes.push(Cause::invalid(at, list, detail));
    }
    // As in upstream, only the last resource without a subresource counts.
    let mut plain = names.clone().filter(|name| !name.is_empty() && !name.contains('/'));
    if names.clone().any(|name| name == "*") && plain.next_back().is_some_and(|last| last != "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.push(Cause::invalid(at, list, detail));
    }
}

// === conditions ===

/// Checks the conditions of a match. Their expressions are not compiled.
pub(super) fn conditions(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const CONDITION: &[Check] =
        &[("expression", By(expression)), ("name", Required("")), ("name", By(qualified))];
    let all = items(list);
    if all.len() > MAX_CONDITIONS {
        causes.push(Cause::too_many(at, all.len(), MAX_CONDITIONS));
    }
    let mut known = BTreeSet::new();
    for (place, condition) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(CONDITION, condition, &at, causes);
        let name = text(condition, "name");
        if !name.is_empty() && !known.insert(name) {
            causes.push(Cause::duplicate(join(&at, "name"), member(condition, "name")));
        }
    }
}

/// Checks that there is an expression.
pub(super) fn expression(_: &Value, expression: &Value, at: &str, causes: Causes<'_>) {
    if is_blank(expression) {
        causes.push(Cause::required(at, ""));
    }
}

pub(super) fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

fn qualified(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if !is_empty(name) {
        check_text(name, names::qualified, at, causes);
    }
}
