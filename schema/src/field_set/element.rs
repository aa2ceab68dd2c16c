//! [`PathElement`]: one step from an object to a value in it.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::order::compare_values;

/// One step of a path: a field, or an item of a list.
///
/// Elements sort as upstream's: fields, keys, values, indexes.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A member of an object (`f:name`).
    Field(SmolStr),
    /// The item of a list of type `map` with these keys, sorted by name (`k:{"name":"app"}`).
    Key(Box<[(SmolStr, Value)]>),
    /// The item of a list of type `set` (`v:"example.com/finalizer"`).
    Value(Box<Value>),
    /// The item at an index (`i:0`). The server writes none.
    Index(i64),
}

/// The reason why a text is not a path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathElementError {
    /// The text is shorter than its type and a colon.
    #[error("key must be 2 characters long:")]
    TooShort,
    /// The second character is not a colon.
    #[error("missing colon: {0}")]
    MissingColon(String),
    /// The type is not `f`, `k`, `v` or `i`. Readers drop such elements.
    #[error("unknown path element type")]
    UnknownType,
    /// The part behind the colon is not what the type needs.
    #[error("invalid path element {element}: {reason}")]
    Invalid {
        /// The complete text.
        element: String,
        /// The error of the JSON or integer parser.
        reason: String,
    },
}

/// Shows a value as upstream's messages do: JSON, except for maps.
struct Shown<'a>(&'a Value);

// === impl PathElement ===

impl PathElement {
    /// Returns the element for the field `name`.
    pub fn field(name: impl Into<SmolStr>) -> Self {
        Self::Field(name.into())
    }

    /// Returns the element for the list item with these keys.
    pub fn key<N: Into<SmolStr>>(keys: impl IntoIterator<Item = (N, Value)>) -> Self {
        let mut keys: Vec<_> = keys.into_iter().map(|(name, value)| (name.into(), value)).collect();
        keys.sort_by(|(a, _): &(SmolStr, Value), (b, _)| a.cmp(b));
        Self::Key(keys.into())
    }

    /// Returns the element for the item `value` of a set.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::Value(Box::new(value.into()))
    }

    /// Reads the text form of `FieldsV1`: `f:spec`, `k:{"name":"app"}`, `v:"a"` or `i:0`.
    ///
    /// # Errors
    ///
    /// If the text is not a path element.
    pub fn parse(text: &str) -> Result<Self, PathElementError> {
        if text.len() < 2 {
            return Err(PathElementError::TooShort);
        }
        if text.as_bytes()[1] != b':' {
            return Err(PathElementError::MissingColon(text.to_owned()));
        }
        let content = &text[2..];
        let invalid = |reason: String| PathElementError::Invalid { element: text.into(), reason };
        match text.as_bytes()[0] {
            b'f' => Ok(Self::field(content)),
            b'v' => {
                let value: Value =
                    serde_json::from_str(content).map_err(|e| invalid(e.to_string()))?;
                Ok(Self::value(value))
            }
            b'k' => {
                let keys: Map<String, Value> =
                    serde_json::from_str(content).map_err(|e| invalid(e.to_string()))?;
                Ok(Self::key(keys))
            }
            b'i' => content.parse().map(Self::Index).map_err(|e| invalid(e.to_string())),
            _ => Err(PathElementError::UnknownType),
        }
    }

    /// Returns the text form of `FieldsV1`.
    pub fn to_fields_v1(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(keys) => key_text(keys),
            Self::Value(value) => ["v:", &go_json(value)].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// Shows the element as upstream's messages do: `.spec`, `[name="app"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys = keys.iter().map(|(name, value)| format!("{name}={}", Shown(value)));
                write!(f, "[{}]", join(keys))
            }
            Self::Value(value) => write!(f, "[={}]", Shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => a
                .iter()
                .zip(b)
                .map(|((name_a, a), (name_b, b))| {
                    name_a.cmp(name_b).then_with(|| compare_values(a, b))
                })
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Returns the text form of the element with these keys.
fn key_text(keys: &[(SmolStr, Value)]) -> String {
    let mut text = String::from("k:{");
    for (at, (key, value)) in keys.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&go_json(key.as_str()));
        text.push(':');
        text.push_str(&go_json(value));
    }
    text.push('}');
    text
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// Returns the value as Go's JSON encoder writes it: safe inside HTML.
fn go_json<T: Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("texts and values are JSON");
    // The line separators start with the byte 0xe2.
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

// === impl Shown ===

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(fields) => {
                fields.iter().try_for_each(|(name, value)| write!(f, "{name}={}", Self(value)))
            }
            Value::Array(items) => {
                write!(f, "[{}]", join(items.iter().map(|item| Shown(item).to_string())))
            }
            scalar => scalar.fmt(f),
        }
    }
}
