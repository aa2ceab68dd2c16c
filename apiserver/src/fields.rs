//! Parsed JSON objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A parsed JSON object.
pub(crate) type Fields = Map<String, Value>;

/// Returns the value at a path such as `spec.nodeName`.
pub(crate) fn read_path<'a>(object: &'a Fields, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = object.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Returns whether an update leaves these members as they are stored; false for a new object.
///
/// They need no second check: they passed it when they were stored.
pub(crate) fn are_kept(new: &Fields, old: Option<&Fields>, paths: &[&str]) -> bool {
    let is_kept = |old, path: &&str| read_path(new, path) == read_path(old, path);
    old.is_some_and(|old| paths.iter().all(|path| is_kept(old, path)))
}

/// Writes numbers without a fraction as integers, as Go does when it encodes an object without a
/// type: `1.0` is 1.
pub(crate) fn shorten_numbers<'a>(values: impl IntoIterator<Item = &'a mut Value>) {
    for value in values {
        match value {
            Value::Object(members) => shorten_numbers(members.values_mut()),
            Value::Array(elements) => shorten_numbers(elements),
            Value::Number(number) if number.is_f64() => {
                let whole = number.as_f64().filter(|number| number.fract() == 0.0);
                if let Some(Ok(whole)) = whole.map(|whole| format!("{whole:.0}").parse::<i64>()) {
                    *number = whole.into();
                }
            }
            _ => {}
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_without_a_fraction_are_integers() {
        let mut value = json!({"a": [1.0, -2e2, {"b": -0.0}], "c": 1.5, "d": 1e300, "e": "1.0"});
        shorten_numbers([&mut value]);
        let expected = json!({"a": [1, -200, {"b": 0}], "c": 1.5, "d": 1e300, "e": "1.0"});
        assert_eq!(value, expected);
    }
}
