//! Finds the member of a wrong type that Go's decoder reports, and makes its text.

use std::ops::ControlFlow;

use homeostat_quantity::Quantity;
use serde_json::Value;

use super::go_time::{self, Layout};
use super::in_order::{InOrder, Tree};
use super::{Member, Shape, Type, Types};
use crate::fields::{Beside, Fields};
use crate::go_json::is_minus_zero;

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
    let mut search = Search::new(Order::Text);
    let mut beside = old.map(Beside::new);
    let found = object.iter().try_for_each(|(name, value)| {
        let old = beside.as_mut().and_then(|old| old.get(name));
        check_member(known, (name, value), old, None, &mut search)
    });
    let wrong = chosen(found, search.first)?;
    let restored = wrong_by_definition(known, object, old).unwrap_or(wrong.restored);
    Some(TypeMismatch { decoded: wrong.decoded, restored })
}

/// Returns the text of the conversion: it ends at the first member of a wrong type in the order in
/// which Go defines the members.
fn wrong_by_definition(known: &Type, object: &Fields, old: Option<&Fields>) -> Option<String> {
    let mut search = Search::new(Order::Definition);
    let found = names_by_definition(known).try_for_each(|name| {
        let Some(value) = object.get(name) else { return Found::Continue(()) };
        let old = old.and_then(|old| old.get(name));
        check_member(known, (name, value), old, None, &mut search)
    });
    Some(found.break_value()?.restored)
}

fn names_by_definition(known: &Type) -> impl Iterator<Item = &'static str> {
    homeostat_schema::built_in::field_names(known.full_name).iter().copied()
}

/// Returns the member that has a wrong type: the first one in the order of the text, unless a type
/// with a decoder of its own rejects another one.
pub(crate) fn wrong_in_order(known: &Type, body: &InOrder) -> Option<TypeMismatch> {
    let mut search = Search::new(Order::Text);
    let found = check_members(known, body, None, None, &mut search);
    chosen(found, search.first)
}

/// Chooses the mismatch that is reported. Go's decoder goes on after a wrong type, and reports the
/// first one in the end; but an error of a type with a decoder of its own ends it.
fn chosen(found: Found, first: Option<TypeMismatch>) -> Option<TypeMismatch> {
    match (found, first) {
        (ControlFlow::Break(last), _) => Some(last),
        (ControlFlow::Continue(()), first) => first,
    }
}

/// The result of a check: `Break` if the decoder ends here.
type Found = ControlFlow<TypeMismatch>;

/// The search for the member that is reported.
struct Search {
    order: Order,
    /// The first mismatch after which the decoder goes on.
    first: Option<TypeMismatch>,
}

/// The order in which the members of an object are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The order of the text, or of the names if the text is not known.
    Text,
    /// The order of Go's struct. The first mismatch ends the decoding.
    Definition,
}

fn check_members<T: Tree>(
    known: &Type,
    object: &T,
    old: Option<&T>,
    parent: Option<&Place<'_>>,
    search: &mut Search,
) -> Found {
    let order = search.order;
    let check = |(name, value)| {
        let old = old.and_then(|old| old.member(name));
        check_member(known, (name, value), old, parent, search)
    };
    match order {
        Order::Text => object.members().into_iter().flatten().try_for_each(check),
        Order::Definition => names_by_definition(known)
            .filter_map(|name| Some((name, object.member(name)?)))
            .try_for_each(check),
    }
}

fn check_member<T: Tree>(
    known: &Type,
    (name, value): (&str, &T),
    old: Option<&T>,
    parent: Option<&Place<'_>>,
    search: &mut Search,
) -> Found {
    if old == Some(value) {
        return Found::Continue(());
    }
    let Some(member) = known.member(name) else { return Found::Continue(()) };
    let place = Place { known, member, parent };
    place.check(&member.shape, &member.go_type, (value, old), search)
}

// === impl Search ===

impl Search {
    fn new(order: Order) -> Self {
        Self { order, first: None }
    }

