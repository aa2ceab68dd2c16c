//! Validation of an object's metadata.

use serde_json::{Value, json};

use super::{finalizers, is_terminating, meta_text};
use crate::fields::Fields;
use crate::kinds::{Kind, selectors};
use crate::names;
use crate::status::Cause;

/// Checks the rules that hold for creates and updates.
pub(super) fn check(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let base = meta_text(object, "generateName");
    if !base.is_empty() {
        let mut whole = base.to_owned();
        if base.ends_with('-') && base.len() > 1 {
            // The random part that follows completes the name.
            whole.truncate(base.len() - 1);
            whole.push('a');
        }
        let found = (kind.name)(&whole);
        let base = json!(base);
        causes.extend(
            found.iter().map(|detail| Cause::invalid("metadata.generateName", &base, detail)),
        );
    }
    let name = meta_text(object, "name");
    let found = (kind.name)(name);
    causes.extend(found.iter().map(|detail| Cause::invalid("metadata.name", &json!(name), detail)));
    let member = |key: &str| metadata.get(key).unwrap_or(&Value::Null);
    selectors::labels(metadata, member("labels"), "metadata.labels", causes);
    selectors::annotations(member("annotations"), "metadata.annotations", causes);
    check_owners(kind, metadata.get("ownerReferences"), causes);
    check_finalizers(kind, object, causes);
}

/// The finalizers that need no domain prefix.
const STANDARD: [&str; 4] =
    ["kubernetes", "foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io"];

/// Returns the warning about a finalizer of a custom resource that other clients may use, too.
pub(crate) fn finalizer_warning(finalizer: &str) -> Option<String> {
    if finalizer.contains('/') || STANDARD.contains(&finalizer) {
        return None;
    }
    let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
    Some(format!(
        "metadata.finalizers: \"{finalizer}\": prefer a domain-qualified finalizer name{path} to \
         avoid accidental conflicts with other finalizer writers"
    ))
}

fn check_finalizers(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    for finalizer in finalizers(object) {
        let shown = json!(finalizer);
        let found = names::qualified(finalizer);
        causes.extend(
            found.iter().map(|detail| Cause::invalid("metadata.finalizers", &shown, detail)),
        );
    }
    let all = finalizers(object);
    if ["orphan", "foregroundDeletion"].iter().all(|one| all.contains(one)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &json!(all), detail));
    }
    let list = all.into_iter().enumerate();
    for (at, finalizer) in list.filter(|_| !kind.custom) {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let at = format!("metadata.finalizers[{at}]");
            causes.push(Cause::invalid(at, &json!(finalizer), detail));
        }
    }
}

fn check_owners(kind: &Kind, owners: Option<&Value>, causes: &mut Vec<Cause>) {
    let Some(Value::Array(list)) = owners else { return };
    let mut controllers = Vec::new();
    for (at, owner) in list.iter().enumerate() {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or("");
        for member in ["apiVersion", "kind", "name", "uid"] {
            if text(member).is_empty() {
                let path = format!("metadata.ownerReferences[{at}].{member}");
                causes.push(Cause::required(path, "must not be empty"));
            }
        }
        if text("apiVersion").matches('/').count() > 1 {
            let path = format!("metadata.ownerReferences[{at}].apiVersion");
            let detail = "must be <group>/<version> or <version>";
            causes.push(Cause::invalid(path, &json!(text("apiVersion")), detail));
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(format!("metadata.ownerReferences[{at}]"), owner, detail));
        }
        if owner.get("controller") == Some(&json!(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        let cause = Cause::invalid("metadata.ownerReferences", &json!(list), &detail);
        // For a custom resource the real server validates this often, and reports the error each
        // time.
        causes.extend(std::iter::repeat_n(cause, if kind.custom { 3 } else { 1 }));
    }
}

/// Checks the members that an update may not change.
pub(super) fn check_update(kind: &Kind, object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let mut found = Vec::new();
    for key in ["uid", "deletionTimestamp"] {
        let (new, old) = (meta_text(object, key), meta_text(old, key));
        if new != old {
            found.push(Cause::invalid(
                format!("metadata.{key}"),
                &json!(new),
                "field is immutable",
            ));
        }
    }
    if is_terminating(old) {
        let known = finalizers(old);
        let added: Vec<String> = finalizers(object)
            .into_iter()
            .filter(|one| !known.contains(one))
            .map(|one| format!("\"{one}\""))
            .collect();
        if !added.is_empty() {
            let list = added.join(", ");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{list}}}"
            );
            found.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    if kind.custom {
        // The real server reports each of these twice.
        causes.extend(found.clone());
    }
    causes.extend(found);
}
