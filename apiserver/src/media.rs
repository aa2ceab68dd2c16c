//! The media types of bodies: JSON, YAML and protobuf.
//!
//! The server works with JSON. Another type is decoded to it, and encoded from it for the clients
//! that ask for it; the others pay nothing.

mod yaml;

use bytes::Bytes;
use homeostat_schema::{Envelope, ProtobufError, ProtobufEvent, Schema, built_in};
use serde_json::Value;

/// The media type of an applied configuration. JSON is YAML, too.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The encoding of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Media {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

/// An object that cannot be encoded as protobuf.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodeError {
    /// The kind is not built in.
    #[error(
        "object *{0} does not implement the protobuf marshalling interface and cannot be encoded \
         to a protobuf message"
    )]
    NoSchema(String),
    #[error(transparent)]
    Value(#[from] ProtobufError),
}

/// Returns the schema of a kind, or of a type such as `Status`, which each version has.
pub(crate) fn schema_of(api_version: &str, kind: &str) -> Option<Schema> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if group == "meta.k8s.io" {
        return built_in::meta_schema_of(kind);
    }
    let schema = built_in::schema_of(group, version, kind);
    schema.or_else(|| built_in::meta_schema_of(kind).filter(|_| has_meta_types(group)))
}

/// Returns true if a group is built in: its versions have the types of `meta.k8s.io`, too.
fn has_meta_types(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

// === impl Media ===

impl Media {
    /// Returns the encoding that a media type without parameters names.
    pub(crate) fn from_type(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// Returns the `Content-Type` of an object.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Returns the `Content-Type` of the events of a watch, which are never YAML.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Json | Self::Yaml => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// Encodes an object, given as JSON.
    ///
    /// # Errors
    ///
    /// Fails if the object's kind has no protobuf encoding, or a value does not fit its type.
    pub(crate) fn encode(self, json: Bytes) -> Result<Bytes, EncodeError> {
        match self {
            Self::Json => Ok(json),
            Self::Yaml => Ok(match serde_json::from_slice(&json) {
                Ok(object) => yaml::write(&object).into(),
                // It is no JSON: a text for people.
                Err(_) => json,
            }),
            Self::Protobuf => encode_protobuf(&json).map(Bytes::from),
        }
    }

    /// Appends an event of a watch to its stream. The object is JSON.
    ///
    /// # Errors
    ///
    /// Fails as [`Media::encode`] does.
    pub(crate) fn append_event(
        self,
        stream: &mut Vec<u8>,
        kind: &str,
        object: &[u8],
    ) -> Result<(), EncodeError> {
        if self == Self::Protobuf {
            let event = ProtobufEvent::new(kind, encode_protobuf(object)?);
            stream.extend(event.to_frame());
            return Ok(());
        }
        stream.reserve(object.len() + 40);
        stream.extend_from_slice(b"{\"type\":\"");
        stream.extend_from_slice(kind.as_bytes());
        stream.extend_from_slice(b"\",\"object\":");
        stream.extend_from_slice(object);
        stream.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Returns a value as YAML.
pub(crate) fn to_yaml(value: &Value) -> String {
    yaml::write(value)
}

/// Returns the size in protobuf of an object in JSON.
pub(crate) fn protobuf_size(json: &[u8]) -> usize {
    encode_protobuf(json).map_or(json.len(), |bytes| bytes.len())
}

fn encode_protobuf(json: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let object: Value = serde_json::from_slice(json).unwrap_or_default();
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(schema) = schema_of(api_version, kind) else {
        return Err(EncodeError::NoSchema(kind.to_owned()));
    };
    let raw = schema.encode_protobuf(&object)?;
    Ok(Envelope::new(api_version, kind, raw).to_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(body: &[u8]) -> Value {
        let envelope = Envelope::read(body).unwrap();
        let schema = schema_of(&envelope.api_version, &envelope.kind).unwrap();
        schema.decode_protobuf(&envelope.raw).unwrap()
    }

    #[test]
    fn status_of_every_group_is_encoded() {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 404,
            "details": {"name": "a", "causes": [{"field": "f"}]}, "status": "Failure"});
        let body = Media::Protobuf.encode(status.to_string().into()).unwrap();
        let back = decoded(&body);
        assert_eq!((&back["code"], &back["details"]), (&status["code"], &status["details"]));
        assert!(schema_of("apps/v1", "DeleteOptions").is_some());
        assert!(schema_of("meta.k8s.io/v1", "PartialObjectMetadataList").is_some());
        assert!(schema_of("v1", "ConfigMapList").is_some());
        assert!(schema_of("example.com/v1", "Status").is_none());
    }

    #[test]
    fn custom_object_has_no_protobuf_encoding() {
        let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1"}).to_string();
        let error = Media::Protobuf.encode(widget.into()).unwrap_err();
        assert_eq!(error, EncodeError::NoSchema("Widget".to_owned()));
    }

    #[test]
    fn event_holds_the_complete_body_of_its_object() {
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}).to_string();
        let mut stream = Vec::new();
        Media::Protobuf.append_event(&mut stream, "ADDED", pod.as_bytes()).unwrap();
        let (event, rest) = ProtobufEvent::read_frame(&stream).unwrap().unwrap();
        assert_eq!((event.event_type.as_str(), rest.len()), ("ADDED", 0));
        assert_eq!(decoded(&event.object)["metadata"]["name"], "p");
    }
}
