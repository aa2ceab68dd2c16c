//! Decodes bodies as the real server does: unknown and duplicate fields are reported, in the order
//! of the text, and otherwise ignored.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use homeostat_core::go_quote;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::in_order::InOrder;
use super::{Shape, Type, Types, repeated_keys};
use crate::go_json::replace_halves;
use crate::object::Name;

/// The expected type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// An object of a kind, with `kind` and `apiVersion`.
    Kind(&'static Type),
    /// An object with known members.
    Members(&'static Type),
    /// An object with only its metadata known.
    Custom,
    Texts(&'static [&'static str]),
    List(&'static Shape),
    Operations,
    Map(&'static Shape),
    /// Any value; duplicate fields are reported.
    Any,
    /// Any value; its content is not checked.
    Opaque,
}

/// A decoded body, with the unknown and duplicate fields in it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// `unknown field "spec.bogus"`, `duplicate field "spec"`
    pub(crate) problems: Vec<String>,
}

/// The members of a JSON patch operation.
const OPERATION: &[&str] = &["op", "from", "path", "value"];
/// The largest number of reported fields.
const MAX_PROBLEMS: usize = 100;

/// Decodes JSON.
///
/// # Errors
///
/// Fails if the text is not JSON, or if it cannot be stored: a number is too large, or the nesting
/// too deep.
pub(crate) fn read_json(bytes: &[u8], expected: Expected) -> serde_json::Result<Decoded> {
    // Go replaces invalid UTF-8, too.
    let text = String::from_utf8_lossy(bytes);
    read_text(&text, expected).or_else(|error| match replace_halves(text.as_bytes()) {
        Cow::Owned(text) => read_text(&String::from_utf8_lossy(&text), expected),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Reads JSON with the members in the order of the text. `None` for what
/// [`read_json`] does not read.
pub(crate) fn read_in_order(bytes: &[u8]) -> Option<InOrder> {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_slice(&replace_halves(text.as_bytes())))
        .ok()
}

fn read_text(text: &str, expected: Expected) -> serde_json::Result<Decoded> {
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
    let text = String::from_utf8_lossy(bytes);
    let seed = Seed { expected: Expected::Opaque, report: &mut Report::default() };
    let value = serde_saphyr::with_deserializer_from_str_with_options(
        first_document(&text),
        yaml_options(),
        |deserializer| seed.deserialize(deserializer),
    );
    value.map_err(|error| error.to_string())
}

pub(super) fn yaml_options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options.legacy_octal_numbers = true;
    options.with_snippet = false;
    options
}

/// Returns the text up to the line that starts a second document.
pub(super) fn first_document(text: &str) -> &str {
    let from = if text.starts_with("---") { 3 } else { 0 };
    let end = text[from..].find("\n---").map_or(text.len(), |end| from + end + 1);
    &text[..end]
}

/// Returns the members of an object that its kind does not know, sorted by name. `old` is an object
/// that has none.
pub(crate) fn unknown_members(
    kind: &'static Type,
    object: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
) -> Vec<String> {
    // Most objects have none. Then the path to each member would be made for nothing.
    if Expected::Kind(kind).knows(object, old) {
        return Vec::new();
    }
    unknown_of(Expected::Kind(kind), String::new(), object)
}

/// Returns the unknown members of the metadata of a custom object.
pub(crate) fn unknown_metadata(object: &Map<String, Value>) -> Vec<String> {
    unknown_of(Expected::Custom, String::new(), object)
}

/// Returns the members of a value at a path that its type does not know.
pub(crate) fn unknown_below(
    path: String,
    known: &'static Type,
    value: &Map<String, Value>,
) -> Vec<String> {
    unknown_of(Expected::Members(known), path, value)
}

fn unknown_of(expected: Expected, path: String, value: &Map<String, Value>) -> Vec<String> {
    let mut report = Report { path, ..Report::default() };
    report.look(expected, value);
    report.problems
}

/// Returns whether a text may have an object with two members of one name: only JSON is known.
pub(crate) fn may_repeat_members(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).map_or(true, |Repeats(repeats)| repeats)
}

/// True if an object within a value has two members of one name.
struct Repeats(bool);

/// Collects the reported fields, and tracks the reader's path.
#[derive(Debug, Default)]
struct Report {
    path: String,
    problems: Vec<String>,
}

struct Seed<'r> {
    expected: Expected,
    report: &'r mut Report,
}

