//! Bytes to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as JsonMap, Value};

use super::union::Union;
use super::wire::{BYTES, Reader, Tag, VARINT};
use super::{ProtobufError, duration};
use crate::node::{Empty, Field, Scalar, Shape};
use crate::schema::NodeRef;

type Fields = JsonMap<String, Value>;
type Result<T> = std::result::Result<T, ProtobufError>;

// === impl Union ===

impl Union {
    /// Decodes one occurrence of the field, added to the earlier ones.
    fn decode(
        self,
        schema: NodeRef<'_>,
        bytes: &[u8],
        depth: usize,
        earlier: Option<Value>,
    ) -> Result<Value> {
        if self != Self::DependenciesOrTexts {
            return self.decode_one(schema, bytes, depth);
        }
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => key = reader.text(tag)?,
                2 => value = self.decode_one(schema, reader.bytes(tag)?, depth)?,
                _ => reader.skip(tag)?,
            }
        }
        let mut map = match earlier {
            Some(Value::Object(map)) => map,
            _ => Fields::new(),
        };
        map.insert(key, value);
        Ok(Value::Object(map))
    }

    fn decode_one(self, schema: NodeRef<'_>, bytes: &[u8], depth: usize) -> Result<Value> {
        let (mut allows, mut single, mut list) = (false, None, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match (self, tag.number) {
                (Self::OrBoolean, 1) if tag.wire_type == VARINT => {
                    allows = reader.varint(tag)? != 0;
                }
                (Self::OrBoolean, 2) | (Self::OrSchemas | Self::DependenciesOrTexts, 1) => {
                    let fields = message(schema, reader.bytes(tag)?, depth)?;
                    single = Some(Value::Object(fields));
                }
                (Self::OrSchemas, 2) => {
                    let fields = message(schema, reader.bytes(tag)?, depth)?;
                    list.push(Value::Object(fields));
                }
                (Self::DependenciesOrTexts, 2) => list.push(Value::from(reader.text(tag)?)),
                _ => reader.skip(tag)?,
            }
        }
        Ok(match (self, single) {
            (_, Some(schema)) => schema,
            (Self::OrBoolean, None) => Value::Bool(allows),
            // Go encodes an empty union of this type as null.
            (_, None) if list.is_empty() => Value::Null,
            (_, None) => Value::Array(list),
        })
    }
}

/// Decodes a message.
pub(super) fn message(node: NodeRef<'_>, bytes: &[u8], depth: usize) -> Result<Fields> {
    let mut fields = Fields::new();
    level(node, &[], bytes, depth, &mut fields)?;
    Ok(fields)
}

/// Decodes the fields of a message, or of a message that Go embeds in it: those whose numbers start
/// with `around`.
fn level(
    node: NodeRef<'_>,
    around: &[u32],
    bytes: &[u8],
    depth: usize,
    fields: &mut Fields,
) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::TooDeep)?;
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        let path = [around, &[tag.number]].concat();
        let mut within = node.fields().filter(|(field, _)| field.protobuf.starts_with(&path));
        match within.next() {
            None => reader.skip(tag)?,
            Some((field, inner)) if field.protobuf.len() == path.len() => {
                let slot = fields.remove(&*field.name);
                if let Some(union) = Union::of(field) {
                    let value = union.decode(node, reader.bytes(tag)?, depth, slot)?;
                    fields.insert(field.name.to_string(), value);
                    continue;
                }
                let value = member((field, inner), tag, &mut reader, depth, slot);
                if let Some(value) = value.map_err(|error| error.at_field(tag.number, field))? {
                    fields.insert(field.name.to_string(), value);
                }
            }
            Some(_) => level(node, &path, reader.bytes(tag)?, depth, fields)?,
        }
    }
    Ok(())
}

/// Decodes one occurrence of a field, added to the earlier ones. Returns `None` for an empty value
/// that JSON omits.
fn member(
    (field, node): (&Field, NodeRef<'_>),
    tag: Tag,
    reader: &mut Reader<'_>,
    depth: usize,
    earlier: Option<Value>,
) -> Result<Option<Value>> {
    if let Some(items) = node.items() {
        let mut list = match earlier {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        add_items(items, tag, reader, depth, &mut list)?;
        return Ok(Some(Value::Array(list)));
    }
    if let Some(values) = node.values() {
        let mut map = match earlier {
            Some(Value::Object(map)) => map,
            _ => Fields::new(),
        };
        let (key, value) = entry(values, reader.bytes(tag)?, depth)?;
        map.insert(key, value);
        return Ok(Some(Value::Object(map)));
    }
    let value = match node.shape() {
        Shape::Any => raw(reader.bytes(tag)?, &*field.go_type == "v1.FieldsV1")?,
        _ => single(node, tag, reader, depth)?,
    };
    let empty = match (&value, node.shape()) {
        // Go omits an empty struct only with `omitzero`.
        (
            _,
            Shape::Scalar(
                Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString,
            ),
        ) => value.is_null() && field.empty == Empty::OmittedObject,
        (Value::String(text), _) => text.is_empty(),
        (Value::Bool(is), _) => !is,
        (Value::Number(number), _) => number.as_f64() == Some(0.0),
        (Value::Object(fields), _) => fields.is_empty() && field.empty == Empty::OmittedObject,
        (Value::Null | Value::Array(_), _) => false,
    };
    let omitted = empty && !field.pointer && field.empty != Empty::Encoded;
    Ok((!omitted).then_some(value))
}

/// Adds the items of one occurrence of a list: one, or several numbers that are packed.
fn add_items(
    node: NodeRef<'_>,
    tag: Tag,
    reader: &mut Reader<'_>,
    depth: usize,
    list: &mut Vec<Value>,
) -> Result<()> {
    let number =
        matches!(node.shape(), Shape::Scalar(Scalar::Boolean | Scalar::Int32 | Scalar::Int64));
    if !number || tag.wire_type != BYTES {
        list.push(single(node, tag, reader, depth)?);
        return Ok(());
    }
    let mut packed = Reader::new(reader.bytes(tag)?);
    while !packed.is_empty() {
        list.push(integer(node.shape(), packed.number()?));
    }
    Ok(())
}

/// Decodes an entry of a map.
fn entry(node: NodeRef<'_>, bytes: &[u8], depth: usize) -> Result<(String, Value)> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 => key = reader.text(tag)?,
            2 => value = Some(single(node, tag, &mut reader, depth)?),
            _ => reader.skip(tag)?,
        }
    }
    // An absent value is the empty one of its type.
    let empty = || match node.shape() {
        Shape::Scalar(Scalar::String | Scalar::Bytes) => Value::from(""),
        Shape::Object(_) => Value::Object(Fields::new()),
        _ => Value::Null,
    };
    Ok((key, value.unwrap_or_else(empty)))
}

