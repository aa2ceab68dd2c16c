//! Decodes one line of a watch.
//!
//! [`FrameSeed`] is the usual pass: it reads the type, then parses the object straight into the
//! type that the event needs. [`unusual_frame`] is the second one.
//!
//! A frame is `{"type":"MODIFIED","object":{…}}`. API servers send the type first, so that the
//! object is parsed once, without an intermediate value. The second pass runs only for frames that
//! the first one rejects: a type after the object, and an object that does not fit its type.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};
use serde_json::value::RawValue;

use super::status::Status;
use super::{Decoder, Frame};
use crate::json::describe;
use crate::list_watch::{Decoded, WatchEvent};
use crate::object::ResourceVersion;

/// The `type` of a frame. Another type fails the frame.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum FrameType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// The members of a frame. Others are skipped.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum FrameField {
    Type,
    Object,
    #[serde(other)]
    Other,
}

/// The seed of a frame in the usual form: the type first, an object that fits.
pub(super) struct FrameSeed<'a, K>(pub(super) &'a Decoder<K>);

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for FrameSeed<'_, K> {
    type Value = Frame<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Frame<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// Rejects a frame with a field sent twice, a frame without an object, and one whose object comes
/// before its type.
impl<'de, K: DeserializeOwned> Visitor<'de> for FrameSeed<'_, K> {
    type Value = Frame<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Frame<K>, A::Error> {
        let mut kind = None;
        let mut frame = None;
        while let Some(field) = map.next_key()? {
            match field {
                // With a field sent twice, it is unknown which value the sender means.
                FrameField::Type if kind.is_some() => {
                    return Err(A::Error::duplicate_field("type"));
                }
                FrameField::Object if frame.is_some() => {
                    return Err(A::Error::duplicate_field("object"));
                }
                FrameField::Type => kind = Some(map.next_value()?),
                FrameField::Object => {
                    // API servers send the type first. A frame with another order is decoded in a
                    // second pass.
                    let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
                    frame = Some(map.next_value_seed(PayloadSeed(kind, &self))?);
                }
                FrameField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        frame.ok_or_else(|| A::Error::missing_field("object"))
    }
}

/// The seed of a frame's object, once its type is known.
///
/// `ADDED` and `MODIFIED` both become `Applied`: the store decides from what it has, because a
/// watch that starts again sends `ADDED` for known objects.
struct PayloadSeed<'a, K>(FrameType, &'a FrameSeed<'a, K>);

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for PayloadSeed<'_, K> {
    type Value = Frame<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Frame<K>, D::Error> {
        let FrameSeed(decoder) = self.1;
        Ok(match self.0 {
            FrameType::Added | FrameType::Modified => {
                Frame::Event(WatchEvent::Applied(Decoded::Fits(decoder.object(deserializer)?)))
            }
            FrameType::Deleted => {
                Frame::Event(WatchEvent::Deleted(Decoded::Fits(decoder.object(deserializer)?)))
            }
            FrameType::Bookmark => {
                let frame = Bookmark::deserialize(deserializer)?.into_frame();
                frame.ok_or_else(|| D::Error::missing_field("resourceVersion"))?
            }
            FrameType::Error => Frame::Error(Status::deserialize(deserializer)?.into()),
        })
    }
}

/// Decodes a frame that the one-pass decoder rejected: the type comes last, or the object does not
/// fit.
///
/// The raw text of the object is borrowed, so that the pass copies only the decoded object.
///
/// # Errors
/// Returns `first`, the error of the first pass, unless the second pass succeeds.
pub(super) fn unusual_frame<K: DeserializeOwned>(
    text: &str,
    decoder: &Decoder<K>,
    first: &str,
) -> Result<Frame<K>, String> {
    #[derive(Deserialize)]
    struct RawFrame<'a> {
        #[serde(rename = "type")]
        kind: FrameType,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let raw: RawFrame<'_> = serde_json::from_str(text).map_err(|_| first.to_owned())?;
    let object = raw.object.get();
    let first = |_| first.to_owned();
    Ok(match raw.kind {
        FrameType::Added | FrameType::Modified => {
            Frame::Event(WatchEvent::Applied(decoder.isolated(object).map_err(first)?))
        }
        FrameType::Deleted => {
            Frame::Event(WatchEvent::Deleted(decoder.isolated(object).map_err(first)?))
        }
        FrameType::Bookmark => {
            let bookmark = serde_json::from_str::<Bookmark>(object).map_err(describe);
            bookmark.map_err(first)?.into_frame().ok_or("bookmark without a version")?
        }
        FrameType::Error => Frame::Error(
            serde_json::from_str::<Status<'_>>(object).map_err(describe).map_err(first)?.into(),
        ),
    })
}

/// The object of a bookmark, of which only the metadata counts.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

/// The annotation `k8s.io/initial-events-end` marks the bookmark that completes the initial events
/// (KEP-3157).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Bookmark {
    /// Returns `None` if the bookmark has no usable version.
    fn into_frame<K>(self) -> Option<Frame<K>> {
        let resource_version = ResourceVersion::from(self.metadata.resource_version);
        if !resource_version.is_point() {
            return None;
        }
        let annotations = self.metadata.annotations.unwrap_or_default();
        let end = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
        Some(Frame::Event(WatchEvent::Bookmark { resource_version, initial_events_end: end }))
    }
}
