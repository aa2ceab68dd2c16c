//! JSON to bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::union::Union;
use super::wire::Writer;
use super::{ProtobufError, duration};
use crate::node::{Field, Scalar, Shape};
use crate::schema::NodeRef;

type Result<T> = std::result::Result<T, ProtobufError>;

/// A field of an object, with its type and its value.
type Member<'a> = (&'a Field, NodeRef<'a>, &'a Value);

// === impl Union ===

impl Union {
    /// Encodes the messages of a field: one, or one for each entry of a map. `schema` is the type
    /// of a schema.
    fn encode(self, schema: NodeRef<'_>, value: &Value, depth: usize) -> Result<Vec<Vec<u8>>> {
        if self != Self::DependenciesOrTexts {
            return Ok(vec![self.encode_one(schema, value, depth)?]);
        }
        let mut entries = Vec::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let mut entry = Writer::default();
            entry.bytes(1, key.as_bytes());
            entry.bytes(2, &self.encode_one(schema, value, depth)?);
            entries.push(entry.into_bytes());
        }
        Ok(entries)
    }

    fn encode_one(self, schema: NodeRef<'_>, value: &Value, depth: usize) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        match (self, value) {
            (Self::OrBoolean, Value::Bool(allows)) => writer.varint(1, (*allows).into()),
            (Self::OrBoolean, schema_value) => {
                writer.varint(1, 1);
                writer.bytes(2, &message(schema, schema_value, depth)?);
            }
            (Self::OrSchemas, Value::Array(schemas)) => {
                for one in schemas {
                    writer.bytes(2, &message(schema, one, depth)?);
                }
            }
            (Self::DependenciesOrTexts, Value::Array(texts)) => {
                let texts = texts.iter().filter_map(Value::as_str);
                texts.for_each(|text| writer.bytes(2, text.as_bytes()));
            }
            (_, one) => writer.bytes(1, &message(schema, one, depth)?),
        }
        Ok(writer.into_bytes())
    }
}

/// Encodes a message.
pub(super) fn message(node: NodeRef<'_>, value: &Value, depth: usize) -> Result<Vec<u8>> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::TooDeep)?;
    let (Some(object), Some(values)) = (node.object(), value.as_object()) else {
        return Ok(Vec::new());
    };
    let mut members: Vec<Member<'_>> = Vec::with_capacity(values.len());
    for (name, value) in values {
        let field = object.field(name).filter(|field| !field.protobuf.is_empty());
        // Go encodes a zero time that is no pointer: null in JSON, an empty message here.
        let field = field.filter(|field| !value.is_null() || is_time(field));
        members.extend(field.map(|field| (field, node.at(&field.node), value)));
    }
    members.sort_unstable_by(|(a, ..), (b, ..)| a.protobuf.cmp(&b.protobuf));
    level(node, &members, 0, depth)
}

fn is_time(field: &Field) -> bool {
    let time = Shape::Scalar(Scalar::Time) == field.node.shape;
    !field.pointer && (time || Shape::Scalar(Scalar::MicroTime) == field.node.shape)
}

/// Encodes the members of a message, whose numbers agree before the index `at`.
fn level(node: NodeRef<'_>, members: &[Member<'_>], at: usize, depth: usize) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    for group in members.chunk_by(|(a, ..), (b, ..)| a.protobuf[at] == b.protobuf[at]) {
        let number = group[0].0.protobuf[at];
        if group[0].0.protobuf.len() > at + 1 {
            writer.bytes(number, &level(node, group, at + 1, depth)?);
            continue;
        }
        for (field, inner, value) in group {
            if let Some(union) = Union::of(field) {
                writer.all_bytes(number, &union.encode(node, value, depth)?);
            } else {
                member((&field.name, *inner), number, value, depth, &mut writer)?;
            }
        }
    }
    Ok(writer.into_bytes())
}

