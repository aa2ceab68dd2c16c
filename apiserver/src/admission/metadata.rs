//! What is wrong with the metadata of an object.

use serde_json::{Value, json};

use super::{finalizers, is_terminating, meta_text};
use crate::kinds::Kind;
use crate::names;
use crate::object::Fields;
use crate::status::Cause;

/// Checks what a create and an update have in common.
pub(super) fn check(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let metadata = object.get("metadata");
    let name = meta_text(object, "name");
    if let Some(why) = (kind.name)(name) {
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    check_labels(metadata.and_then(|m| m.get("labels")), causes);
    check_owners(kind, metadata.and_then(|m| m.get("ownerReferences")), causes);
    for finalizer in finalizers(object) {
        if let Some(why) = names::qualified(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &json!(finalizer), why));
        }
    }
}

fn check_labels(labels: Option<&Value>, causes: &mut Vec<Cause>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if let Some(why) = names::qualified(key) {
            causes.push(Cause::invalid("metadata.labels", &json!(key), why));
        }
        if let Some(why) = value.as_str().and_then(names::label_value) {
            causes.push(Cause::invalid("metadata.labels", value, why));
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
        if owner.get("controller") == Some(&json!(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let cause = Cause::invalid("metadata.ownerReferences", &json!(list), &why);
        // The real server comes across it this often, and says so each time.
        causes.extend(std::iter::repeat_n(cause, if kind.custom { 3 } else { 2 }));
    }
}

/// Checks what an update may not change. Each of these is found twice by the real server.
pub(super) fn check_update(object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
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
    causes.extend(found.clone());
    causes.extend(found);
}
