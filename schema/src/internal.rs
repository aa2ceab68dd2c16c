//! Objects in the server's own version, as messages show them: members with the names of Go, in
//! the order of its structs, and with those that are missing.
//!
//! `apiserver/control-plane/gen` writes the table. A line is a type, or, indented, a field of it:
//!
//! ```text
//! core.Container        a type
//!  Image image text     a field, the member of version v1 that it is made of, and its type
//!  labels? metadata.labels {}text      `?`: omitted if empty; the member of a member
//! ```
//!
//! The scalars are `text`, `bool`, `int` and `any` (encoded alike in both versions); `*`: a
//! pointer, `[]`: a list, `{}`: a map.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// A value of the server's own version, whose members have an order.
///
/// # Examples
///
/// ```
/// use homeostat_schema::InternalValue;
/// use serde_json::json;
///
/// let toleration = json!({"key": "a", "operator": "Exists"});
/// let shown = InternalValue::of("core.Toleration", &toleration).unwrap();
/// let lines = "{\n \"Key\": \"a\",\n \"Operator\": \"Exists\",\n \"Value\": \"\",\n \
///              \"Effect\": \"\",\n \"TolerationSeconds\": null\n}";
/// assert_eq!(shown.indented(), lines);
/// assert_eq!(shown.to_json()["TolerationSeconds"], json!(null));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum InternalValue {
    /// A text, a number, a boolean, null, or any value that both versions encode alike.
    Plain(Value),
    /// The items of a list.
    List(Vec<Self>),
    /// The members of an object, in their order.
    Object(Vec<(String, Self)>),
}

struct Field {
    name: &'static str,
    /// The path of the member in version v1.
    from: &'static str,
    shape: &'static str,
    omitted: bool,
}

type Table = HashMap<&'static str, Vec<Field>>;

// === impl InternalValue ===

impl InternalValue {
    /// Converts a value of version v1 to a type of the server's own version, such as
    /// `core.PodSpec`. Returns `None` if the type is unknown.
    pub fn of(type_name: &str, value: &Value) -> Option<Self> {
        fields_of(type_name).map(|fields| convert_object(fields, value))
    }

    /// Returns the value as JSON, which has no order of members.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), value.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the text of Go's `json.MarshalIndent` with an indentation of one space.
    pub fn indented(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    fn write(&self, into: &mut String, depth: usize) {
        match self {
            Self::Plain(Value::Array(items)) => {
                let items = items.iter().cloned().map(Self::Plain);
                Self::List(items.collect()).write(into, depth);
            }
            Self::Plain(Value::Object(members)) => {
                let members = members.iter();
                let members =
                    members.map(|(name, value)| (name.clone(), Self::Plain(value.clone())));
                Self::Object(members.collect()).write(into, depth);
            }
            Self::Plain(value) => into.push_str(&escaped(&value.to_string())),
            Self::List(items) if items.is_empty() => into.push_str("[]"),
            Self::Object(members) if members.is_empty() => into.push_str("{}"),
            Self::List(items) => {
                into.push('[');
                for (at, item) in items.iter().enumerate() {
                    start_line(into, at > 0, depth + 1);
                    item.write(into, depth + 1);
                }
                start_line(into, false, depth);
                into.push(']');
            }
            Self::Object(members) => {
                into.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    start_line(into, at > 0, depth + 1);
                    into.push_str(&escaped(&json!(name).to_string()));
                    into.push_str(": ");
                    value.write(into, depth + 1);
                }
                start_line(into, false, depth);
                into.push('}');
            }
        }
    }
}

fn start_line(into: &mut String, after_another: bool, depth: usize) {
    into.push_str(if after_another { ",\n" } else { "\n" });
    into.extend(std::iter::repeat_n(' ', depth));
}

/// Escapes what Go escapes in JSON for the sake of HTML.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

fn convert_object(fields: &[Field], value: &Value) -> InternalValue {
    let member = |field: &Field| {
        let found = find(value, field.from);
        let is_omitted = field.omitted && is_empty(found);
        (!is_omitted).then(|| (field.name.to_owned(), convert(field.shape, found)))
    };
    InternalValue::Object(fields.iter().filter_map(member).collect())
}

