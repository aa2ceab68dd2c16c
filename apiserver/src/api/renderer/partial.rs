//! Objects of which a reply has the metadata only.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::json_text::JsonText;
use crate::object::Stored;

/// The kind of an object of which a reply has the metadata only.
const KIND: &str = "PartialObjectMetadata";

/// The length of an object without its metadata, about.
const TYPE_LENGTH: usize = 80;

/// Encodes the metadata of an object.
pub(super) fn encode(version: &str, stored: &Stored) -> Bytes {
    object(version, stored.metadata()).into()
}

/// Encodes a bookmark.
pub(super) fn encode_bookmark(version: &str, metadata: &Value) -> Vec<u8> {
    object(version, &JsonText::of(metadata))
}

/// Encodes the metadata of the objects of a list.
pub(super) fn encode_list<'a>(
    version: &str,
    metadata: &Value,
    items: impl Iterator<Item = &'a Arc<Stored>>,
) -> Bytes {
    let mut text = format!("{{\"apiVersion\":\"{version}\",\"items\":").into_bytes();
    let start = text.len();
    for item in items {
        text.push(if text.len() == start { b'[' } else { b',' });
        append(&mut text, version, item.metadata());
    }
    // The real server sends `null` instead of no items.
    let end: &[u8] = if text.len() == start { b"null" } else { b"]" };
    text.extend_from_slice(end);
    let metadata = without_empty(metadata);
    let rest = format!(",\"kind\":\"{KIND}List\",\"metadata\":{metadata}}}");
    text.extend_from_slice(rest.as_bytes());
    text.into()
}

/// Returns the object that has this metadata, which is JSON.
fn object(version: &str, metadata: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(TYPE_LENGTH + metadata.len());
    append(&mut text, version, metadata);
    text
}

/// Appends the object that has this metadata, which is JSON.
fn append(text: &mut Vec<u8>, version: &str, metadata: &[u8]) {
    for part in ["{\"apiVersion\":\"", version, "\",\"kind\":\"", KIND, "\",\"metadata\":"] {
        text.extend_from_slice(part.as_bytes());
    }
    text.extend_from_slice(metadata);
    text.push(b'}');
}

/// Returns an object with its metadata only.
pub(super) fn metadata_only(version: &str, mut object: Fields) -> Value {
    let metadata = object.remove("metadata").unwrap_or_default();
    json!({"kind": KIND, "apiVersion": version, "metadata": metadata})
}

/// Returns the metadata of a list without empty members: only a list of complete custom resources
/// has them.
pub(super) fn without_empty(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|_, value| *value != "");
    }
    metadata
}
