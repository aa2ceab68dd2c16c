//! Protobuf bodies of built-in kinds: JSON to bytes, and bytes to JSON, by the numbers of a schema.
//!
//! A body is the four bytes `k8s\0` and a `runtime.Unknown`, which has the kind and the bytes of
//! the object. An event of a watch is a `WatchEvent` around a body, after its length.

mod decode;
mod duration;
mod encode;
mod event;
mod union;
mod wire;

use serde_json::Value;

use crate::node::Field;
use crate::schema::Schema;
use wire::{Reader, Writer};

pub use event::ProtobufEvent;

/// The first bytes of a body.
const MAGIC: &[u8; 4] = b"k8s\0";
/// Levels of nesting that a message may have.
const MAX_DEPTH: usize = 100;

/// A body whose object is not decoded yet.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{Envelope, built_in};
/// use serde_json::json;
///
/// let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
/// let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
/// let raw = schema.encode_protobuf(&object)?;
/// let body = Envelope::new("v1", "ConfigMap", raw).to_bytes();
///
/// let envelope = Envelope::read(&body)?;
/// assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "ConfigMap"));
/// assert_eq!(schema.decode_protobuf(&envelope.raw)?, object);
/// # Ok::<(), homeostat_schema::ProtobufError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope {
    /// The `apiVersion`, such as `apps/v1`.
    pub api_version: String,
    /// The `kind`.
    pub kind: String,
    /// The bytes of the object.
    pub raw: Vec<u8>,
}

/// Bytes that are no protobuf body, or an object that has no protobuf encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The body does not start with `k8s\0`.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoPrefix,
    /// The body is the prefix alone.
    #[error("empty body")]
    Empty,
    /// The bytes end inside a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field has another wire type than its schema.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WireType {
        /// The wire type in the bytes.
        wire_type: u8,
        /// The field's number, or its name.
        field: String,
    },
    /// The nesting is deeper than 100 levels.
    #[error("proto: nesting is deeper than 100 levels")]
    TooDeep,
    /// A value does not fit its type.
    #[error("{field}: {detail}")]
    Value {
        /// The field's name.
        field: String,
        /// The reason.
        detail: String,
    },
}

// === impl Envelope ===

impl Envelope {
    /// Creates the envelope of an object.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, raw: Vec<u8>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), raw }
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// Fails if the bytes have no prefix, are nothing else, or are no `runtime.Unknown`.
    pub fn read(body: &[u8]) -> Result<Self, ProtobufError> {
        let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoPrefix)?;
        if unknown.is_empty() {
            return Err(ProtobufError::Empty);
        }
        let mut envelope = Self::new("", "", Vec::new());
        let mut reader = Reader::new(unknown);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => envelope.read_type(reader.bytes(tag)?)?,
                2 => envelope.raw = reader.bytes(tag)?.to_vec(),
                _ => reader.skip(tag)?,
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), ProtobufError> {
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => self.api_version = reader.text(tag)?,
                2 => self.kind = reader.text(tag)?,
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }

    /// Returns the bytes of the body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut kind = Writer::default();
        kind.bytes(1, self.api_version.as_bytes());
        kind.bytes(2, self.kind.as_bytes());
        let mut unknown = Writer::default();
        unknown.bytes(1, &kind.into_bytes());
        unknown.bytes(2, &self.raw);
        unknown.bytes(3, b"");
        unknown.bytes(4, b"");
        [&MAGIC[..], &unknown.into_bytes()].concat()
    }
}

impl Schema {
    /// Decodes the bytes of an object: those inside an [`Envelope`].
    ///
    /// Fields without a number, such as `kind` and `apiVersion`, are absent; unknown fields are
    /// skipped. The memory used is bounded by a multiple of the size of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no message of this type.
    pub fn decode_protobuf(&self, bytes: &[u8]) -> Result<Value, ProtobufError> {
        decode::message(self.root(), bytes, MAX_DEPTH).map(Value::Object)
    }

    /// Encodes an object. Null, absent and unknown fields are omitted.
    ///
    /// # Errors
    ///
    /// Fails if a value does not fit its type.
    pub fn encode_protobuf(&self, object: &Value) -> Result<Vec<u8>, ProtobufError> {
        encode::message(self.root(), object, MAX_DEPTH)
    }
}

impl ProtobufError {
    /// Names the field whose wire type is wrong, as Go does.
    fn at_field(self, number: u32, field: &Field) -> Self {
        match self {
            Self::WireType { wire_type, field: unnamed } if unnamed == number.to_string() => {
                Self::WireType { wire_type, field: go_name(&field.name) }
            }
            other => other,
        }
    }

    fn value(field: &str, detail: impl Into<String>) -> Self {
        Self::Value { field: field.to_owned(), detail: detail.into() }
    }
}

/// Returns the name of a field in Go.
fn go_name(json_name: &str) -> String {
    match json_name {
        "metadata" => "ObjectMeta".to_owned(),
        "uid" => "UID".to_owned(),
        "apiVersion" => "APIVersion".to_owned(),
        name => {
            let mut letters = name.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect()
        }
    }
}
