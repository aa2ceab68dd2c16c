//! Migrations of stored objects to another version.

use serde_json::{Value, json};

use super::Test::{By, Required};
use super::{Causes, Check, conditions, is_empty, items, member, text};
use crate::fields::{Fields, read_path};
use crate::names::{self, Problems};
use crate::status::Cause;

pub(crate) fn migration(migration: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const RESOURCE: &[Check] = &[
        ("resource", Required("resource is required to be set")),
        ("resource", By(|_, name, at, causes| joined(name, names::rfc_1035_label, at, causes))),
        ("group", By(|_, group, at, causes| joined(group, names::dns_subdomain, at, causes))),
    ];
    let resource = read_path(migration, "spec.resource").unwrap_or(&Value::Null);
    super::run(RESOURCE, resource, "spec.resource", causes);
    let Some(old) = old else { return };
    if migration.get("spec") != old.get("spec") {
        let [group, resource] = ["group", "resource"].map(|name| text(resource, name));
        let shown = json!({"Resource": {"group": group, "resource": resource}});
        causes.push(Cause::invalid("spec", &shown, "field is immutable"));
    }
    let [status, old] =
        [migration, old].map(|migration| migration.get("status").unwrap_or(&Value::Null));
    if status != old {
        check_status(status, old, causes);
    }
}

/// Checks a text that is not empty. One cause has all problems.
fn joined(value: &Value, is: fn(&str) -> Problems, at: &str, causes: Causes<'_>) {
    let problems = value.as_str().filter(|text| !text.is_empty()).map_or_else(Vec::new, is);
    if !problems.is_empty() {
        causes.push(Cause::invalid(at, value, &problems.join(",")));
    }
}

fn check_status(status: &Value, old: &Value, causes: Causes<'_>) {
    const AT: &str = "status.conditions";
    const VERSION_AT: &str = "status.resourceVersion";
    const LASTING: [(&str, &str); 2] = [("Succeeded", "Success"), ("Failed", "Failed")];
    let version = member(status, "resourceVersion");
    if version.as_str().is_some_and(|version| !version.is_empty() && !is_version(version)) {
        let version_text = version.as_str().unwrap_or_default();
        let detail = format!("resource version is not well formed: {version_text}");
        causes.push(Cause::invalid(VERSION_AT, version, &detail));
    }
    let list = member(status, "conditions");
    conditions::list(status, list, AT, causes);
    let version_before = member(old, "resourceVersion");
    if !is_empty(version_before) && version_before != version {
        let shown = json!(text(status, "resourceVersion"));
        causes.push(Cause::invalid(VERSION_AT, &shown, "field is immutable"));
    }
    if LASTING.iter().all(|(kind, _)| is_true(status, kind)) {
        let detail = "Both success and failed conditions cannot be true at the same time";
        causes.push(Cause::invalid(AT, list, detail));
    }
    for (kind, name) in LASTING {
        if is_true(old, kind) && !is_true(status, kind) {
            let detail = format!("{name} condition cannot be set to false once it is true");
            causes.push(Cause::invalid(AT, list, &detail));
        }
    }
}

/// Returns true if a text is a version of an object: a number without leading zeros.
fn is_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_true(status: &Value, kind: &str) -> bool {
    let mut all = items(member(status, "conditions")).iter();
    all.find(|condition| text(condition, "type") == kind)
        .is_some_and(|condition| text(condition, "status") == "True")
}
