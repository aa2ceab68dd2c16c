//! The kind `CustomResourceDefinition`: its defaults, its validation and its conditions.

mod attributes;
pub(crate) mod conditions;
mod conversion;
pub(crate) mod names_in_use;
mod schemas;
pub(crate) mod steps;
mod validate;

use serde_json::{Value, json};

use crate::fields::{Fields, read_path};

pub(super) use schemas::warnings;
pub(super) use validate::validate;

/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The annotation that a definition in a group of Kubernetes must have.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Sets the names and the conversion that the author left out, and the stored version if there is
/// none.
pub(super) fn derive(definition: &mut Fields) {
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
            derive_names(names);
        }
        conversion::derive(spec);
        schemas::tidy(spec);
    }
    let stored = read_path(definition, "status.storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        record_storage(definition);
    }
}

/// Records the storage version of a changed specification: a write to the status does not.
pub(super) fn record_new_storage(definition: &mut Fields, old: &Fields) {
    if definition.get("spec") != old.get("spec") {
        record_storage(definition);
    }
}

/// Records the storage version among those that objects may be stored in.
pub(super) fn record_storage(definition: &mut Fields) {
    let storage = versions(definition).find(|version| version["storage"] == true);
    let Some(name) = storage.and_then(|version| version.get("name")).cloned() else { return };
    let Some(status) = definition.get_mut("status").and_then(Value::as_object_mut) else { return };
    match status.get_mut("storedVersions") {
        Some(Value::Array(stored)) if stored.contains(&name) => {}
        Some(Value::Array(stored)) => stored.push(name),
        _ => {
            status.insert("storedVersions".to_owned(), json!([name]));
        }
    }
}

fn derive_names(names: &mut Fields) {
    let text = |names: &Fields, key: &str| {
        names.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text(names, "kind");
    if kind.is_empty() {
        return;
    }
    if text(names, "singular").is_empty() {
        names.insert("singular".to_owned(), json!(kind.to_lowercase()));
    }
    if text(names, "listKind").is_empty() {
        names.insert("listKind".to_owned(), json!(format!("{kind}List")));
    }
}

/// Marks a definition for deletion: it stays until its objects are deleted.
pub(super) fn mark(definition: &mut Fields) {
    let Some(metadata) = definition.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    // The real server marks a definition in a way of its own.
    metadata.remove("deletionGracePeriodSeconds");
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
        metadata.insert("generation".to_owned(), json!(generation - 1));
    }
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(list) = finalizers
        && !list.contains(&json!(CLEANUP))
    {
        list.push(json!(CLEANUP));
    }
    let now = metadata.get("deletionTimestamp").and_then(Value::as_str).unwrap_or_default();
    let now = now.to_owned();
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                   begin soon";
    let pending = conditions::Condition::new("Terminating", "True", "InstanceDeletionPending");
    conditions::set(definition, &pending.with_message(message), &now);
}

/// Returns the versions of a definition.
fn versions(definition: &Fields) -> impl Iterator<Item = &Value> {
    let versions = read_path(definition, "spec.versions").and_then(Value::as_array);
    versions.into_iter().flatten()
}

/// Returns the text at a path; empty if there is none.
fn text<'a>(definition: &'a Fields, path: &str) -> &'a str {
    read_path(definition, path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns true if definitions in this group need an approval.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The state of a definition's approval, with its reason.
#[derive(Debug, PartialEq, Eq)]
enum Approval {
    Missing(String),
    Invalid(String),
    Bypassed(String),
    Approved(String),
}

impl Approval {
    fn of(definition: &Fields) -> Self {
        const HELP: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
        let annotations = read_path(definition, "metadata.annotations");
        let annotation = annotations.and_then(|annotations| annotations.get(APPROVED));
        let annotation = annotation.and_then(Value::as_str).unwrap_or_default();
        if annotation.is_empty() {
            return Self::Missing(format!(
                "protected groups must have approval annotation \"{APPROVED}\", {HELP}"
            ));
        }
        let quoted = homeostat_core::go_quote(annotation);
        if annotation.starts_with("unapproved") {
            return Self::Bypassed(format!("not approved: {quoted}"));
        }
        let url = annotation.parse::<http::Uri>();
        if url.is_ok_and(|url| url.scheme().is_some() && url.host().is_some()) {
            return Self::Approved(format!("approved in {annotation}"));
        }
        Self::Invalid(format!(
            "protected groups must have approval annotation \"{APPROVED}\" with either a URL or a \
             reason starting with \"unapproved\", {HELP}"
        ))
    }
}
