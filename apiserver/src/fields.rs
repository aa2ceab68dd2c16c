//! Parsed JSON objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A parsed JSON object.
pub(crate) type Fields = Map<String, Value>;

/// Returns the value at a path such as `spec.nodeName`.
pub(crate) fn read_path<'a>(object: &'a Fields, path: &str) -> Option<&'a Value> {
    match split_first(path, b'.') {
        (name, None) => object.get(name),
        (name, Some(rest)) => read_path(object.get(name)?.as_object()?, rest),
    }
}

/// Splits a text at the first `separator`, an ASCII character; the rest is `None` without one.
///
/// For paths and names, which are short: a loop over their bytes is faster than a search.
pub(crate) fn split_first(text: &str, separator: u8) -> (&str, Option<&str>) {
    match text.bytes().position(|byte| byte == separator) {
        None => (text, None),
        Some(end) => (&text[..end], Some(&text[end + 1..])),
    }
}

/// Sets a member to a value, or removes it.
pub(crate) fn set_or_remove(object: &mut Fields, key: &str, value: Option<Value>) {
    // A member that is there needs no copy of its name.
    match (object.get_mut(key), value) {
        (Some(present), Some(value)) => *present = value,
        (None, Some(value)) => drop(object.insert(key.to_owned(), value)),
        (Some(_), None) => drop(object.remove(key)),
        (None, None) => {}
    }
}

/// Returns true if two objects are equal.
///
/// The last members, `status` and `spec`, differ most often: they are compared first.
pub(crate) fn are_equal(a: &Fields, b: &Fields) -> bool {
    a.len() == b.len() && a.iter().rev().all(|(name, value)| b.get(name) == Some(value))
}

/// Returns true if an update leaves these members as they are stored; false for a new object.
///
/// They need no second check: they passed it when they were stored.
pub(crate) fn are_kept(new: &Fields, old: Option<&Fields>, paths: &[&str]) -> bool {
    let is_kept = |old, path: &&str| read_path(new, path) == read_path(old, path);
    old.is_some_and(|old| paths.iter().all(|path| is_kept(old, path)))
}

/// Returns true if only what the garbage collector changes differs: owners and finalizers.
pub(crate) fn is_clean_up(new: &Fields, old: &Fields) -> bool {
    let rest = |object: &Fields| {
        let mut rest = object.clone();
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(name);
            }
        }
        rest
    };
    rest(new) == rest(old)
}

/// Returns the text of a member; empty if it is missing or no text.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns the string members of an object. Validation has rejected all others before.
pub(crate) fn string_map(members: &Fields) -> BTreeMap<String, String> {
    members
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Returns a string of the metadata; empty if it is missing.
pub(crate) fn meta_text<'a>(object: &'a Fields, key: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or("")
}

/// Returns the finalizers.
pub(crate) fn finalizers(object: &Fields) -> Vec<&str> {
    let list = object.get("metadata").and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
