//! [`Members`]: an object of which only the metadata is decoded.
//!
//! [`Lazy`](super::Lazy) and [`Dynamic`](super::Dynamic) share it. The text is kept without the
//! metadata, because the metadata is decoded and would otherwise be held twice.
//!
//! Borrowed raw values make one allocation enough: the members are found in the text of the frame
//! and copied once, joined.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{KeyRef, ObjectMeta};
use crate::json::{self, Key};

/// The decoded metadata, and the other members as JSON text. One pass over the text produces both.
pub(super) struct Members {
    /// The decoded metadata.
    pub(super) metadata: ObjectMeta,
    /// The object without its metadata, as JSON.
    ///
    /// Always starts with `{` and ends with `}`. Never changed after parsing.
    others: Box<str>,
}

/// An error: the members of an object do not fit the requested type.
///
/// The message contains the key of the object and the reason, never a value of the object.
///
/// # Examples
///
/// ```
/// use homeostat_informer::Dynamic;
///
/// let json = r#"{"metadata":{"name":"a"},"spec":{"key":"hunter2"}}"#;
/// let object: Dynamic = serde_json::from_str(json)?;
/// let error = object.get::<u32>(&["spec", "key"]).unwrap_err();
/// assert!(!error.to_string().contains("hunter2"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} {reason}")]
pub struct DecodeError {
    object: String,
    reason: String,
}

/// The initial capacity for members. Most objects have at most these: apiVersion, kind, spec,
/// status, and one member of their kind.
const USUAL: usize = 6;

// === impl Members ===

impl Members {
    /// Returns the object without its metadata, as JSON.
    pub(super) fn others(&self) -> &str {
        &self.others
    }

    /// Returns the object as JSON.
    ///
    /// It encodes the metadata again. Members that the author's version of `ObjectMeta` does not
    /// know are lost.
    pub(super) fn to_json(&self) -> String {
        let metadata = serde_json::to_string(&self.metadata).expect("metadata is plain data");
        let others = &self.others[1..];
        let comma = if others == "}" { "" } else { "," };
        format!(r#"{{"metadata":{metadata}{comma}{others}"#)
    }

    /// Decodes the object with its metadata as a `T`. A panic of the decoder is an error.
    ///
    /// It parses the joined text, so that a borrowed type cannot be decoded.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let text = self.to_json();
        json::decode(&text).map_err(|reason| self.misfit(reason))
    }

    /// Returns the error for this object. `reason` must not contain content.
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
        Ok(Members { metadata, others: joined(&others) })
    }
}

/// Joins the members into one JSON object, with one allocation of the right size.
///
/// The members keep their order, so that the text is that of the server without its metadata.
fn joined(members: &[(Cow<'_, str>, &RawValue)]) -> Box<str> {
    let length = |(name, value): &(Cow<'_, str>, &RawValue)| name.len() + value.get().len() + 4;
    let mut text = String::with_capacity(2 + members.iter().map(length).sum::<usize>());
    text.push('{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        match name {
            // A borrowed name had no escapes in the text, so it needs none here.
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
