//! One line of a watch.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
    },
};
use serde_json::value::RawValue;

use super::{Decoder, Frame, is_point, status::Status};
use crate::{
    json::describe,
    list_watch::{Decoded, WatchEvent},
};

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum FrameType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum FrameField {
    Type,
    Object,
    #[serde(other)]
    Other,
}

pub(super) struct FrameSeed<K>(pub(super) Decoder<K>);

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for FrameSeed<K> {
    type Value = Frame<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Frame<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: DeserializeOwned> Visitor<'de> for FrameSeed<K> {
    type Value = Frame<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Frame<K>, A::Error> {
        let mut kind = None;
        let mut frame = None;
        while let Some(field) = map.next_key()? {
            match field {
                // Said twice, nobody knows which one the sender means.
                FrameField::Type if kind.is_some() => {
                    return Err(A::Error::duplicate_field("type"));
                }
                FrameField::Object if frame.is_some() => {
                    return Err(A::Error::duplicate_field("object"));
                }
                FrameField::Type => kind = Some(map.next_value()?),
                FrameField::Object => {
                    // Servers send the type first. Whatever does not is read the long way.
                    let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
                    frame = Some(map.next_value_seed(PayloadSeed(kind, self.0))?);
                }
                FrameField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        frame.ok_or_else(|| A::Error::missing_field("object"))
    }
}

struct PayloadSeed<K>(FrameType, Decoder<K>);

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for PayloadSeed<K> {
    type Value = Frame<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Frame<K>, D::Error> {
        Ok(match self.0 {
            FrameType::Added | FrameType::Modified => {
                Frame::Event(WatchEvent::Applied(Decoded::Fits(self.1.object(deserializer)?)))
            }
            FrameType::Deleted => {
                Frame::Event(WatchEvent::Deleted(Decoded::Fits(self.1.object(deserializer)?)))
            }
            FrameType::Bookmark => {
                let frame = Bookmark::deserialize(deserializer)?.into_frame();
                frame.ok_or_else(|| D::Error::missing_field("resourceVersion"))?
            }
            FrameType::Error => Frame::Error(Status::deserialize(deserializer)?.into()),
        })
    }
}

/// A frame that the one-pass decoder did not take: the type comes last, or the object does not fit.
pub(super) fn unusual_frame<K: DeserializeOwned>(
    text: &str,
    decoder: Decoder<K>,
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
            bookmark.map_err(first)?.into_frame().ok_or("a bookmark without a version")?
        }
        FrameType::Error => Frame::Error(
            serde_json::from_str::<Status<'_>>(object).map_err(describe).map_err(first)?.into(),
        ),
    })
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Bookmark {
    /// Nothing, if it marks nothing.
    fn into_frame<K>(self) -> Option<Frame<K>> {
        if !is_point(&self.metadata.resource_version) {
            return None;
        }
        let annotations = self.metadata.annotations.unwrap_or_default();
        let end = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
        Some(Frame::Event(WatchEvent::Bookmark {
            resource_version: self.metadata.resource_version.into(),
            initial_events_end: end,
        }))
    }
}
