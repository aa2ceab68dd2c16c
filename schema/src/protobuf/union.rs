//! The types of `JSONSchemaProps` that have several forms in JSON, and one message in protobuf.

use serde_json::Value;

use super::ProtobufError;
use super::decode;
use super::encode;
use super::wire::Reader;
use super::wire::VARINT;
use super::wire::Writer;
use crate::node::Field;
use crate::schema::NodeRef;

type Result<T> = std::result::Result<T, ProtobufError>;

/// A schema, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Union {
    /// `JSONSchemaPropsOrArray`: a schema is field 1, a list of schemas is field 2.
    OrSchemas,
    /// `JSONSchemaPropsOrBool`: a boolean is field 1, a schema is field 2.
    OrBoolean,
    /// `JSONSchemaDependencies`: a map; in each value a schema is field 1, a list of texts field 2.
    DependenciesOrTexts,
}

// === impl Union ===

impl Union {
    /// Returns the union that a field of `JSONSchemaProps` is, if it is one.
    pub(super) fn of(field: &Field) -> Option<Self> {
        match &*field.go_type {
            "v1.JSONSchemaPropsOrArray" => Some(Self::OrSchemas),
            "v1.JSONSchemaPropsOrBool" => Some(Self::OrBoolean),
            "v1.JSONSchemaDependencies" => Some(Self::DependenciesOrTexts),
            _ => None,
        }
    }

    /// Encodes the messages of a field: one, or one for each entry of a map. `schema` is the type
    /// of a schema.
    pub(super) fn encode(
        self,
        schema: NodeRef<'_>,
        value: &Value,
        depth: usize,
    ) -> Result<Vec<Vec<u8>>> {
        if self != Self::DependenciesOrTexts {
            return Ok(vec![self.message(schema, value, depth)?]);
        }
        let mut entries = Vec::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let mut entry = Writer::default();
            entry.bytes(1, key.as_bytes());
            entry.bytes(2, &self.message(schema, value, depth)?);
            entries.push(entry.into_bytes());
        }
        Ok(entries)
    }

    fn message(self, schema: NodeRef<'_>, value: &Value, depth: usize) -> Result<Vec<u8>> {
        let mut message = Writer::default();
        match (self, value) {
            (Self::OrBoolean, Value::Bool(allows)) => message.varint(1, (*allows).into()),
            (Self::OrBoolean, schema_value) => {
                message.varint(1, 1);
                message.bytes(2, &encode::message(schema, schema_value, depth)?);
            }
            (Self::OrSchemas, Value::Array(schemas)) => {
                for one in schemas {
                    message.bytes(2, &encode::message(schema, one, depth)?);
                }
            }
            (Self::DependenciesOrTexts, Value::Array(texts)) => {
                let texts = texts.iter().filter_map(Value::as_str);
                texts.for_each(|text| message.bytes(2, text.as_bytes()));
            }
            (_, one) => message.bytes(1, &encode::message(schema, one, depth)?),
        }
        Ok(message.into_bytes())
    }

    /// Decodes one occurrence of the field, added to the earlier ones.
    pub(super) fn decode(
        self,
        schema: NodeRef<'_>,
        bytes: &[u8],
        depth: usize,
        earlier: Option<Value>,
    ) -> Result<Value> {
        if self != Self::DependenciesOrTexts {
            return self.read_message(schema, bytes, depth);
        }
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => key = reader.text(tag)?,
                2 => value = self.read_message(schema, reader.bytes(tag)?, depth)?,
                _ => reader.skip(tag)?,
            }
        }
        let mut map = match earlier {
            Some(Value::Object(map)) => map,
            _ => serde_json::Map::new(),
        };
        map.insert(key, value);
        Ok(Value::Object(map))
    }

    fn read_message(self, schema: NodeRef<'_>, bytes: &[u8], depth: usize) -> Result<Value> {
        let (mut allows, mut single, mut list) = (false, None, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match (self, tag.number) {
                (Self::OrBoolean, 1) if tag.wire_type == VARINT => {
                    allows = reader.varint(tag)? != 0;
                }
                (Self::OrBoolean, 2) | (Self::OrSchemas | Self::DependenciesOrTexts, 1) => {
                    let fields = decode::message(schema, reader.bytes(tag)?, depth)?;
                    single = Some(Value::Object(fields));
                }
                (Self::OrSchemas, 2) => {
                    let fields = decode::message(schema, reader.bytes(tag)?, depth)?;
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
