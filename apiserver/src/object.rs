//! Stored objects: JSON encoded once, with the few parsed members that lists and watches need.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use homeostat_json::Reader;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::fields::{Fields, Paths, string_map};
use crate::json_text::JsonText;

/// An object at one resourceVersion.
///
/// The bytes start with `{"kind":…,"apiVersion":…,"metadata":{"resourceVersion":"N"`, so that
/// without parsing the version can be replaced and the first two members omitted, as in the items
/// of a list.
#[derive(Debug)]
pub(crate) struct Stored {
    bytes: Bytes,
    /// The offset of `"metadata":`.
    item_at: usize,
    /// The range of the resourceVersion's digits.
    version_at: (usize, usize),
    /// The end of the metadata after the digits, as in [`Encoded`].
    metadata_end: usize,
    /// The range of the owners after the digits, as in [`Encoded`].
    owners_at: Option<(usize, usize)>,
    pub(crate) revision: u64,
    pub(crate) selectable: Arc<Selectable>,
}

/// The members that selectors match, and that writes need before they parse the object.
#[derive(Debug, Default)]
pub(crate) struct Selectable {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) terminating: bool,
    pub(crate) labels: BTreeMap<String, String>,
    /// The values of the kind's field labels, in the order of the kind's list.
    pub(crate) fields: Vec<String>,
    /// The schema that the object was written with, for a kind whose schema can change.
    pub(crate) form: u64,
}

/// An encoded object without its resourceVersion.
#[derive(Debug)]
pub(crate) struct Encoded {
    head: Vec<u8>,
    item_at: usize,
    tail: Vec<u8>,
    /// The end of the metadata in the tail.
    metadata_end: usize,
    /// The range of the member `managedFields` in the tail, from its comma on.
    owners_at: Option<(usize, usize)>,
    pub(crate) selectable: Arc<Selectable>,
    /// The object that was encoded.
    object: Fields,
    /// True if the text is certain to be read as `object`.
    is_exact: bool,
}

/// The start of an object after its type: of the metadata, and of its first member.
const METADATA: &[u8] = b"\"metadata\":";
const VERSION: &[u8] = b"\"resourceVersion\":\"";
/// The start of the owners.
const OWNERS: &[u8] = b",\"managedFields\":";

/// A field that field selectors may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLabel {
    pub(crate) label: &'static str,
    /// The paths of the value; the first one that exists counts.
    pub(crate) paths: &'static [&'static str],
    pub(crate) missing: &'static str,
}

// === impl Encoded ===

impl Encoded {
    /// Encodes `object` without a resourceVersion. `type_members` are its members `kind` and
    /// `apiVersion` as text.
    pub(crate) fn new(type_members: &str, selectable: Selectable, object: Fields) -> Self {
        let mut head = Vec::with_capacity(type_members.len() + METADATA.len() + VERSION.len() + 2);
        head.push(b'{');
        head.extend_from_slice(type_members.as_bytes());
        let item_at = head.len();
        head.extend_from_slice(METADATA);
        head.push(b'{');
        head.extend_from_slice(VERSION);
        let mut tail = JsonText::default();
        tail.bytes.reserve(1024);
        tail.bytes.push(b'"');
        let metadata = object.get("metadata").and_then(Value::as_object).into_iter().flatten();
        let mut owners_at = None;
        for (name, value) in metadata.filter(|(name, _)| *name != "resourceVersion") {
            if name != "managedFields" {
                tail.members([(name, value)]);
                continue;
            }
            let start = tail.bytes.len();
            match value {
                Value::String(packed) => tail.encoded_member(name, packed),
                list => tail.members([(name, list)]),
            }
            owners_at = Some((start, tail.bytes.len()));
        }
        tail.bytes.push(b'}');
        let metadata_end = tail.bytes.len();
        let is_first = |name: &str| matches!(name, "kind" | "apiVersion" | "metadata");
        tail.members(object.iter().filter(|(name, _)| !is_first(name)));
        tail.bytes.push(b'}');
        let selectable = Arc::new(selectable);
        let JsonText { bytes: tail, has_fractions } = tail;
        let is_exact = !has_fractions;
        Self { head, item_at, tail, metadata_end, owners_at, selectable, object, is_exact }
    }

    /// Returns the number of bytes, without those of the version.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(crate) fn object(&self) -> &Fields {
        &self.object
    }

    pub(crate) fn at(&self, revision: u64) -> Stored {
        let digits = revision.to_string();
        let start = self.head.len();
        let mut bytes = Vec::with_capacity(start + digits.len() + self.tail.len());
        bytes.extend_from_slice(&self.head);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.tail);
        Stored {
            bytes: bytes.into(),
            item_at: self.item_at,
            version_at: (start, start + digits.len()),
            metadata_end: self.metadata_end,
            owners_at: self.owners_at,
            revision,
            selectable: Arc::clone(&self.selectable),
        }
    }

    /// Returns what [`Stored::packed_fields`] returns for the object at `revision`. `None` if that
    /// is not certain, or if the object is large.
    pub(crate) fn into_fields(mut self, revision: u64) -> Option<Fields> {
        const LARGE: usize = 16 * 1024;
        let is_known = self.is_exact && self.tail.len() <= LARGE;
        let metadata = self.object.get_mut("metadata").filter(|_| is_known)?.as_object_mut()?;
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        pack_owners(&mut self.object);
        Some(self.object)
    }

    /// Returns the object without a version, which is the reply to a dry run.
    pub(crate) fn without_revision(&self) -> Bytes {
        let mut bytes = self.head[..self.head.len() - VERSION.len()].to_vec();
        // The comma before the next member follows the version's closing quote.
        bytes.extend(self.tail.strip_prefix(b"\",").unwrap_or_else(|| &self.tail[1..]));
        bytes.into()
    }
}