// === impl Expected ===

impl Expected {
    fn of(shape: &'static Shape) -> Self {
        match shape {
            Shape::Object(id) => {
                let known = Types::all().get(*id);
                // The only kind that another kind has a list of.
                if known.name == "PersistentVolumeClaim" {
                    Self::Kind(known)
                } else {
                    Self::Members(known)
                }
            }
            Shape::Pointer(inner) => Self::of(inner),
            Shape::List(inner) => Self::List(inner),
            Shape::Map(inner) => Self::Map(inner),
            _ => Self::Opaque,
        }
    }

    /// Returns the expected type of a member; `None` if there is no such member.
    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Kind(_) if matches!(name, "kind" | "apiVersion") => Some(Self::Opaque),
            Self::Kind(known) | Self::Members(known) => {
                known.member(name).map(|member| Self::of(&member.shape))
            }
            Self::Custom if name == "metadata" => Some(Self::Members(Types::all().metadata())),
            Self::Texts(names) => {
                let inner = if name == "value" { Self::Any } else { Self::Opaque };
                names.contains(&name).then_some(inner)
            }
            Self::Map(shape) => Some(Self::of(shape)),
            Self::Custom | Self::Any => Some(Self::Any),
            Self::List(_) | Self::Operations | Self::Opaque => Some(Self::Opaque),
        }
    }

    /// Returns whether each member is known, also those within. Those of `old` are.
    fn knows(self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> bool {
        object.iter().all(|(name, value)| {
            let old = old.and_then(|old| old.get(name));
            old == Some(value)
                || self.member(name).is_some_and(|expected| expected.knows_value(value, old))
        })
    }

    fn knows_value(self, value: &Value, old: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Opaque | Self::Any, _) => true,
            (expected, Value::Object(object)) => {
                expected.knows(object, old.and_then(Value::as_object))
            }
            (expected, Value::Array(items)) => {
                items.iter().all(|item| expected.item().knows_value(item, None))
            }
            _ => true,
        }
    }

    fn item(self) -> Self {
        match self {
            Self::List(shape) => Self::of(shape),
            Self::Operations => Self::Texts(OPERATION),
            Self::Any => Self::Any,
            _ => Self::Opaque,
        }
    }

    /// Returns whether a duplicate member is reported.
    fn counts(self) -> bool {
        !matches!(self, Self::Opaque)
    }

    /// Returns the value of a duplicate member: Go decodes the second on top of the first.
    fn overlay(self, first: Value, second: Value) -> Value {
        match (self, first, second) {
            (Self::Kind(_) | Self::Members(_), Value::Object(mut first), Value::Object(second)) => {
                for (name, value) in second {
                    let value = match (first.remove(&name), self.member(&name)) {
                        (Some(before), Some(expected)) => expected.overlay(before, value),
                        _ => value,
                    };
                    first.insert(name, value);
                }
                Value::Object(first)
            }
            (Self::Map(_), Value::Object(mut first), Value::Object(second)) => {
                first.extend(second);
                Value::Object(first)
            }
            (Self::List(_), Value::Array(first), Value::Array(second)) => {
                let mut first = first.into_iter();
                let overlay = |value| match first.next() {
                    Some(before) => self.item().overlay(before, value),
                    None => value,
                };
                second.into_iter().map(overlay).collect()
            }
            (_, _, second) => second,
        }
    }
}

// === impl Report ===

