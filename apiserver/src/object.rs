//! A stored object: bytes encoded once, and the little of it that lists and watches look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};

use crate::kinds::Kind;

/// A JSON object that is being worked on.
pub(crate) type Fields = Map<String, Value>;

/// An object at one resourceVersion.
///
/// The bytes start `{"kind":…,"apiVersion":…,"metadata":{"resourceVersion":"N"`: so the version can be changed, and the
/// first two members left out (items of a list have none), without parsing.
#[derive(Debug)]
pub(crate) struct Stored {
    bytes: Bytes,
    /// Where `"metadata":` starts.
    item_at: usize,
    /// Where the digits of the resourceVersion start, and where they end.
    version_at: (usize, usize),
    pub(crate) revision: u64,
    pub(crate) selectable: Arc<Selectable>,
}

/// What selectors see, and what writes need before they parse.
#[derive(Debug, Default)]
pub(crate) struct Selectable {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) terminating: bool,
    pub(crate) labels: BTreeMap<String, String>,
    /// The values of the kind's field labels, in the order of its row.
    pub(crate) fields: Vec<String>,
}

/// An object that only lacks its resourceVersion.
#[derive(Debug)]
pub(crate) struct Encoded {
    head: BytesMut,
    item_at: usize,
    tail: Vec<u8>,
    pub(crate) selectable: Arc<Selectable>,
}

// === impl Encoded ===

impl Encoded {
    /// Encodes `object`, whatever it says about its kind, apiVersion and resourceVersion.
    pub(crate) fn new(kind: &Kind, mut object: Fields) -> Self {
        let selectable = Arc::new(Selectable::of(kind, &object));
        object.remove("kind");
        object.remove("apiVersion");
        let mut metadata = match object.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        metadata.remove("resourceVersion");
        let mut head = BytesMut::new();
        head.put_slice(b"{");
        head.put_slice(kind.type_members().as_bytes());
        let item_at = head.len();
        head.put_slice(b"\"metadata\":{\"resourceVersion\":\"");
        let mut tail = vec![b'"'];
        append_members(&mut tail, &metadata);
        tail.push(b'}');
        append_members(&mut tail, &object);
        tail.push(b'}');
        Self { head, item_at, tail, selectable }
    }

    pub(crate) fn at(self, revision: u64) -> Stored {
        let digits = revision.to_string();
        let start = self.head.len();
        let mut bytes = self.head;
        bytes.reserve(digits.len() + self.tail.len());
        bytes.put_slice(digits.as_bytes());
        bytes.put_slice(&self.tail);
        Stored {
            bytes: bytes.freeze(),
            item_at: self.item_at,
            version_at: (start, start + digits.len()),
            revision,
            selectable: self.selectable,
        }
    }
}

impl Encoded {
    /// The object as it is before it has a version: what a dry run answers.
    pub(crate) fn without_revision(&self) -> Bytes {
        const VERSION: &[u8] = b"\"resourceVersion\":\"";
        let mut bytes = BytesMut::from(&self.head[..self.head.len() - VERSION.len()]);
        // After the version's closing quote comes the comma before the first of the other members.
        bytes.put_slice(self.tail.strip_prefix(b"\",").unwrap_or_else(|| &self.tail[1..]));
        bytes.freeze()
    }
}

fn append_members(into: &mut Vec<u8>, members: &Fields) {
    for (key, value) in members {
        into.push(b',');
        serde_json::to_writer(&mut *into, key).expect("a string is always JSON");
        into.push(b':');
        serde_json::to_writer(&mut *into, value).expect("a value is always JSON");
    }
}

// === impl Stored ===

impl Stored {
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The object's members from `metadata` on, and the closing brace: what follows `{` in a list of a built-in kind.
    pub(crate) fn item(&self) -> &[u8] {
        &self.bytes[self.item_at..]
    }

    pub(crate) fn fields(&self) -> Fields {
        serde_json::from_slice(&self.bytes).expect("what is stored was encoded from JSON")
    }

    /// The same object as of another resourceVersion: what a DELETED event carries.
    pub(crate) fn at(&self, revision: u64) -> Self {
        let digits = revision.to_string();
        let (start, end) = self.version_at;
        let mut bytes = BytesMut::with_capacity(self.bytes.len() + digits.len());
        bytes.put_slice(&self.bytes[..start]);
        bytes.put_slice(digits.as_bytes());
        bytes.put_slice(&self.bytes[end..]);
        Self {
            bytes: bytes.freeze(),
            item_at: self.item_at,
            version_at: (start, start + digits.len()),
            revision,
            selectable: Arc::clone(&self.selectable),
        }
    }
}

// === impl Selectable ===

impl Selectable {
    fn of(kind: &Kind, object: &Fields) -> Self {
        let metadata = object.get("metadata");
        let text = |key: &str| {
            metadata.and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        let labels = metadata.and_then(|m| m.get("labels")).and_then(Value::as_object);
        Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            terminating: metadata.is_some_and(|m| m.get("deletionTimestamp").is_some()),
            labels: labels.map(string_map).unwrap_or_default(),
            fields: kind.fields.iter().map(|field| field.read(object)).collect(),
        }
    }
}

/// The string members of an object; anything else has been refused before it is stored.
pub(crate) fn string_map(members: &Fields) -> BTreeMap<String, String> {
    members
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
