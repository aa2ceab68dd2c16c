//! Parsed JSON objects.

use std::collections::BTreeMap;

use serde_json::map::Iter;
use serde_json::{Map, Value};

/// A parsed JSON object.
pub(crate) type Fields = Map<String, Value>;

/// Finds the members of an object for another version of it, whose members are visited in order.
///
/// Both have almost the same members: the wanted one is usually the next, which costs one
/// comparison instead of a search.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    object: &'a Fields,
    rest: Iter<'a>,
}

/// Reads paths of an object, of which many begin with the same member.
#[derive(Debug)]
pub(crate) struct Paths<'a> {
    object: &'a Fields,
    /// The member that the last path begins with.
    last: (&'static str, Option<&'a Value>),
}

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
    let is_equal = |((name, value), (other, beside)): ((&String, _), (&String, _))| {
        if name == other { value == beside } else { b.get(name) == Some(value) }
    };
    a.len() == b.len() && a.iter().rev().zip(b.iter().rev()).all(is_equal)
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

// === impl Beside ===

impl<'a> Beside<'a> {
    pub(crate) fn new(object: &'a Fields) -> Self {
        Self { object, rest: object.iter() }
    }

    /// Returns the member called `name`.
    pub(crate) fn get(&mut self, name: &str) -> Option<&'a Value> {
        let mut rest = self.rest.clone();
        // The other version may lack a member.
        for _ in 0..2 {
            let Some((other, value)) = rest.next() else { break };
            if other == name {
                self.rest = rest;
                return Some(value);
            }
        }
        self.object.get(name)
    }
}

// === impl Paths ===

impl<'a> Paths<'a> {
    pub(crate) fn of(object: &'a Fields) -> Self {
        Self { object, last: ("", None) }
    }

    /// Returns what [`read_path`] returns.
    pub(crate) fn read(&mut self, path: &'static str) -> Option<&'a Value> {
        let (name, rest) = split_first(path, b'.');
        if name != self.last.0 {
            self.last = (name, self.object.get(name));
        }
        match rest {
            None => self.last.1,
            Some(rest) => read_path(self.last.1?.as_object()?, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: &Value) -> &Fields {
        value.as_object().unwrap()
    }

    #[test]
    fn paths_are_read_in_any_order() {
        let object = json!({"spec": {"a": {"b": 1}, "c": 2}, "status": {"c": 3}, "text": "x"});
        let paths = ["spec.a.b", "spec.c", "status.c", "spec.c", "text.c", "text", "no", "no.c"];
        let mut reader = Paths::of(fields(&object));
        for path in paths {
            assert_eq!(reader.read(path), read_path(fields(&object), path), "{path}");
        }
    }

    #[test]
    fn members_are_found_in_any_order() {
        let object = json!({"a": 1, "b": 2, "d": 4, "e": 5, "f": 6, "g": 7});
        let object = fields(&object);
        let orders: [&[&str]; 4] =
            [&["a", "b", "c", "d", "g"], &["e", "f", "g", "h"], &["g", "a", "b"], &["A", "a", "z"]];
        for names in orders {
            let mut beside = Beside::new(object);
            for name in names {
                assert_eq!(beside.get(name), object.get(*name), "{name} of {names:?}");
            }
        }
    }

    #[test]
    fn objects_with_other_members_are_not_equal() {
        let object = json!({"a": 1, "b": 2});
        for (other, expected) in [
            (json!({"a": 1, "b": 2}), true),
            (json!({"b": 2, "a": 1}), true),
            (json!({"a": 1, "b": 3}), false),
            (json!({"a": 1, "c": 2}), false),
            (json!({"a": 1}), false),
        ] {
            assert_eq!(are_equal(fields(&object), fields(&other)), expected, "{other}");
        }
    }
}