fn find<'a>(value: &'a Value, path: &str) -> &'a Value {
    let mut found = value;
    for part in path.split('.') {
        found = found.get(part).unwrap_or(&Value::Null);
    }
    found
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
    }
}

fn convert(shape: &str, value: &Value) -> InternalValue {
    if let Some(inner) = shape.strip_prefix('*') {
        return match value {
            Value::Null => InternalValue::Plain(Value::Null),
            value => convert(inner, value),
        };
    }
    if let Some(inner) = shape.strip_prefix("[]") {
        return match value {
            Value::Array(items) => {
                InternalValue::List(items.iter().map(|item| convert(inner, item)).collect())
            }
            _ => InternalValue::Plain(Value::Null),
        };
    }
    if let Some(inner) = shape.strip_prefix("{}") {
        return match value {
            Value::Object(members) => {
                let convert =
                    |(name, value): (&String, &Value)| (name.clone(), convert(inner, value));
                InternalValue::Object(members.iter().map(convert).collect())
            }
            _ => InternalValue::Plain(Value::Null),
        };
    }
    let zero = match (shape, value) {
        ("text", Value::Null) => json!(""),
        ("bool", Value::Null) => json!(false),
        ("int", Value::Null) => json!(0),
        (shape, value) => match fields_of(shape) {
            Some(fields) => return convert_object(fields, value),
            None => value.clone(),
        },
    };
    InternalValue::Plain(zero)
}

fn fields_of(type_name: &str) -> Option<&'static [Field]> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| parse(include_str!("../table/internal.txt")));
    TABLE.get(type_name).map(Vec::as_slice)
}

fn parse(text: &'static str) -> Table {
    let mut table = Table::new();
    let mut last = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(field) = line.strip_prefix(' ') else {
            last = line;
            table.entry(last).or_default();
            continue;
        };
        let mut words = field.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (name, from, shape) = (word(), word(), word());
        let omitted = name.ends_with('?');
        let name = name.trim_end_matches('?');
        table.entry(last).or_default().push(Field { name, from, shape, omitted });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(type_name: &str, value: &Value) -> InternalValue {
        InternalValue::of(type_name, value).unwrap()
    }

    #[test]
    fn every_type_of_a_field_is_known() {
        let table = parse(include_str!("../table/internal.txt"));
        assert!(table.len() > 100, "{}", table.len());
        for field in table.values().flatten() {
            let inner = field.shape.trim_start_matches(['*', '[', ']', '{', '}']);
            let is_scalar = ["text", "bool", "int", "any"].contains(&inner);
            assert!(is_scalar || table.contains_key(inner), "{inner}");
        }
        assert!(InternalValue::of("core.Nothing", &json!({})).is_none());
    }

    #[test]
    fn missing_members_are_shown_and_empty_metadata_is_not() {
        let template = json!({
            "metadata": {"labels": {"a": "b"}, "creationTimestamp": null},
            "spec": {"containers": [{"name": "c"}], "serviceAccountName": "s"},
        });
        let template = shown("core.PodTemplateSpec", &template);
        let InternalValue::Object(members) = &template else { panic!("{template:?}") };
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["labels", "Spec"]);
        let spec = &template.to_json()["Spec"];
        assert_eq!(spec["Containers"][0]["Resources"]["Limits"], json!(null));
        assert_eq!(spec["Containers"][0]["Stdin"], json!(false));
        assert_eq!(spec["DeprecatedServiceAccount"], "s");
        assert_eq!(spec["Volumes"], json!(null));
    }

    #[test]
    fn text_is_that_of_go() {
        let port = json!({"name": "a<b", "ports": [], "args": ["&"]});
        let lines = shown("core.Container", &port).indented();
        assert!(lines.starts_with("{\n \"Name\": \"a\\u003cb\",\n"), "{lines}");
        assert!(lines.contains("\n \"Args\": [\n  \"\\u0026\"\n ],\n"), "{lines}");
        assert!(lines.contains("\n \"Ports\": [],\n"), "{lines}");
    }
}
