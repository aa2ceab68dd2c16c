//! Values. Those of an object are read from its JSON when an expression uses them.

mod struct_value;

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;
use std::str::FromStr;

use homeostat_quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Map as JsonMap, Value as Json};

pub(crate) use self::struct_value::StructValue;
use super::authorization::Authorization;
use super::error::EvalError;
use super::ip::{Cidr, Ip};
use super::named_format::NamedFormat;
use super::semver::Semver;
use super::time;
use super::types::{ObjectType, Type};
use crate::url::Url;

/// A value. A clone is cheap.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(Rc<Vec<Self>>),
    /// A list of the object, with the type of its items.
    Items(&'a [Json], &'a Type),
    Map(Rc<Vec<(Self, Self)>>),
    /// A map of the object, with the type of its values.
    Values(&'a JsonMap<String, Json>, &'a Type),
    Object(&'a JsonMap<String, Json>, &'a ObjectType),
    Struct(Rc<StructValue<'a>>),
    Optional(Option<Rc<Self>>),
    Type(&'static str),
    Quantity(Rc<Quantity>),
    Url(Rc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    Semver(Rc<Semver>),
    Format(&'static NamedFormat),
    Authorization(Rc<Authorization<'a>>),
}

/// A text: of the object or the expression, or computed.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    /// Reads a value of a type from JSON.
    pub(crate) fn read(json: &'a Json, kind: &'a Type) -> Self {
        match (kind, json) {
            (Type::Double, Json::Number(number)) => {
                Self::Double(number.as_f64().unwrap_or(f64::NAN))
            }
            (Type::Bytes, Json::String(text)) => {
                use base64::Engine;
                let read = base64::engine::general_purpose::STANDARD.decode(text);
                Self::Bytes(read.unwrap_or_default().into())
            }
            (Type::Timestamp, Json::String(text)) => match time::timestamp(text) {
                Some(time) => Self::Timestamp(time),
                None => Self::from(text.as_str()),
            },
            (Type::Duration, Json::String(text)) => match time::duration(text) {
                Some(nanos) => Self::Duration(nanos),
                None => Self::from(text.as_str()),
            },
            (Type::List(items), Json::Array(list)) => Self::Items(list, items),
            (Type::Map(_, values), Json::Object(fields)) => Self::Values(fields, values),
            (Type::Object(object), Json::Object(fields)) => Self::Object(fields, object),
            (_, Json::Null) => Self::Null,
            (_, Json::Bool(value)) => Self::Bool(*value),
            (_, Json::Number(number)) => match number.as_i64() {
                Some(number) => Self::Int(number),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            (_, Json::String(text)) => Self::from(text.as_str()),
            (_, Json::Array(list)) => Self::Items(list, &Type::Dyn),
            (_, Json::Object(fields)) => Self::Values(fields, &Type::Dyn),
        }
    }

    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// Creates the optional that expressions see for a value that may be absent.
    pub(crate) fn of_optional(value: Option<Self>) -> Self {
        Self::optional(value)
    }

    pub(super) fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// Returns the name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) | Self::Items(..) => "list",
            Self::Map(_) | Self::Values(..) => "map",
            Self::Object(..) => "object",
            Self::Struct(inner) => inner.kind(),
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authorization(of) => of.type_name(),
        }
    }

    /// Returns the name of the type of Go that cel-go has for the value.
    pub(crate) fn go_type_name(&self) -> String {
        match self {
            Self::Null => "types.Null".to_owned(),
            Self::Optional(_) => "*types.Optional".to_owned(),
            Self::Type(_) => "*types.Type".to_owned(),
            Self::Timestamp(_) => "types.Timestamp".to_owned(),
            Self::Duration(_) => "types.Duration".to_owned(),
            other => {
                let name = other.type_name();
                let (first, rest) = name.split_at_checked(1).unwrap_or_default();
                format!("types.{}{rest}", first.to_ascii_uppercase())
            }
        }
    }

    /// Returns the name of the type of Go that the value itself has.
    pub(super) fn go_value_type(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Uint(_) => "uint64",
            Self::Double(_) => "float64",
            Self::String(_) => "string",
            Self::Null => "structpb.NullValue",
            Self::Bytes(_) => "[]uint8",
            Self::Timestamp(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::List(_) => "[]ref.Val",
            Self::Items(..) => "[]interface {}",
            Self::Map(_) => "map[ref.Val]ref.Val",
            _ => "map[string]interface {}",
        }
    }

    /// Returns the value of the object in JSON; null for a computed one.
    pub(crate) fn json(&self) -> Json {
        match self {
            Self::Items(list, _) => Json::Array(list.to_vec()),
            Self::Values(fields, _) | Self::Object(fields, _) => Json::Object((*fields).clone()),
            _ => Json::Null,
        }
    }

    /// Returns the number of items, entries, characters or bytes.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len(),
            Self::Items(items, _) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::Values(fields, _) | Self::Object(fields, _) => fields.len(),
            _ => return None,
        })
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.to_vec()),
            Self::Items(items, kind) => {
                Some(items.iter().map(|item| Self::read(item, kind)).collect())
            }
            _ => None,
        }
    }

    /// Returns the entries of a map.
    pub(super) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some(entries.to_vec()),
            Self::Values(fields, kind) => {
                let entry = |(key, value): (&'a String, &'a Json)| {
                    (Self::from(key.as_str()), Self::read(value, kind))
                };
                Some(fields.iter().map(entry).collect())
            }
            _ => None,
        }
    }

    /// Returns a field of an object or a value of a map; `None` if it is not set.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Object(fields, kind) => {
                let field = kind.field(name)?;
                fields.get(&field.name).map(|value| Self::read(value, &field.value))
            }
            Self::Values(fields, kind) => fields.get(name).map(|value| Self::read(value, kind)),
            Self::Map(_) => self.at(&Self::text(name)).ok(),
            Self::Struct(inner) => inner.field(name).cloned(),
            _ => None,
        }
    }

    /// Returns the item or value that an index or a key stands for.
    pub(super) fn at(&self, key: &Self) -> Result<Self, EvalError> {
        let position = |length: usize| {
            let index = match key {
                Self::Int(index) => usize::try_from(*index).ok(),
                Self::Uint(index) => usize::try_from(*index).ok(),
                Self::Double(number) => whole(*number)?,
                other => {
                    let found = other.type_name();
                    return Err(EvalError::new(format!(
                        "unsupported index type '{found}' in list"
                    )));
                }
            };
            let found = index.filter(|index| *index < length);
            found.ok_or_else(|| EvalError::new(format!("index out of bounds: {}", key.show())))
        };
        let missing = || EvalError::new(format!("no such key: {}", key.show()));
        match self {
            Self::List(items) => Ok(items[position(items.len())?].clone()),
            Self::Items(items, kind) => Ok(Self::read(&items[position(items.len())?], kind)),
            Self::Map(entries) => {
                let found = entries.iter().find(|(known, _)| known.equals(key));
                found.map(|(_, value)| value.clone()).ok_or_else(missing)
            }
            Self::Values(..) => match key {
                Self::String(name) => self.field(name).ok_or_else(missing),
                _ => Err(missing()),
            },
            // As upstream, a value without parts has no keys.
            _ => Err(missing()),
        }
    }

    /// Returns true if two values without parts are equal. Numbers of different types are compared
    /// by value.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a == b,
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// Returns the order of two values; `None` if they have none.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.deref().cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Quantity(a), Self::Quantity(b)) => Some(a.cmp(b)),
            (Self::Double(a), b) => a.partial_cmp(&b.as_f64()?),
            (a, Self::Double(b)) => a.as_f64()?.partial_cmp(b),
            (a, b) => Some(a.as_i128()?.cmp(&b.as_i128()?)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "CEL rounds, too")]
    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Double(number) => Some(*number),
            Self::Int(number) => Some(*number as f64),
            Self::Uint(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn as_i128(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::Uint(number) => Some((*number).into()),
            _ => None,
        }
    }

    /// Returns the text of a value in an error.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => crate::field_error::go_float(*value),
            Self::String(text) => text.to_string(),
            other => other.type_name().to_owned(),
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Values(..))
    }

    /// Returns the steps that finding a key or an item takes, beyond the first.
    pub(super) fn search(&self) -> usize {
        match self {
            Self::Map(entries) => entries.len(),
            Self::List(items) => items.len() / 10,
            _ => 0,
        }
    }

    /// Returns the steps that reading the value takes: one for each item or ten characters.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::String(text) => text.len() / 10,
            Self::Bytes(bytes) => bytes.len() / 10,
            other => other.size().unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}

/// Reads an index that is written as a floating-point number; `None` if it is too large.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number has no fraction and is in bounds"
)]
fn whole(number: f64) -> Result<Option<usize>, EvalError> {
    if number.fract() != 0.0 || number.abs() >= 9e15 {
        let shown = crate::field_error::go_float(number);
        return Err(EvalError::new(format!("unsupported index value {shown} in list")));
    }
    Ok((number >= 0.0).then_some(number as usize))
}

/// Reads a quantity.
pub(super) fn quantity(text: &str) -> Option<Quantity> {
    Quantity::from_str(text).ok()
}