/// Decodes a value that is no field of its own: an item, the value of an entry, a single field.
fn single(node: NodeRef<'_>, tag: Tag, reader: &mut Reader<'_>, depth: usize) -> Result<Value> {
    match node.shape() {
        Shape::Scalar(scalar) => self::scalar(*scalar, tag, reader),
        Shape::Object(_) => message(node, reader.bytes(tag)?, depth).map(Value::Object),
        // A list in a map or in a list is a message around its items.
        Shape::List(_) => {
            let mut list = Vec::new();
            let mut inner = Reader::new(reader.bytes(tag)?);
            let items = node.items().expect("a list has items");
            while let Some(tag) = inner.tag()? {
                add_items(items, tag, &mut inner, depth, &mut list)?;
            }
            Ok(Value::Array(list))
        }
        Shape::Any => raw(reader.bytes(tag)?, false),
        Shape::Map(_) | Shape::Named(_) => {
            reader.skip(tag)?;
            Ok(Value::Null)
        }
    }
}

/// Decodes JSON in a message, such as a `RawExtension`. A set of fields that is no JSON becomes a
/// text, which no set of fields is: the server drops the set, and accepts the object.
fn raw(bytes: &[u8], is_field_set: bool) -> Result<Value> {
    let mut reader = Reader::new(bytes);
    let mut value = Value::Null;
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            let json = reader.bytes(tag)?;
            value = match serde_json::from_slice(json) {
                Ok(value) => value,
                Err(_) if is_field_set => Value::from(String::from_utf8_lossy(json)),
                Err(error) => return Err(ProtobufError::value("raw", error.to_string())),
            };
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(value)
}

fn scalar(scalar: Scalar, tag: Tag, reader: &mut Reader<'_>) -> Result<Value> {
    Ok(match scalar {
        Scalar::Boolean | Scalar::Int32 | Scalar::Int64 => {
            integer(&Shape::Scalar(scalar), reader.varint(tag)?)
        }
        Scalar::Float => float(reader.float(tag)?),
        Scalar::String => Value::from(reader.text(tag)?),
        Scalar::Bytes => Value::from(STANDARD.encode(reader.bytes(tag)?)),
        Scalar::Quantity => Value::from(numbers_and_text(reader.bytes(tag)?)?.text),
        Scalar::IntOrString => {
            let parts = numbers_and_text(reader.bytes(tag)?)?;
            if parts.first == 1 { Value::from(parts.text) } else { Value::from(parts.second) }
        }
        Scalar::Duration => {
            Value::from(duration::show(numbers_and_text(reader.bytes(tag)?)?.first))
        }
        Scalar::Time | Scalar::MicroTime => time(scalar, reader.bytes(tag)?)?,
    })
}

/// The parts of the messages that stand for scalars: the numbers 1 and 2, and the text.
#[derive(Default)]
struct Parts {
    first: i64,
    second: i64,
    text: String,
}

fn numbers_and_text(bytes: &[u8]) -> Result<Parts> {
    let mut reader = Reader::new(bytes);
    let mut parts = Parts::default();
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire_type) {
            (_, BYTES) => parts.text = reader.text(tag)?,
            (1, _) => parts.first = reader.varint(tag)?.cast_signed(),
            (2, _) => parts.second = reader.varint(tag)?.cast_signed(),
            _ => reader.skip(tag)?,
        }
    }
    Ok(parts)
}

/// An empty message is Go's zero time, which is null in JSON.
fn time(scalar: Scalar, bytes: &[u8]) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let parts = numbers_and_text(bytes)?;
    let nanos = i32::try_from(parts.second).unwrap_or_default();
    let time = jiff::Timestamp::new(parts.first, nanos)
        .map_err(|error| ProtobufError::value("seconds", error.to_string()))?;
    Ok(Value::from(match scalar {
        Scalar::MicroTime => time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        _ => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }))
}

/// Returns a number as Go writes it in JSON: without a fraction unless it has one.
fn float(number: f64) -> Value {
    /// The largest number below which each whole number has a double of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = (number.fract() == 0.0 && number.abs() < EXACT).then(|| format!("{number:.0}"));
    let whole = whole.and_then(|digits| digits.parse::<i64>().ok());
    whole.map_or_else(|| Value::from(number), Value::from)
}

fn integer(shape: &Shape, number: u64) -> Value {
    match shape {
        Shape::Scalar(Scalar::Boolean) => Value::from(number != 0),
        // Go keeps the lower 32 bits.
        Shape::Scalar(Scalar::Int32) => Value::from(((number & 0xffff_ffff) as u32).cast_signed()),
        _ => Value::from(number.cast_signed()),
    }
}
