//! References to objects of any kind, by apiVersion, kind and name.

use serde_json::{Value, json};

use super::{Causes, check_text, is_empty, join, member, text};
use crate::names;
use crate::status::Cause;

/// The group in a reference to another object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Needed,
    Optional,
    /// It is not checked: an earlier version of the object has it.
    Kept,
}

/// Checks a reference to another object (`ValidateCrossVersionObjectReference`).
pub(super) fn reference(reference: &Value, group: Group, at: &str, causes: Causes<'_>) {
    for name in ["kind", "name"] {
        let value = member(reference, name);
        if is_empty(value) {
            causes.push(Cause::required(join(at, name), ""));
        } else {
            check_text(value, names::path_segment, &join(at, name), causes);
        }
    }
    let version = text(reference, "apiVersion");
    if let Some(detail) = group_problem(version, group) {
        causes.push(Cause::invalid(join(at, "apiVersion"), &json!(version), &detail));
    }
}

/// Returns the problem with the apiVersion of a reference.
pub(super) fn group_problem(version: &str, group: Group) -> Option<String> {
    match version.split_once('/') {
        _ if group == Group::Kept => None,
        Some((_, rest)) if rest.contains('/') => {
            Some(format!("unexpected GroupVersion string: {version}"))
        }
        Some((name, _)) if !name.is_empty() => None,
        _ if group == Group::Needed => Some("apiVersion must specify API group".to_owned()),
        _ => None,
    }
}
