//! `OpenAPI` v2 in protobuf: the messages of gnostic's `OpenAPIv2.proto`, which kubectl reads.

use serde_json::Value;

use crate::media::to_yaml;

/// A message: its fields by their names in JSON.
struct Message {
    fields: &'static [(&'static str, u32, Form)],
    /// The number of the field that has the members whose names start with `x-`; 0 if there is
    /// none.
    extensions: u32,
}

/// The encoding of a value.
enum Form {
    Text,
    Boolean,
    Integer,
    Double,
    /// Any value, as YAML.
    Any,
    /// Several values of one field. A single value is a list of one.
    List(&'static Self),
    Message(&'static Message),
    /// A message that has only this field.
    Inside(u32, &'static Self),
    /// A message that has only this field: a list of names and values.
    Map(u32, &'static Self),
    /// A message with a field for an object, and one for a boolean.
    SchemaOrBoolean,
    /// A parameter, whose field depends on its member `in`.
    Parameter,
}

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Form::Text),
        ("info", 2, Form::Message(&INFO)),
        ("paths", 8, Form::Map(2, &Form::Message(&PATH))),
        ("definitions", 9, Form::Map(1, &Form::Message(&SCHEMA))),
    ],
    extensions: 0,
};

static INFO: Message =
    Message { fields: &[("title", 1, Form::Text), ("version", 2, Form::Text)], extensions: 0 };

static PATH: Message = Message {
    fields: &[
        ("get", 2, Form::Message(&OPERATION)),
        ("put", 3, Form::Message(&OPERATION)),
        ("post", 4, Form::Message(&OPERATION)),
        ("delete", 5, Form::Message(&OPERATION)),
        ("patch", 8, Form::Message(&OPERATION)),
        ("parameters", 9, Form::List(&Form::Parameter)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Form::List(&Form::Text)),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("consumes", 7, Form::List(&Form::Text)),
        ("parameters", 8, Form::List(&Form::Parameter)),
        ("responses", 9, Form::Map(1, &Form::Inside(1, &Form::Message(&RESPONSE)))),
    ],
    extensions: 13,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Form::Text),
        ("schema", 2, Form::Inside(1, &Form::Message(&SCHEMA))),
    ],
    extensions: 0,
};

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Boolean),
        ("schema", 5, Form::Message(&SCHEMA)),
    ],
    extensions: 0,
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("uniqueItems", 20, Form::Boolean),
    ],
    extensions: 0,
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Form::Boolean),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("uniqueItems", 19, Form::Boolean),
    ],
    extensions: 0,
};

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Double),
        ("maximum", 7, Form::Double),
        ("exclusiveMaximum", 8, Form::Boolean),
        ("minimum", 9, Form::Double),
        ("exclusiveMinimum", 10, Form::Boolean),
        ("maxLength", 11, Form::Integer),
        ("minLength", 12, Form::Integer),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Integer),
        ("minItems", 15, Form::Integer),
        ("uniqueItems", 16, Form::Boolean),
        ("maxProperties", 17, Form::Integer),
        ("minProperties", 18, Form::Integer),
        ("required", 19, Form::List(&Form::Text)),
        ("enum", 20, Form::List(&Form::Any)),
        ("additionalProperties", 21, Form::SchemaOrBoolean),
        ("type", 22, Form::Inside(1, &Form::List(&Form::Text))),
        ("items", 23, Form::Inside(1, &Form::Message(&SCHEMA))),
        ("allOf", 24, Form::List(&Form::Message(&SCHEMA))),
        ("properties", 25, Form::Map(1, &Form::Message(&SCHEMA))),
        ("example", 30, Form::Any),
    ],
    extensions: 31,
};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    DOCUMENT.encode(document)
}

// === impl Message ===

impl Message {
    fn encode(&self, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, number, form) in self.fields {
            if let Some(member) = value.get(name).filter(|member| !member.is_null()) {
                form.append(&mut bytes, *number, member);
            }
        }
        let members = value.as_object().into_iter().flatten();
        for (name, member) in members.filter(|_| self.extensions > 0) {
            if name.starts_with("x-") {
                append_bytes(&mut bytes, self.extensions, &named(name, &Form::Any, member));
            }
        }
        bytes
    }
}

