//! An object of which only the metadata is decoded.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{KeyRef, ObjectMeta};
use crate::json::{Key, describe, guarded};

/// The metadata, and the other members as the text that came. One pass over the text makes both.
pub(super) struct Members {
    pub(super) metadata: ObjectMeta,
    /// JSON: the object without its metadata.
    others: Box<str>,
}

/// Why the members of an object cannot be read as the type that was asked for.
///
/// Says which object and what does not fit, never what is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} {reason}")]
pub struct DecodeError {
    object: String,
    reason: String,
}

/// Nearly all objects have at most these: apiVersion, kind, spec, status, and one of their own.
const USUAL: usize = 6;

// === impl Members ===

impl Members {
    /// JSON: the object without its metadata.
    pub(super) fn others(&self) -> &str {
        &self.others
    }

    /// JSON: the object.
    pub(super) fn to_json(&self) -> String {
        let metadata = serde_json::to_string(&self.metadata).expect("metadata is plain data");
        let others = &self.others[1..];
        let comma = if others == "}" { "" } else { "," };
        format!(r#"{{"metadata":{metadata}{comma}{others}"#)
    }

    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let text = self.to_json();
        guarded(|| serde_json::from_str(&text).map_err(describe))
            .map_err(|reason| self.misfit(reason))
    }

    pub(super) fn misfit(&self, reason: String) -> DecodeError {
        let key = KeyRef::<()>::from_metadata(&self.metadata);
        DecodeError { object: format!("{key:?}"), reason }
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut metadata = None;
        let mut others = Vec::with_capacity(USUAL);
        while let Some(Key(name)) = map.next_key()? {
            if name == "metadata" {
                metadata = Some(map.next_value()?);
            } else {
                others.push((name, map.next_value()?));
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        Ok(Members { metadata: trimmed(metadata), others: joined(&others) })
    }
}

/// Vectors grow by doubling, from four on: one owner would hold the memory of four.
pub(super) fn trimmed(mut metadata: ObjectMeta) -> ObjectMeta {
    if let Some(owners) = &mut metadata.owner_references {
        owners.shrink_to_fit();
    }
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.shrink_to_fit();
    }
    metadata
}

/// One allocation of the right size.
fn joined(members: &[(Cow<'_, str>, &RawValue)]) -> Box<str> {
    let length = |(name, value): &(Cow<'_, str>, &RawValue)| name.len() + value.get().len() + 4;
    let mut text = String::with_capacity(2 + members.iter().map(length).sum::<usize>());
    text.push('{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        match name {
            // Borrowed from the text: there it had no escapes, so it needs none.
            Cow::Borrowed(name) => text.extend(["\"", name, "\""]),
            Cow::Owned(name) => {
                text.push_str(&serde_json::to_string(name).expect("a name is text"));
            }
        }
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    text.into_boxed_str()
}
