//! Objects of which a reply has the metadata only.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::object::{Stored, Texts};

/// The metadata of an object, as it is encoded. Members sort by name here and below.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial<'a, M> {
    api_version: &'a str,
    kind: &'static str,
    metadata: M,
}

/// The kind of an object of which a reply has the metadata only.
const KIND: &str = "PartialObjectMetadata";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartialList<'a> {
    api_version: &'a str,
    /// `None` instead of no items: the real server sends `null`.
    items: Option<Vec<Partial<'a, Texts<'a>>>>,
    kind: &'static str,
    metadata: &'a Value,
}

/// Encodes the metadata of an object.
pub(super) fn encode(version: &str, stored: &Stored) -> Bytes {
    to_json(&Partial::of(version, stored)).into()
}

/// Encodes a bookmark.
pub(super) fn encode_bookmark(version: &str, metadata: &Value) -> Vec<u8> {
    to_json(&Partial { api_version: version, kind: KIND, metadata })
}

/// Encodes the metadata of the objects of a list.
pub(super) fn encode_list<'a>(
    version: &'a str,
    metadata: &Value,
    items: impl Iterator<Item = &'a Arc<Stored>>,
) -> Bytes {
    let items: Vec<_> = items.map(|item| Partial::of(version, item)).collect();
    let items = Some(items).filter(|items| !items.is_empty());
    let kind = "PartialObjectMetadataList";
    let metadata = &without_empty(metadata);
    to_json(&PartialList { api_version: version, items, kind, metadata }).into()
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

fn to_json(reply: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(reply).expect("texts and values are JSON")
}

// === impl Partial ===

impl<'a> Partial<'a, Texts<'a>> {
    fn of(version: &'a str, stored: &'a Stored) -> Self {
        Self { api_version: version, kind: KIND, metadata: stored.metadata() }
    }
}
