//! Finds the member of a wrong type that Go's decoder reports, and makes its text.

use std::ops::ControlFlow;

use homeostat_quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use super::in_order::{InOrder, Tree};
use super::{Member, Shape, Type, Types};
use crate::fields::Fields;

/// A member of a wrong type.
#[derive(Debug)]
pub(crate) struct TypeMismatch {
    /// The text of the JSON decoder.
    pub(crate) decoded: String,
    /// The text of the conversion after a strategic merge patch.
    pub(crate) restored: String,
}

/// Returns the member of `object`, a `known`, that has a wrong type. It is the first one by name,
/// unless a type with a decoder of its own rejects another one.
pub(crate) fn wrong_member(known: &Type, object: &Fields) -> Option<TypeMismatch> {
    wrong_change(known, object, None)
}

/// Returns the member of `object`, a `known`, that has a wrong type, apart from what `old`, an
/// object with right types, has as well.
pub(crate) fn wrong_change(
    known: &Type,
    object: &Fields,
    old: Option<&Fields>,
) -> Option<TypeMismatch> {
    let mut first = None;
    let found = object.iter().try_for_each(|(name, value)| {
        let old = old.and_then(|old| old.get(name));
        check_member(known, (name, value), old, None, &mut first)
    });
    chosen(found, first)
}

/// Returns the member that has a wrong type: the first one in the order of the text, unless a type
/// with a decoder of its own rejects another one.
pub(crate) fn wrong_in_order(known: &Type, body: &InOrder) -> Option<TypeMismatch> {
    let mut first = None;
    let found = check_members(known, body, None, None, &mut first);
    chosen(found, first)
}

/// Chooses the mismatch that is reported. Go's decoder goes on after a wrong type, and reports the
/// first one in the end; but an error of a type with a decoder of its own ends it.
fn chosen(found: Found, first: Option<TypeMismatch>) -> Option<TypeMismatch> {
    match (found, first) {
        (ControlFlow::Break(last), Some(first)) => {
            Some(TypeMismatch { decoded: last.decoded, restored: first.restored })
        }
        (ControlFlow::Break(last), None) => Some(last),
        (ControlFlow::Continue(()), first) => first,
    }
}

/// The result of a check: `Break` if the decoder ends here.
type Found = ControlFlow<TypeMismatch>;

fn check_members<T: Tree>(
    known: &Type,
    object: &T,
    old: Option<&T>,
    parent: Option<&Place<'_>>,
    first: &mut Option<TypeMismatch>,
) -> Found {
    object.members().into_iter().flatten().try_for_each(|(name, value)| {
        let old = old.and_then(|old| old.member(name));
        check_member(known, (name, value), old, parent, first)
    })
}

fn check_member<T: Tree>(
    known: &Type,
    (name, value): (&str, &T),
    old: Option<&T>,
    parent: Option<&Place<'_>>,
    first: &mut Option<TypeMismatch>,
) -> Found {
    if old == Some(value) {
        return Found::Continue(());
    }
    let Some(member) = known.member(name) else { return Found::Continue(()) };
    let place = Place { known, member, parent };
    place.check(&member.shape, &member.go_type, (value, old), first)
}

/// A member, and the members that it is in.
struct Place<'a> {
    known: &'a Type,
    member: &'a Member,
    parent: Option<&'a Self>,
}

// === impl Place ===

