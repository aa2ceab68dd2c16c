//! Reads a body as the real server's decoder does: members that nobody knows and members that stand twice are reported, in
//! the order of the text, and do no harm otherwise.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Shape, Type, Types};

/// What is expected somewhere in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// An object of a kind: its members, its `kind` and its `apiVersion`.
    Kind(&'static Type),
    /// An object whose members are known.
    Members(&'static Type),
    /// An object of which only the metadata is known.
    Custom,
    Texts(&'static [&'static str]),
    List(&'static Shape),
    Operations,
    Map(&'static Shape),
    /// Anything; what stands twice is reported.
    Any,
    /// Anything; nobody looks inside.
    Opaque,
}

/// What a body holds, and what is odd about it.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) value: Value,
    /// `unknown field "spec.bogus"`, `duplicate field "spec"`
    pub(crate) oddities: Vec<String>,
}

/// The members of one operation of a JSON patch.
const OPERATION: &[&str] = &["op", "from", "path", "value"];
/// So many oddities are reported at most.
const MOST: usize = 100;

/// Reads JSON.
///
/// # Errors
///
/// It is none, or says something that cannot be kept: a number beyond all bounds, a nesting without end.
pub(crate) fn read_json(bytes: &[u8], expected: Expected) -> serde_json::Result<Body> {
    // What is no UTF-8 Go replaces, too.
    let text = String::from_utf8_lossy(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let mut report = Report::default();
    let value = Seed { expected, report: &mut report }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Body { value, oddities: report.oddities })
}

/// The members of an object of a kind that nobody knows, in the order of their names.
pub(crate) fn unknown_members(kind: &'static Type, object: &Map<String, Value>) -> Vec<String> {
    let mut report = Report::default();
    report.look(Expected::Kind(kind), object);
    report.oddities
}

/// Collects what is odd, and knows where in the body the reader is.
#[derive(Debug, Default)]
struct Report {
    path: String,
    oddities: Vec<String>,
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
                // The one kind that another has a list of.
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

    /// What is expected of a member; none if there is no such member.
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

    fn item(self) -> Self {
        match self {
            Self::List(shape) => Self::of(shape),
            Self::Operations => Self::Texts(OPERATION),
            Self::Any => Self::Any,
            _ => Self::Opaque,
        }
    }

    /// Whether a member that stands twice is reported.
    fn counts(self) -> bool {
        !matches!(self, Self::Opaque)
    }

    /// What a member becomes that stands a second time: Go reads it on top of the first.
    fn on_top(self, first: Value, second: Value) -> Value {
        match (self, first, second) {
            (Self::Kind(_) | Self::Members(_), Value::Object(mut first), Value::Object(second)) => {
                for (name, value) in second {
                    let value = match (first.remove(&name), self.member(&name)) {
                        (Some(before), Some(expected)) => expected.on_top(before, value),
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
                let on_top = |value| match first.next() {
                    Some(before) => self.item().on_top(before, value),
                    None => value,
                };
                second.into_iter().map(on_top).collect()
            }
            (_, _, second) => second,
        }
    }
}

// === impl Report ===

impl Report {
    fn add(&mut self, what: &str) {
        let text = format!("{what} field {}", quote(&self.path));
        if self.oddities.len() < MOST && !self.oddities.contains(&text) {
            self.oddities.push(text);
        }
    }

    /// Steps down to a member, and gives back where it was.
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

/// The text as a Go literal.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                write!(quoted, "\\x{:02x}", u32::from(c))
                    .expect("writing to a String does not fail");
            }
            c if c.is_control() || (c != ' ' && c.is_whitespace()) => {
                write!(quoted, "\\u{:04x}", u32::from(c))
                    .expect("writing to a String does not fail");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
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
                Some(first) => inner.on_top(first, value),
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

    fn read(text: &str, kind: &str) -> Body {
        let kind = Types::all().of_kind("", kind).unwrap();
        read_json(text.as_bytes(), Expected::Kind(kind)).unwrap()
    }

    #[test]
    fn what_nobody_knows_is_reported_in_the_order_of_the_text() {
        let body = read(
            r#"{"kind": "Pod", "spec": {"containers": [{"name": "c"}, {"nam": 1, "resources": {"limits": {"cpu": 1}}}], "zz": {}},
                "aa": {"b": 1}, "metadata": {"labels": {"any": "thing"}}, "aa": 2}"#,
            "Pod",
        );
        let expected = [
            r#"unknown field "spec.containers[1].nam""#,
            r#"unknown field "spec.zz""#,
            r#"unknown field "aa""#,
        ];
        assert_eq!(body.oddities, expected);
        assert_eq!(
            body.value["spec"]["containers"][1],
            json!({"resources": {"limits": {"cpu": 1}}})
        );
        assert_eq!(body.value.get("aa"), None);
    }

    #[test]
    fn what_stands_twice_is_read_on_top_of_the_first() {
        let body = read(
            r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], "containers": [{"name": "d"}]},
                "metadata": {"labels": {"x": "1", "x": "2"}}}"#,
            "Pod",
        );
        let expected = [
            r#"duplicate field "spec.containers""#,
            r#"duplicate field "metadata.labels.x""#,
            r#"duplicate field "metadata""#,
        ];
        let mut found = body.oddities.clone();
        found.sort();
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        assert_eq!(found, sorted);
        assert_eq!(body.value["metadata"], json!({"name": "a", "labels": {"x": "2"}}));
        assert_eq!(body.value["spec"]["containers"], json!([{"name": "d", "image": "i"}]));
    }

    #[test]
    fn names_are_quoted_as_go_quotes_them() {
        assert_eq!(quote("a\"b\\c\td\u{1}é\u{a0}"), "\"a\\\"b\\\\c\\td\\x01é\\u00a0\"");
    }
}
