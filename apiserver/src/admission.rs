//! Admission: the rules for what a write may change, and what the server changes in it. Pure
//! functions of the stored and the new object.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod field_manager;
pub(crate) mod metadata;
pub(crate) mod owners;
pub(crate) mod target;
pub(crate) mod types;
mod unwritten;
pub(crate) mod update;

use serde_json::{Value, json};

use crate::fields::Fields;
pub(crate) use crate::fields::{finalizers, meta_text};
use crate::status::Cause;

/// The member with the seconds that a deleted object has left.
const GRACE: &str = "deletionGracePeriodSeconds";

/// Returns the metadata, which every incoming object has been given.
pub(crate) fn metadata_mut(object: &mut Fields) -> &mut Fields {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("was just made an object")
}

pub(crate) fn is_terminating(object: &Fields) -> bool {
    !meta_text(object, "deletionTimestamp").is_empty()
}

/// Increments the generation, for kinds that have one.
fn bump_generation(object: &mut Fields) {
    let metadata = metadata_mut(object);
    let next = metadata.get("generation").and_then(Value::as_i64).filter(|n| *n > 0).map(|n| n + 1);
    if let Some(next) = next {
        metadata.insert("generation".to_owned(), json!(next));
    }
}

/// Removes empty members, which the real server does not encode.
pub(crate) fn drop_empty(metadata: &mut Fields) {
    for list in ["labels", "annotations"] {
        // A text that is null is empty.
        let texts = metadata.get_mut(list).and_then(Value::as_object_mut);
        let nulls = texts.into_iter().flat_map(|texts| texts.values_mut());
        nulls.filter(|text| text.is_null()).for_each(|text| *text = json!(""));
    }
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
}

/// Returns true if `values` ask for a dry run.
pub(crate) fn check_dry_run(values: &[&str], causes: &mut Vec<Cause>) -> bool {
    if values.iter().any(|value| *value != "All") {
        causes.push(Cause::unsupported("dryRun", &json!(values), &["All"]));
    }
    !values.is_empty()
}
