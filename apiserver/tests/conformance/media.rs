//! Bodies in protobuf and YAML: a script has them as JSON, and protobuf also byte by byte in hex.

use homeostat_schema::{Envelope, ProtobufError, ProtobufEvent, Schema, built_in};
use serde_json::{Value, json};

use crate::script::Content;

/// The media type of protobuf, which parameters may follow.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media type of YAML.
pub(crate) const YAML: &str = "application/yaml";

/// Returns the object in YAML.
///
/// # Errors
///
/// Fails if the text is no YAML.
pub(crate) fn decode_yaml(text: &str) -> Result<Content, String> {
    let object = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    Ok(Content::Json(vec![object]))
}

/// Returns the bytes of a protobuf body: the rest of `hex …`, or the encoding of an object.
///
/// # Errors
///
/// Fails if the text is neither, or has no kind of the table.
pub(crate) fn encode(text: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = text.strip_prefix("hex") {
        return from_hex(digits);
    }
    let object: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let member = |name: &str| object[name].as_str().unwrap_or_default();
    let (api_version, kind) = (member("apiVersion"), member("kind"));
    let schema = schema_of(api_version, kind).ok_or_else(|| format!("no schema: {kind}"))?;
    let raw = schema.encode_protobuf(&object).map_err(|error| error.to_string())?;
    Ok(Envelope::new(api_version, kind, raw).to_bytes())
}

/// Returns the object in a body, or the events in the body of a watch.
///
/// # Errors
///
/// Fails if the bytes are no protobuf.
pub(crate) fn decode(bytes: &[u8], is_watch: bool) -> Result<Content, String> {
    if !is_watch {
        return decode_object(bytes).map(|object| Content::Json(vec![object]));
    }
    let mut events = Vec::new();
    let mut rest = bytes;
    while let Some((event, after)) = next_event(rest)? {
        let object = decode_object(&event.object)?;
        events.push(json!({"type": event.event_type, "object": object}));
        rest = after;
    }
    if rest.is_empty() { Ok(Content::Json(events)) } else { Err("half an event".to_owned()) }
}

/// Counts the complete events in the body of a watch.
pub(crate) fn count_events(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let mut count = 0;
    while let Ok(Some((_, after))) = next_event(rest) {
        rest = after;
        count += 1;
    }
    count
}

fn next_event(bytes: &[u8]) -> Result<Option<(ProtobufEvent, &[u8])>, String> {
    ProtobufEvent::read_frame(bytes).map_err(|error| error.to_string())
}

fn decode_object(bytes: &[u8]) -> Result<Value, String> {
    let text = |error: ProtobufError| error.to_string();
    let Envelope { api_version, kind, raw, .. } = Envelope::read(bytes).map_err(text)?;
    let schema = schema_of(&api_version, &kind).ok_or_else(|| format!("no schema: {kind}"))?;
    let mut object = schema.decode_protobuf(&raw).map_err(text)?;
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
    Ok(object)
}

/// Finds the schema of a kind, or of a type that every version has.
fn schema_of(api_version: &str, kind: &str) -> Option<Schema> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    built_in::schema_of(group, version, kind).or_else(|| built_in::meta_schema_of(kind))
}

fn from_hex(digits: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> =
        digits.chars().filter(|c| !c.is_whitespace()).map_while(|c| c.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).map_err(|e| e.to_string());
    digits.chunks_exact(2).map(byte).collect()
}
