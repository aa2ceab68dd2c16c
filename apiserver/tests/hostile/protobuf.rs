//! Protobuf bodies of requests and replies.

use homeostat_schema::{Envelope, ProtobufEvent, Schema, built_in};
use serde_json::Value;

/// The media type of protobuf, which parameters may follow.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Returns a body as protobuf, if it is a JSON object of a built-in kind.
pub(crate) fn encode(json: &[u8]) -> Option<Vec<u8>> {
    let object: Value = serde_json::from_slice(json).ok()?;
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let raw = schema_of(api_version, kind)?.encode_protobuf(&object).ok()?;
    Some(Envelope::new(api_version, kind, raw).to_bytes())
}

/// Returns the object in a body; null if the body is no protobuf.
pub(crate) fn decode(body: &[u8]) -> Value {
    let Ok(envelope) = Envelope::read(body) else { return Value::Null };
    let schema = schema_of(&envelope.api_version, &envelope.kind);
    let object = schema.and_then(|schema| schema.decode_protobuf(&envelope.raw).ok());
    let mut object = object.unwrap_or_default();
    if let Value::Object(fields) = &mut object {
        fields.insert("kind".to_owned(), envelope.kind.into());
    }
    object
}

/// Returns true if every event of a watch has an object. The last event may be incomplete.
pub(crate) fn are_events(mut stream: &[u8]) -> bool {
    loop {
        match ProtobufEvent::read_frame(stream) {
            Ok(Some((event, rest))) if decode(&event.object).is_object() => stream = rest,
            Ok(None) => return true,
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

fn schema_of(api_version: &str, kind: &str) -> Option<Schema> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    built_in::schema_of(group, version, kind).or_else(|| built_in::meta_schema_of(kind))
}
