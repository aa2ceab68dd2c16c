//! Decodes bodies as the real server does: unknown and duplicate fields are reported, in the order
//! of the text, and otherwise ignored.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::map::{Entry, Map};
use serde_json::{Number, Value};

use super::expected::Expected;
use super::in_order::InOrder;
use super::repeated_keys::repeated_keys;
use super::report::Report;
use super::yaml;
use crate::go_json::replace_halves;

/// A decoded body, with the unknown and duplicate fields in it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// `unknown field "spec.bogus"`, `duplicate field "spec"`
    pub(crate) problems: Vec<String>,
}

/// Decodes JSON.
///
/// # Errors
///
/// Fails if the text is not JSON, or if it cannot be stored: a number is too large, or the nesting
/// too deep.
pub(crate) fn read_json(bytes: &[u8], expected: Expected) -> serde_json::Result<Decoded> {
    let text = lossy(bytes);
    read_text(&text, expected).or_else(|error| match replace_halves(text.as_bytes()) {
        Cow::Owned(text) => read_text(&String::from_utf8_lossy(&text), expected),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Reads JSON with the members in the order of the text. `None` for what
/// [`read_json`] does not read.
pub(crate) fn read_in_order(bytes: &[u8]) -> Option<InOrder> {
    let text = lossy(bytes);
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_slice(&replace_halves(text.as_bytes())))
        .ok()
}

/// Returns a text, in which invalid UTF-8 is replaced as Go does. Valid text, which is usual, is
/// checked faster than it is searched.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn read_text(text: &str, expected: Expected) -> serde_json::Result<Decoded> {
    let mut report = Report { is_brief: true, ..Report::default() };
    let seed = Seed { expected, report: &mut report };
    if let Ok(value) = homeostat_json::read(text, |reader| seed.deserialize(reader))
        && report.problems.is_empty()
    {
        return Ok(Decoded { value, problems: Vec::new() });
    }
    // The faster reader does not check what it skips, and its errors have no text.
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut report = Report::default();
    let value = Seed { expected, report: &mut report }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, problems: report.problems })
}

/// Decodes the first document of YAML, by the rules of YAML 1.1 as Go reads it: `yes` is true,
/// `010` is 8. Of a key that occurs twice the last value counts. As in Go, the result is decoded as
/// JSON with sorted members.
///
/// # Errors
///
/// Fails if the text is not YAML, or beyond the limits of aliases, nesting and size.
pub(crate) fn read_yaml(bytes: &[u8], expected: Expected) -> Result<Decoded, String> {
    let json = yaml_value(bytes)?.to_string();
    let mut decoded = read_json(json.as_bytes(), expected).map_err(|error| error.to_string())?;
    decoded.problems.splice(..0, repeated_keys(bytes));
    Ok(decoded)
}

/// Reads the first document of YAML. Of a key that occurs twice the last value counts.
///
/// # Errors
///
/// Fails if the text is not YAML, or beyond the limits of aliases, nesting and size.
pub(crate) fn yaml_value(bytes: &[u8]) -> Result<Value, String> {
    let seed = Seed { expected: Expected::Opaque, report: &mut Report::default() };
    yaml::decode(bytes, seed).map_err(|error| error.to_string())
}

struct Seed<'r> {
    expected: Expected,
    report: &'r mut Report,
}

// === impl Seed ===

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let expected = self.expected.item();
        let mut list = Vec::new();
        loop {
            let before = self.report.enter_item(list.len());
            let item = items.next_element_seed(Seed { expected, report: &mut *self.report });
            self.report.path.truncate(before);
            match item? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { expected, report } = self;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let before = report.enter(&name);
            let Some(inner) = expected.member(&name) else {
                report.add("unknown");
                members.next_value::<IgnoredAny>()?;
                report.path.truncate(before);
                continue;
            };
            let place = object.entry(name);
            if matches!(place, Entry::Occupied(_)) && expected.counts() {
                report.add("duplicate");
            }
            let value = members.next_value_seed(Seed { expected: inner, report: &mut *report })?;
            report.path.truncate(before);
            match place {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut place) => {
                    let first = place.get_mut().take();
                    place.insert(inner.overlay(first, value));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Types;
    use super::*;

    fn read(text: &str, kind: &str) -> Decoded {
        let kind = Types::all().of_kind("", "v1", kind).unwrap();
        read_json(text.as_bytes(), Expected::Kind(kind)).unwrap()
    }

    #[test]
    fn floating_point_number_is_read_to_the_last_bit() {
        for text in ["9007199254740991.0", "3.5e-308", "122.416294033786585", "0.1"] {
            let value = read_json(text.as_bytes(), Expected::Any).unwrap().value;
            assert_eq!(value.as_f64(), Some(text.parse::<f64>().unwrap()), "{text}");
        }
    }

    #[test]
    fn value_of_an_unknown_field_must_be_json() {
        let kind = Types::all().of_kind("", "v1", "Pod").unwrap();
        let read = |text: &str| read_json(text.as_bytes(), Expected::Kind(kind));
        let problems = read(r#"{"bogus": {"a": true}}"#).unwrap().problems;
        assert_eq!(problems, [r#"unknown field "bogus""#]);
        let error = read(r#"{"bogus": {"a": tru}}"#).unwrap_err();
        assert_eq!(error.to_string(), "expected ident at line 1 column 20");
    }

    #[test]
    fn unknown_fields_are_reported_in_the_order_of_the_text() {
        let body = read(
            r#"{"kind": "Pod", "spec": {"containers": [{"name": "c"},
            {"nam": 1, "resources": {"limits": {"cpu": 1}}}], "zz": {}},
                "aa": {"b": 1}, "metadata": {"labels": {"any": "thing"}}, "aa": 2}"#,
            "Pod",
        );
        let expected = [
            r#"unknown field "spec.containers[1].nam""#,
            r#"unknown field "spec.zz""#,
            r#"unknown field "aa""#,
        ];
        assert_eq!(body.problems, expected);
        assert_eq!(
            body.value["spec"]["containers"][1],
            json!({"resources": {"limits": {"cpu": 1}}})
        );
        assert_eq!(body.value.get("aa"), None);
    }

    #[test]
    fn duplicate_field_is_decoded_on_top_of_the_first() {
        let body = read(
            r#"{"metadata": {"name": "a"}, "spec": {
            "containers": [{"name": "c", "image": "i"}], "containers": [{"name": "d"}]},
                "metadata": {"labels": {"x": "1", "x": "2"}}}"#,
            "Pod",
        );
        let expected = [
            r#"duplicate field "spec.containers""#,
            r#"duplicate field "metadata.labels.x""#,
            r#"duplicate field "metadata""#,
        ];
        let mut found = body.problems.clone();
        found.sort();
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        assert_eq!(found, sorted);
        assert_eq!(body.value["metadata"], json!({"name": "a", "labels": {"x": "2"}}));
        assert_eq!(body.value["spec"]["containers"], json!([{"name": "d", "image": "i"}]));
    }
}
