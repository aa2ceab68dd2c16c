//! What a write may change, and what the server changes in it: pure functions of what is stored and what is asked.

pub(crate) mod create;
pub(crate) mod delete;
mod metadata;
pub(crate) mod types;
pub(crate) mod update;

use serde_json::{Value, json};

use crate::object::Fields;

/// A metadata that is there: every object that comes in gets one first.
pub(crate) fn metadata_mut(object: &mut Fields) -> &mut Fields {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("made an object just now")
}

/// A string of the metadata; empty when it is not there.
pub(crate) fn meta_text<'a>(object: &'a Fields, key: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or("")
}

/// The finalizers.
pub(crate) fn finalizers(object: &Fields) -> Vec<&str> {
    let list = object.get("metadata").and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn is_terminating(object: &Fields) -> bool {
    !meta_text(object, "deletionTimestamp").is_empty()
}

/// Counts a change of what is wanted, for kinds that count.
fn bump_generation(object: &mut Fields) {
    let metadata = metadata_mut(object);
    let next = metadata.get("generation").and_then(Value::as_i64).filter(|n| *n > 0).map(|n| n + 1);
    if let Some(next) = next {
        metadata.insert("generation".to_owned(), json!(next));
    }
}

/// Members that are empty are not there: so the real server encodes them.
fn drop_empty(metadata: &mut Fields) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
}