// === impl Form ===

impl Form {
    /// Appends a field with a value.
    fn append(&self, bytes: &mut Vec<u8>, number: u32, value: &Value) {
        match self {
            Self::Text => {
                append_bytes(bytes, number, value.as_str().unwrap_or_default().as_bytes());
            }
            Self::Boolean => {
                append_number(bytes, number, value.as_bool().unwrap_or_default().into());
            }
            Self::Integer => {
                let integer = value.as_i64().unwrap_or_default();
                append_number(bytes, number, integer.cast_unsigned());
            }
            Self::Double => {
                append_varint(bytes, u64::from(number << 3 | FIXED64));
                bytes.extend(value.as_f64().unwrap_or_default().to_le_bytes());
            }
            // The text is field 2 of the message.
            Self::Any => append_message(bytes, number, |any| {
                append_bytes(any, 2, to_yaml(value).as_bytes());
            }),
            Self::List(form) => {
                let values =
                    value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                for value in values {
                    form.append(bytes, number, value);
                }
            }
            Self::Message(message) => append_bytes(bytes, number, &message.encode(value)),
            Self::Inside(inner, form) => append_message(bytes, number, |around| {
                form.append(around, *inner, value);
            }),
            Self::Map(inner, form) => append_message(bytes, number, |map| {
                for (name, value) in value.as_object().into_iter().flatten() {
                    append_bytes(map, *inner, &named(name, form, value));
                }
            }),
            Self::SchemaOrBoolean => append_message(bytes, number, |either| match value {
                Value::Bool(is) => append_number(either, 2, (*is).into()),
                schema => append_bytes(either, 1, &SCHEMA.encode(schema)),
            }),
            Self::Parameter => append_bytes(bytes, number, &parameter(value)),
        }
    }
}

/// Encodes a parameter: a message in messages that say where the parameter is.
fn parameter(value: &Value) -> Vec<u8> {
    let around = |number: u32, inner: &[u8]| {
        let mut bytes = Vec::new();
        append_bytes(&mut bytes, number, inner);
        bytes
    };
    let of_request = match value["in"].as_str().unwrap_or_default() {
        "body" => around(1, &BODY_PARAMETER.encode(value)),
        "path" => around(2, &around(4, &PATH_PARAMETER.encode(value))),
        _ => around(2, &around(3, &QUERY_PARAMETER.encode(value))),
    };
    around(1, &of_request)
}

/// Encodes a message with a name and a value.
fn named(name: &str, form: &Form, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_bytes(&mut bytes, 1, name.as_bytes());
    form.append(&mut bytes, 2, value);
    bytes
}

/// Appends a field with the message that `fill` writes.
fn append_message(bytes: &mut Vec<u8>, number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    fill(&mut message);
    append_bytes(bytes, number, &message);
}

fn append_bytes(bytes: &mut Vec<u8>, number: u32, value: &[u8]) {
    append_varint(bytes, u64::from(number << 3 | BYTES));
    append_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn append_number(bytes: &mut Vec<u8>, number: u32, value: u64) {
    append_varint(bytes, u64::from(number << 3 | VARINT));
    append_varint(bytes, value);
}

fn append_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_is_encoded_by_the_numbers_of_its_fields() {
        let schema = json!({"type": "integer", "maxLength": 300, "x-a": [1]});
        let expected =
            b"\x58\xac\x02\xb2\x01\x09\x0a\x07integer\xfa\x01\x0d\x0a\x03x-a\x12\x06\x12\x04- 1\n";
        let encoded = SCHEMA.encode(&schema);
        assert_eq!(encoded, expected.map(u8::from), "{encoded:x?}");
    }

    #[test]
    fn parameter_is_a_message_of_its_place() {
        let query = json!({"name": "a", "in": "query", "type": "string"});
        let expected = b"\x0a\x16\x12\x14\x1a\x12\x12\x05query\x22\x01a\x32\x06string";
        assert_eq!(parameter(&query), expected);
    }
}