impl Report {
    fn add(&mut self, what: &str) {
        let text = format!("{what} field {}", go_quote(&self.path));
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// Enters a member, and returns the previous length of the path.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        before
    }

    fn enter_item(&mut self, at: usize) -> usize {
        let before = self.path.len();
        write!(self.path, "[{at}]").expect("writing to a String does not fail");
        before
    }

    fn look(&mut self, expected: Expected, object: &Map<String, Value>) {
        for (name, value) in object {
            let before = self.enter(name);
            match expected.member(name) {
                None => self.add("unknown"),
                Some(expected) => self.look_at(expected, value),
            }
            self.path.truncate(before);
        }
    }

    fn look_at(&mut self, expected: Expected, value: &Value) {
        match (expected, value) {
            (Expected::Opaque | Expected::Any, _) => {}
            (expected, Value::Object(object)) => self.look(expected, object),
            (expected, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let before = self.enter_item(at);
                    self.look_at(expected.item(), item);
                    self.path.truncate(before);
                }
            }
            _ => {}
        }
    }
}

// === impl Repeats ===

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatsVisitor)
    }
}

struct RepeatsVisitor;

impl<'de> Visitor<'de> for RepeatsVisitor {
    type Value = Repeats;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_unit<E>(self) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Repeats, A::Error> {
        let mut found = false;
        while let Some(Repeats(repeats)) = items.next_element()? {
            found |= repeats;
        }
        Ok(Repeats(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Repeats, A::Error> {
        let mut names: Vec<Name<'de>> = Vec::new();
        let mut found = false;
        while let Some((name, Repeats(repeats))) = members.next_entry()? {
            found |= repeats;
            names.push(name);
        }
        names.sort_unstable();
        Ok(Repeats(found || names.windows(2).any(|pair| pair[0] == pair[1])))
    }
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
            let first = object.remove(&name);
            if first.is_some() && expected.counts() {
                report.add("duplicate");
            }
            let value = members.next_value_seed(Seed { expected: inner, report: &mut *report })?;
            report.path.truncate(before);
            let value = match first {
                Some(first) => inner.overlay(first, value),
                None => value,
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, kind: &str) -> Decoded {
        let kind = Types::all().of_kind("", "v1", kind).unwrap();
        read_json(text.as_bytes(), Expected::Kind(kind)).unwrap()
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
    fn unknown_member_is_found_beside_those_that_stay() {
        let pod = Types::all().of_kind("", "v1", "Pod").unwrap();
        let fields = |value: Value| value.as_object().unwrap().clone();
        let old = fields(json!({"spec": {"nodeName": "a", "containers": [{"name": "c"}]}}));
        let unknown = |spec: Value| unknown_members(pod, &fields(spec), Some(&old));
        assert_eq!(unknown(json!({"spec": {"nodeName": "b", "containers": []}})), [""; 0]);
        let added = unknown(json!({"spec": {"nodeName": "a", "node": 1}}));
        assert_eq!(added, [r#"unknown field "spec.node""#]);
        let within = unknown(json!({"spec": {"containers": [{"name": "c", "image2": ""}]}}));
        assert_eq!(within, [r#"unknown field "spec.containers[0].image2""#]);
    }

    #[test]
    fn repeated_members_are_found_at_any_depth() {
        for (text, repeats) in [
            (r#"{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]}"#, false),
            (r#"{"b": 1, "a": 2, "b": 3}"#, true),
            (r#"{"c": [{"x": {"a": null, "\u0061": true}}]}"#, true),
            (r#"[1.5, "text", {"a": {}, "a": {}}]"#, true),
        ] {
            assert_eq!(may_repeat_members(text.as_bytes()), repeats, "{text}");
        }
        assert!(may_repeat_members(b"{\"\xff\": 1}"), "the replacement may be there twice");
        assert!(may_repeat_members(b"a: 1"), "YAML may have it twice");
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