impl Place<'_> {
    /// Returns the path of the member in messages: `spec.volumes.VolumeSource.secret`.
    fn path(&self) -> String {
        let mut path = self.parent.map(|parent| parent.path() + ".").unwrap_or_default();
        for outer in &self.member.embedded {
            path.push_str(outer);
            path.push('.');
        }
        path.push_str(self.member.name);
        path
    }

    fn check<T: Tree>(
        &self,
        shape: &Shape,
        go_type: &str,
        (value, old): (&T, Option<&T>),
        first: &mut Option<TypeMismatch>,
    ) -> Found {
        let known = value.value();
        match (shape, &*known) {
            (shape, known) if shape.has_expected_json_type(known) => Found::Continue(()),
            (Shape::Pointer(inner), _) => self.check(inner, go_type, (value, old), first),
            (Shape::Object(id), Value::Object(_)) => {
                check_members(Types::all().get(*id), value, old, Some(self), first)
            }
            (Shape::List(inner), Value::Array(_)) => {
                let go_type = inner.go_type_of_item(go_type);
                let mut items = value.items().into_iter().flatten();
                items.try_for_each(|item| self.check(inner, go_type, (item, None), first))
            }
            (Shape::Map(inner), Value::Object(_)) => {
                let go_type = inner.go_type_of_item(go_type);
                let mut members = value.members().into_iter().flatten();
                members.try_for_each(|(_, item)| self.check(inner, go_type, (item, None), first))
            }
            (shape, known) => match self.check_scalar(shape, go_type, known) {
                Some(wrong) if shape.has_decoder() => Found::Break(wrong),
                Some(wrong) => {
                    first.get_or_insert(wrong);
                    Found::Continue(())
                }
                None => Found::Continue(()),
            },
        }
    }

    fn check_scalar(&self, shape: &Shape, go_type: &str, value: &Value) -> Option<TypeMismatch> {
        match (shape, value) {
            (Shape::Quantity, value) => check_quantity(value),
            (Shape::Time, Value::String(text)) => check_time(text, "2006-01-02T15:04:05Z07:00"),
            (Shape::MicroTime, Value::String(text)) => {
                check_time(text, "2006-01-02T15:04:05.000000Z07:00")
            }
            (Shape::Time | Shape::MicroTime, value) => Some(self.mismatch(shape, "string", value)),
            (Shape::IntOrString, value) => Some(self.mismatch(shape, "int32", value)),
            (Shape::Bytes, Value::String(text)) => check_base64(text),
            (_, value) => Some(self.mismatch(shape, go_type, value)),
        }
    }

    fn mismatch(&self, shape: &Shape, go_type: &str, value: &Value) -> TypeMismatch {
        let (json, go) = match value {
            Value::Null => ("null".to_owned(), "interface"),
            Value::Bool(_) => ("bool".to_owned(), "bool"),
            Value::Number(number) => {
                let is_shown = go_type.starts_with("int");
                let json = if is_shown { format!("number {number}") } else { "number".to_owned() };
                (json, if number.is_f64() { "float64" } else { "int64" })
            }
            Value::String(_) => ("string".to_owned(), "string"),
            Value::Array(_) => ("array".to_owned(), "slice"),
            Value::Object(_) => ("object".to_owned(), "map"),
        };
        let (owner, path) = (self.known.name, self.path());
        let decoded = format!(
            "json: cannot unmarshal {json} into Go struct field {owner}.{path} of type {go_type}"
        );
        let restored = match shape {
            Shape::Object(_) => format!("cannot restore struct from: {go}"),
            Shape::List(_) => format!("cannot restore slice from {go}"),
            Shape::Map(_) => format!("cannot restore map from {go}"),
            Shape::Time | Shape::MicroTime | Shape::IntOrString => {
                format!("json: cannot unmarshal {json} into Go value of type {go_type}")
            }
            _ if value.is_number() => format!("cannot convert {go} to {go_type}"),
            Shape::Text => "unrecognized type: string".to_owned(),
            _ => format!("unrecognized type: {go_type}"),
        };
        TypeMismatch { decoded, restored }
    }
}

fn check_quantity(value: &Value) -> Option<TypeMismatch> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let detail = text.trim().parse::<Quantity>().err()?.to_string();
    Some(TypeMismatch { decoded: detail.clone(), restored: detail })
}

fn fits(number: &serde_json::Number, shape: &Shape) -> bool {
    match (number.as_i64(), shape) {
        (Some(number), Shape::Int32 | Shape::IntOrString) => i32::try_from(number).is_ok(),
        (number, _) => number.is_some(),
    }
}

fn check_time(text: &str, layout: &str) -> Option<TypeMismatch> {
    if text.parse::<Timestamp>().is_ok() {
        return None;
    }
    let detail =
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\"");
    Some(TypeMismatch { decoded: detail.clone(), restored: detail })
}

fn check_base64(text: &str) -> Option<TypeMismatch> {
    use base64::engine::general_purpose::STANDARD;
    use base64::{DecodeError, Engine};
    let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let at = match STANDARD.decode(plain.as_bytes()) {
        Ok(_) => return None,
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _)) => at,
        Err(_) => plain.len() / 4 * 4,
    };
    let decoded = format!("illegal base64 data at input byte {at}");
    Some(TypeMismatch { restored: format!("error decoding from json: {decoded}"), decoded })
}

// === impl Shape ===

impl Shape {
    /// Returns whether the JSON type alone shows that the value fits.
    fn has_expected_json_type(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Self::Raw | Self::FieldsV1, _)
            | (Self::Text | Self::Duration | Self::IntOrString, Value::String(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Float, Value::Number(_)) => true,
            (Self::Int32 | Self::Int64 | Self::IntOrString, Value::Number(number)) => {
                fits(number, self)
            }
            _ => false,
        }
    }

    /// Returns whether the type has a decoder of its own, whose error ends the decoding.
    fn has_decoder(&self) -> bool {
        matches!(
            self,
            Self::Quantity | Self::IntOrString | Self::Time | Self::MicroTime | Self::Duration
        )
    }

    /// Returns Go's name for an item of a list or a map with the name `of_list`.
    fn go_type_of_item<'a>(&self, of_list: &'a str) -> &'a str {
        match of_list.strip_prefix("[]").or_else(|| of_list.strip_prefix("map[string]")) {
            Some(item) => item.trim_start_matches('*'),
            // A list or a map with a name of its own.
            None => match self {
                Self::Quantity => "resource.Quantity",
                Self::Text => "string",
                _ => of_list,
            },
        }
    }
}

#[cfg(test)]
mod tests;
