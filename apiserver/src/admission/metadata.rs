//! What is wrong with the metadata of an object.

use serde_json::{Value, json};

use super::{finalizers, is_terminating, meta_text};
use crate::kinds::{Kind, selectors};
use crate::names;
use crate::object::Fields;
use crate::status::Cause;

/// Checks what a create and an update have in common.
pub(super) fn check(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let base = meta_text(object, "generateName");
    if !base.is_empty() {
        let mut whole = base.to_owned();
        if base.ends_with('-') && base.len() > 1 {
            // The random part that follows makes a name of it.
            whole.truncate(base.len() - 1);
            whole.push('a');
        }
        let found = (kind.name)(&whole);
        let base = json!(base);
        causes.extend(found.iter().map(|why| Cause::invalid("metadata.generateName", &base, why)));
    }
    let name = meta_text(object, "name");
    let found = (kind.name)(name);
    causes.extend(found.iter().map(|why| Cause::invalid("metadata.name", &json!(name), why)));
    let member = |key: &str| metadata.get(key).unwrap_or(&Value::Null);
    selectors::labels(metadata, member("labels"), "metadata.labels", causes);
    selectors::annotations(member("annotations"), "metadata.annotations", causes);
    check_owners(kind, metadata.get("ownerReferences"), causes);
    check_finalizers(kind, object, causes);
}

/// The finalizers that need no domain before them.
const STANDARD: [&str; 3] = ["kubernetes", "foregroundDeletion", "orphan"];

fn check_finalizers(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    for finalizer in finalizers(object) {
        let shown = json!(finalizer);
        let found = names::qualified(finalizer);
        causes.extend(found.iter().map(|why| Cause::invalid("metadata.finalizers", &shown, why)));
    }
    let all = finalizers(object);
    if ["orphan", "foregroundDeletion"].iter().all(|one| all.contains(one)) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &json!(all), why));
    }
    let list = all.into_iter().enumerate();
    for (at, finalizer) in list.filter(|_| !kind.custom) {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let at = format!("metadata.finalizers[{at}]");
            causes.push(Cause::invalid(at, &json!(finalizer), why));
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
            let why = "must be <group>/<version> or <version>";
            causes.push(Cause::invalid(path, &json!(text("apiVersion")), why));
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(format!("metadata.ownerReferences[{at}]"), owner, why));
        }
        if owner.get("controller") == Some(&json!(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let cause = Cause::invalid("metadata.ownerReferences", &json!(list), &why);
        // For a custom resource the real server comes across it this often, and says so each time.
        causes.extend(std::iter::repeat_n(cause, if kind.custom { 3 } else { 1 }));
    }
}

/// Checks what an update may not change.
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
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
            );
            found.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    if kind.custom {
        // The real server comes across each of these twice.
        causes.extend(found.clone());
    }
    causes.extend(found);
}
