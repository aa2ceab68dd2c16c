//! The types that a decoded body and its members should have.

use serde_json::{Map, Value};

use super::{Shape, Type, Types};
use crate::fields::Beside;

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

/// The members of a JSON patch operation.
const OPERATION: &[&str] = &["op", "from", "path", "value"];

// === impl Expected ===

impl Expected {
    fn of(shape: &'static Shape) -> Self {
        match shape {
            Shape::Object(id) => {
                let known = Types::all().get(*id);
                // The only kinds that are members of another kind.
                if matches!(known.name, "PersistentVolumeClaim" | "DeleteOptions") {
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
    pub(super) fn member(self, name: &str) -> Option<Self> {
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

    /// Returns true if each member is known, also those within. Those of `old` are.
    pub(super) fn knows(
        self,
        object: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
    ) -> bool {
        let mut beside = old.map(Beside::new);
        object.iter().all(|(name, value)| {
            let old = beside.as_mut().and_then(|old| old.get(name));
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

    pub(super) fn item(self) -> Self {
        match self {
            Self::List(shape) => Self::of(shape),
            Self::Operations => Self::Texts(OPERATION),
            Self::Any => Self::Any,
            _ => Self::Opaque,
        }
    }

    /// Returns true if a duplicate member is reported.
    pub(super) fn counts(self) -> bool {
        !matches!(self, Self::Opaque)
    }

    /// Returns the value of a duplicate member: Go decodes the second on top of the first.
    pub(super) fn overlay(self, first: Value, second: Value) -> Value {
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