    /// Returns true if the decoder goes on after a mismatch.
    fn go_on(&mut self, wrong: TypeMismatch) -> Found {
        if self.order == Order::Definition {
            return Found::Break(wrong);
        }
        self.first.get_or_insert(wrong);
        Found::Continue(())
    }
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
        search: &mut Search,
    ) -> Found {
        if let Some(found) = self.check_schema(shape, go_type, value, search) {
            return found;
        }
        let known = value.value();
        match (shape, &*known) {
            (shape, known) if shape.has_expected_json_type(known) => Found::Continue(()),
            (Shape::Pointer(inner), _) => self.check(inner, go_type, (value, old), search),
            (Shape::Object(id), Value::Object(_)) => {
                check_members(Types::all().get(*id), value, old, Some(self), search)
            }
            (Shape::List(inner), Value::Array(_)) => {
                let go_type = inner.go_type_of_item(go_type);
                let mut items = value.items().into_iter().flatten();
                items.try_for_each(|item| self.check(inner, go_type, (item, None), search))
            }
            (Shape::Map(inner), Value::Object(_)) => {
                let go_type = inner.go_type_of_item(go_type);
                let mut members = value.members().into_iter().flatten();
                members.try_for_each(|(_, item)| self.check(inner, go_type, (item, None), search))
            }
            (shape, known) => match self.check_scalar(shape, go_type, known) {
                Some(wrong) if shape.has_decoder() => Found::Break(wrong),
                Some(wrong) => search.go_on(wrong),
                None => Found::Continue(()),
            },
        }
    }

    /// Checks a schema of a definition that stands where a value of another type may stand.
    fn check_schema<T: Tree>(
        &self,
        shape: &Shape,
        go_type: &str,
        value: &T,
        search: &mut Search,
    ) -> Option<Found> {
        let shape = if let Shape::Pointer(inner) = shape { inner } else { shape };
        if !matches!(shape, Shape::Raw) || !go_type.starts_with("v1.JSONSchemaPropsOr") {
            return None;
        }
        let schema = Types::all().named("apiextensions.JSONSchemaProps")?;
        if value.value().is_object() {
            return Some(check_members(schema, value, None, Some(self), search));
        }
        let mut schemas = value.items()?.iter().filter(|item| item.value().is_object());
        Some(schemas.try_for_each(|one| check_members(schema, one, None, Some(self), search)))
    }

    fn check_scalar(&self, shape: &Shape, go_type: &str, value: &Value) -> Option<TypeMismatch> {
        match (shape, value) {
            (Shape::Quantity, value) => check_quantity(value),
            (Shape::Time, Value::String(text)) => check_time(text, Layout::Seconds),
            (Shape::MicroTime, Value::String(text)) => check_time(text, Layout::Micros),
            (Shape::Time | Shape::MicroTime, value) => Some(self.mismatch(shape, "string", value)),
            (Shape::IntOrString, value) => Some(self.mismatch(shape, "int32", value)),
            (Shape::Bytes, Value::String(text)) => check_base64(text),
            (_, value) => Some(self.mismatch(shape, go_type, value)),
        }
    }

    fn mismatch(&self, shape: &Shape, go_type: &str, value: &Value) -> TypeMismatch {
        let json = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if go_type.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let (owner, path) = (self.known.name, self.path());
        let decoded = format!(
            "json: cannot unmarshal {json} into Go struct field {owner}.{path} of type {go_type}"
        );
        let restored = match shape {
            Shape::Time | Shape::MicroTime | Shape::IntOrString => {
                format!("json: cannot unmarshal {json} into Go value of type {go_type}")
            }
            shape => unrestored(shape, go_type, value),
        };
        TypeMismatch { decoded, restored }
    }
}

/// Returns the text of the conversion for a value that has another type than its member.
fn unrestored(shape: &Shape, go_type: &str, value: &Value) -> String {
    let go = match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match (shape, go) {
        (Shape::Object(_), _) => format!("cannot restore struct from: {go}"),
        (Shape::List(_) | Shape::Bytes, _) => format!("cannot restore slice from {go}"),
        (Shape::Map(_), _) => format!("cannot restore map from {go}"),
        // Go converts an integer to a text, which the decoder does not want.
        (Shape::Text, "int64") => format!("cannot convert int64 to {go_type}"),
        (Shape::Text, _) => "unrecognized type: string".to_owned(),
        (Shape::Bool, _) => "unrecognized type: bool".to_owned(),
        (_, "int64" | "float64") => format!("cannot convert {go} to {go_type}"),
        _ => format!("unrecognized type: {go_type}"),
    }
}

/// Returns the text of the conversion for an object whose `kind` or `apiVersion` is no text.
pub(crate) fn wrong_type_meta(object: &Fields) -> Option<String> {
    let values = ["kind", "apiVersion"].iter().filter_map(|name| object.get(*name));
    let mut wrong = values.filter(|value| !value.is_string() && !value.is_null());
    wrong.next().map(|value| unrestored(&Shape::Text, "string", value))
}

fn check_quantity(value: &Value) -> Option<TypeMismatch> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let detail = text.trim().parse::<Quantity>().err()?.to_string();
    Some(TypeMismatch { decoded: detail.clone(), restored: detail })
}

fn fits(number: &serde_json::Number, shape: &Shape) -> bool {
    match (number.as_i64(), shape) {
        (None, _) if is_minus_zero(number) => true,
        (Some(number), Shape::Int32 | Shape::IntOrString) => i32::try_from(number).is_ok(),
        (number, _) => number.is_some(),
    }
}

fn check_time(text: &str, layout: Layout) -> Option<TypeMismatch> {
    let detail = go_time::problem(text, layout)?;
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
    /// Returns true if the JSON type alone shows that the value fits.
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

    /// Returns true if the type has a decoder of its own, whose error ends the decoding.
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
