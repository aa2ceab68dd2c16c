//! Pages, watch events and refusals from JSON, each object parsed once and straight into its `Arc`.
//!
//! The common case is one pass. Only when an object does not fit its type is its text looked at again, for what is
//! left of it: its metadata.

mod metadata;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess,
        SeqAccess, Visitor,
    },
};
use serde_json::value::RawValue;

use super::skip_managed_fields::Skip;
use crate::list_watch::{Decoded, Page, Refusal, WatchEvent};

/// A frame of a watch.
pub(super) enum Frame<K> {
    Event(WatchEvent<K>),
    Error(Refusal),
}

/// Decodes one line of a watch. An error means that the line cannot be trusted at all.
pub(super) fn frame<K: DeserializeOwned>(line: &[u8]) -> Result<Frame<K>, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    match guarded(|| whole(text, FrameSeed(PhantomData))) {
        Ok(frame) => Ok(frame),
        Err(first) => unusual_frame(text, &first),
    }
}

/// Decodes a page of a list. An error means that it is no list; an item that does not fit is opaque.
pub(super) fn page<K: DeserializeOwned>(body: &[u8]) -> Result<Page<K>, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let list = match guarded(|| whole(text, PageSeed(Typed(PhantomData)))) {
        Ok(list) => list,
        // Some item does not fit, or nothing does: cut first, then look at each item by itself.
        Err(_) => guarded(|| whole(text, PageSeed(OneByOne(PhantomData))))?,
    };
    let version = list.metadata.resource_version.filter(|version| !version.is_empty());
    Ok(Page {
        items: list.items.ok_or("there are no items")?,
        resource_version: version.ok_or("there is no resourceVersion")?.into(),
        continue_token: list.metadata.continue_token.filter(|token| !token.is_empty()),
    })
}

/// Decodes a Status, if it is one.
pub(super) fn status(body: &[u8]) -> Option<Refusal> {
    serde_json::from_slice::<Status<'_>>(body).ok().map(Refusal::from)
}

// === one object ===

/// Parses an object into its `Arc`, without its managed fields.
fn object<'de, K: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<K>, D::Error> {
    K::deserialize(Skip::object(deserializer)).map(Arc::new)
}

/// An object by itself: fits or opaque. An error means that it is not an object, or has no name.
fn isolated<K: DeserializeOwned>(text: &str) -> Result<Decoded<K>, String> {
    match guarded(|| {
        let mut json = serde_json::Deserializer::from_str(text);
        object(&mut json).map_err(describe)
    }) {
        Ok(object) => Ok(Decoded::Fits(object)),
        Err(error) => opaque(text, error),
    }
}

fn opaque<K>(text: &str, error: String) -> Result<Decoded<K>, String> {
    match metadata::of(text) {
        Some(metadata) => Ok(Decoded::Opaque { metadata: Arc::new(metadata), error: error.into() }),
        None => Err(error),
    }
}

/// Parses the whole text: nothing but white space may follow.
fn whole<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut json).map_err(describe)?;
    json.end().map_err(describe)?;
    Ok(value)
}

/// A panic in the author's `Deserialize` is one more way of not fitting.
fn guarded<T>(parse: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| Err("its decoder panicked".to_owned()))
}

/// What went wrong and where, without what was there: the text may be a secret.
#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(describe)`")]
fn describe(error: serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("line {} column {}", error.line(), error.column());
    if text.starts_with("missing field") || text.starts_with("duplicate field") {
        return text;
    }
    match text.rfind(", expected ") {
        Some(at) if error.is_data() => format!("does not fit{}", &text[at..]),
        _ if error.is_data() => format!("does not fit at {place}"),
        _ => format!("is no JSON at {place}"),
    }
}

// === a frame ===

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

struct FrameSeed<K>(PhantomData<fn() -> K>);

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
                FrameField::Type => kind = Some(map.next_value()?),
                FrameField::Object => {
                    // Servers send the type first. Whatever does not is read the long way.
                    let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
                    frame = Some(map.next_value_seed(PayloadSeed(kind, PhantomData))?);
                }
                FrameField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        frame.ok_or_else(|| A::Error::missing_field("object"))
    }
}

struct PayloadSeed<K>(FrameType, PhantomData<fn() -> K>);

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for PayloadSeed<K> {
    type Value = Frame<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Frame<K>, D::Error> {
        Ok(match self.0 {
            FrameType::Added | FrameType::Modified => {
                Frame::Event(WatchEvent::Applied(Decoded::Fits(object(deserializer)?)))
            }
            FrameType::Deleted => {
                Frame::Event(WatchEvent::Deleted(Decoded::Fits(object(deserializer)?)))
            }
            FrameType::Bookmark => Bookmark::deserialize(deserializer)?.into_frame(),
            FrameType::Error => Frame::Error(Status::deserialize(deserializer)?.into()),
        })
    }
}