fn member(
    (name, node): (&str, NodeRef<'_>),
    number: u32,
    value: &Value,
    depth: usize,
    writer: &mut Writer,
) -> Result<()> {
    match (node.shape(), value) {
        (Shape::List(_), Value::Array(list)) => {
            let items = node.items().expect("a list has items");
            list.iter().try_for_each(|item| single((name, items), number, item, depth, writer))
        }
        (Shape::Map(_), Value::Object(map)) => {
            let values = node.values().expect("a map has values");
            for (key, value) in map {
                let mut entry = Writer::default();
                entry.bytes(1, key.as_bytes());
                single((name, values), 2, value, depth, &mut entry)?;
                writer.bytes(number, &entry.into_bytes());
            }
            Ok(())
        }
        (Shape::List(_) | Shape::Map(_), _) => Err(wrong_type(name, value)),
        _ => single((name, node), number, value, depth, writer),
    }
}

/// Encodes a value that is no field of its own: an item, the value of an entry, a single field.
fn single(
    (name, node): (&str, NodeRef<'_>),
    number: u32,
    value: &Value,
    depth: usize,
    writer: &mut Writer,
) -> Result<()> {
    match node.shape() {
        Shape::Scalar(scalar) => return self::scalar(name, *scalar, number, value, writer),
        Shape::Object(_) if value.is_object() => {
            writer.bytes(number, &message(node, value, depth)?);
        }
        // A list in a map or in a list is a message around its items.
        Shape::List(_) => {
            let mut inner = Writer::default();
            member((name, node), 1, value, depth, &mut inner)?;
            writer.bytes(number, &inner.into_bytes());
        }
        Shape::Any => {
            let mut inner = Writer::default();
            inner.bytes(1, value.to_string().as_bytes());
            writer.bytes(number, &inner.into_bytes());
        }
        Shape::Object(_) | Shape::Map(_) | Shape::Named(_) => return Err(wrong_type(name, value)),
    }
    Ok(())
}

fn scalar(
    name: &str,
    scalar: Scalar,
    number: u32,
    value: &Value,
    writer: &mut Writer,
) -> Result<()> {
    let wrong = || wrong_type(name, value);
    let text = || value.as_str().ok_or_else(wrong);
    match scalar {
        Scalar::Boolean => writer.varint(number, value.as_bool().ok_or_else(wrong)?.into()),
        Scalar::Int32 | Scalar::Int64 => {
            writer.varint(number, value.as_i64().ok_or_else(wrong)?.cast_unsigned());
        }
        Scalar::Float => writer.float(number, value.as_f64().ok_or_else(wrong)?),
        Scalar::String => writer.bytes(number, text()?.as_bytes()),
        Scalar::Bytes => {
            let bytes = STANDARD.decode(text()?);
            writer.bytes(
                number,
                &bytes.map_err(|error| ProtobufError::value(name, error.to_string()))?,
            );
        }
        Scalar::Quantity => {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let mut inner = Writer::default();
            inner.bytes(1, shown.as_bytes());
            writer.bytes(number, &inner.into_bytes());
        }
        Scalar::IntOrString => {
            let mut inner = Writer::default();
            inner.varint(1, value.is_string().into());
            inner.varint(2, value.as_i64().unwrap_or_default().cast_unsigned());
            inner.bytes(3, value.as_str().unwrap_or_default().as_bytes());
            writer.bytes(number, &inner.into_bytes());
        }
        Scalar::Duration => {
            let nanos = duration::parse(text()?).ok_or_else(wrong)?;
            let mut inner = Writer::default();
            inner.varint(1, nanos.cast_unsigned());
            writer.bytes(number, &inner.into_bytes());
        }
        Scalar::Time | Scalar::MicroTime if value.is_null() => writer.bytes(number, b""),
        Scalar::Time | Scalar::MicroTime => {
            let time: jiff::Timestamp = text()?
                .parse()
                .map_err(|error: jiff::Error| ProtobufError::value(name, error.to_string()))?;
            let mut inner = Writer::default();
            inner.varint(1, time.as_second().cast_unsigned());
            let nanos = if scalar == Scalar::Time { 0 } else { time.subsec_nanosecond() };
            inner.varint(2, i64::from(nanos).cast_unsigned());
            writer.bytes(number, &inner.into_bytes());
        }
    }
    Ok(())
}

fn wrong_type(name: &str, value: &Value) -> ProtobufError {
    ProtobufError::value(name, format!("{value} does not fit the type"))
}