// === impl Stored ===

impl Stored {
    /// Reads an object that an earlier server has encoded. `None` if the bytes are not of the form
    /// that [`Encoded`] writes.
    pub(crate) fn read(
        bytes: &Bytes,
        revision: u64,
        selectable: impl FnOnce(&Fields) -> Selectable,
    ) -> Option<Self> {
        const START: &[u8] = b"\"metadata\":{\"resourceVersion\":\"";
        let object: Fields = serde_json::from_slice(bytes).ok()?;
        let item_at = bytes.windows(START.len()).position(|window| window == START)?;
        let start = item_at + START.len();
        let digits = revision.to_string();
        let tail = bytes[start..].strip_prefix(digits.as_bytes())?;
        let metadata = str::from_utf8(&bytes[item_at + METADATA.len()..]).ok()?;
        let mut reader = Reader::new(metadata);
        IgnoredAny::deserialize(&mut reader).ok()?;
        let after_metadata = metadata.len() - reader.position();
        Some(Self {
            item_at,
            version_at: (start, start + digits.len()),
            metadata_end: tail.len() - after_metadata,
            owners_at: None,
            revision,
            selectable: Arc::new(selectable(&object)),
            bytes: bytes.clone(),
        })
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns true if the object has this type, whose members `kind` and `apiVersion` are given as
    /// text.
    pub(crate) fn is_of_type(&self, type_members: &str) -> bool {
        self.bytes[1..].starts_with(type_members.as_bytes())
    }

    /// Returns the members from `metadata` on, with the closing brace: the text after `{` in a list
    /// of a built-in kind.
    pub(crate) fn item(&self) -> &[u8] {
        &self.bytes[self.item_at..]
    }

    /// Returns the JSON of the metadata.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.bytes[self.item_at + METADATA.len()..self.version_at.1 + self.metadata_end]
    }

    /// Returns the JSON as a text. Its strings need no check of their own when they are read.
    fn text(&self) -> &str {
        str::from_utf8(&self.bytes).expect("JSON is UTF-8")
    }

    pub(crate) fn fields(&self) -> Fields {
        homeostat_json::from_str(self.text()).expect("stored objects are valid JSON")
    }

    /// Returns the object with packed owners: `metadata.managedFields` is the text of the list.
    /// Most writes only compare or renew it, and parsing it would take as long as parsing the rest.
    pub(crate) fn packed_fields(&self) -> Fields {
        let Some((start, end)) = self.owners_at else {
            let mut object = self.fields();
            pack_owners(&mut object);
            return object;
        };
        let (before, rest) = self.text().split_at(self.version_at.1 + start);
        let (owners, rest) = rest.split_at(end - start);
        let owners = owners[OWNERS.len()..].to_owned();
        let object = homeostat_json::from_str(&[before, rest].concat());
        let mut object: Fields = object.expect("stored objects are valid JSON");
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("managedFields".to_owned(), owners.into());
        }
        object
    }

    /// Returns the object with other selectable members.
    pub(crate) fn with_selectable(&self, selectable: Selectable) -> Self {
        Self { selectable: Arc::new(selectable), bytes: self.bytes.clone(), ..*self }
    }

    /// Returns the object with another resourceVersion, for a DELETED event.
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
            metadata_end: self.metadata_end,
            owners_at: self.owners_at,
            revision,
            selectable: Arc::clone(&self.selectable),
        }
    }
}

// === impl Selectable ===

impl Selectable {
    /// Reads the members of an object; `fields` are the values of the kind's field labels.
    pub(crate) fn of(object: &Fields, fields: Vec<String>, form: u64) -> Self {
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
            fields,
            form,
        }
    }
}

// === owners ===

/// Replaces the owners by their text, as in [`Stored::packed_fields`].
pub(crate) fn pack_owners(object: &mut Fields) {
    let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    if let Some(owners) = owners.filter(|owners| !owners.is_string()) {
        *owners = owners.to_string().into();
    }
}

/// Replaces packed owners by the list, as clients see it.
pub(crate) fn unpack_owners(object: &mut Fields) {
    let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    if let Some(owners) = owners
        && let Some(list) = owners.as_str().and_then(|packed| serde_json::from_str(packed).ok())
    {
        *owners = list;
    }
}

/// Returns a copy without owners, for readers that do not expect packed ones.
pub(crate) fn without_owners(object: &Fields) -> Fields {
    let mut copy = object.clone();
    if let Some(Value::Object(metadata)) = copy.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    copy
}

// === impl FieldLabel ===

impl FieldLabel {
    pub(crate) fn read(&self, object: &mut Paths<'_>) -> String {
        let found = self.paths.iter().find_map(|path| object.read(path));
        match found {
            None => self.missing.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_found_at_each_version_and_after_a_restart() {
        let object = json!({"metadata": {"labels": {"a": "}"}, "name": "x"}, "spec": {"a": 1}});
        let object = object.as_object().unwrap().clone();
        let types = r#""kind":"Pod","apiVersion":"v1","#;
        let stored = Encoded::new(types, Selectable::default(), object).at(7);
        let read = Stored::read(stored.bytes(), 7, |_| Selectable::default()).unwrap();
        for (version, stored) in [("7", &stored), ("7", &read), ("10", &read.at(10))] {
            let metadata: Value = serde_json::from_slice(stored.metadata()).unwrap();
            let labels = json!({"a": "}"});
            let wanted = json!({"labels": labels, "name": "x", "resourceVersion": version});
            assert_eq!(metadata, wanted);
        }
    }
}