/// A frame that the one-pass decoder did not take: the type comes last, or the object does not fit.
fn unusual_frame<K: DeserializeOwned>(text: &str, first: &str) -> Result<Frame<K>, String> {
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
            Frame::Event(WatchEvent::Applied(isolated(object).map_err(first)?))
        }
        FrameType::Deleted => Frame::Event(WatchEvent::Deleted(isolated(object).map_err(first)?)),
        FrameType::Bookmark => {
            serde_json::from_str::<Bookmark>(object).map_err(describe).map_err(first)?.into_frame()
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
    fn into_frame<K>(self) -> Frame<K> {
        let annotations = self.metadata.annotations.unwrap_or_default();
        let end = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
        Frame::Event(WatchEvent::Bookmark {
            resource_version: self.metadata.resource_version.into(),
            initial_events_end: end,
        })
    }
}

// === a page ===

/// How the items of a list are read.
trait ReadItem<'de> {
    type Item;
    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Self::Item>, A::Error>;
}

/// Straight into their type; the first that does not fit spoils the pass.
struct Typed<K>(PhantomData<fn() -> K>);

/// Cut out first, so that each stands for itself.
struct OneByOne<K>(PhantomData<fn() -> K>);

struct PageSeed<R>(R);

struct ItemsSeed<'a, R>(&'a R);

struct List<K> {
    metadata: ListMetadata,
    items: Option<Vec<Decoded<K>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default, rename = "continue")]
    continue_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ListField {
    Metadata,
    Items,
    #[serde(other)]
    Other,
}

impl<'de, K: DeserializeOwned> ReadItem<'de> for Typed<K> {
    type Item = Decoded<K>;

    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Decoded<K>>, A::Error> {
        struct Seed<K>(PhantomData<fn() -> K>);
        impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for Seed<K> {
            type Value = Arc<K>;
            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Arc<K>, D::Error> {
                object(json)
            }
        }
        Ok(access.next_element_seed(Seed(PhantomData))?.map(Decoded::Fits))
    }
}

impl<'de, K: DeserializeOwned> ReadItem<'de> for OneByOne<K> {
    type Item = Decoded<K>;

    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Decoded<K>>, A::Error> {
        let Some(raw) = access.next_element::<&'de RawValue>()? else { return Ok(None) };
        isolated(raw.get()).map(Some).map_err(A::Error::custom)
    }
}

impl<'de, K, R: ReadItem<'de, Item = Decoded<K>>> DeserializeSeed<'de> for PageSeed<R> {
    type Value = List<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K, R: ReadItem<'de, Item = Decoded<K>>> Visitor<'de> for PageSeed<R> {
    type Value = List<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<K>, A::Error> {
        let mut list = List { metadata: ListMetadata::default(), items: None };
        while let Some(field) = map.next_key()? {
            match field {
                ListField::Metadata => list.metadata = map.next_value()?,
                ListField::Items => list.items = Some(map.next_value_seed(ItemsSeed(&self.0))?),
                ListField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(list)
    }
}

impl<'de, R: ReadItem<'de>> DeserializeSeed<'de> for ItemsSeed<'_, R> {
    type Value = Vec<R::Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: ReadItem<'de>> Visitor<'de> for ItemsSeed<'_, R> {
    type Value = Vec<R::Item>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        // Go's nil slice.
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = self.0.next(&mut access)? {
            items.push(item);
        }
        Ok(items)
    }
}

// === a refusal ===

#[derive(Deserialize)]
struct Status<'a> {
    #[serde(default)]
    code: u16,
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default)]
    details: Option<StatusDetails>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct StatusDetails {
    #[serde(default)]
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    causes: Option<Vec<StatusCause>>,
}

#[derive(Deserialize)]
struct StatusCause {
    #[serde(default)]
    reason: Option<String>,
}

impl From<Status<'_>> for Refusal {
    fn from(status: Status<'_>) -> Self {
        let details = status.details.unwrap_or_default();
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned).unwrap_or_default();
        let mut refusal = Self::new(status.code, text(status.reason), text(status.message));
        refusal.retry_after =
            details.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        refusal.causes = details
            .causes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|cause| cause.reason)
            .collect();
        refusal
    }
}

#[cfg(test)]
mod tests;
