//! Pages, watch events and refusals from JSON, each object parsed once and straight into its `Arc`.
//!
//! The common case is one pass. Only when an object does not fit its type is its text looked at again, for what is
//! left of it: its metadata.

mod frame;
mod metadata;
mod page;
mod status;

use std::{fmt, sync::Arc};

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer};

use self::{
    frame::{FrameSeed, unusual_frame},
    page::{PageSeed, ReadItems},
    status::Status,
};
use super::skip_managed_fields::Skip;
use crate::{
    json::{describe, guarded},
    list_watch::{Decoded, Page, Refusal, WatchEvent},
};

/// How objects are decoded: what the author chose.
pub(super) struct Decoder<K> {
    pub(super) managed_fields: bool,
    /// Makes the shared object of the one that was parsed.
    pub(super) share: fn(K) -> Arc<K>,
}

/// A frame of a watch.
pub(super) enum Frame<K> {
    Event(WatchEvent<K>),
    Error(Refusal),
}

// === impl Decoder ===

impl<K: DeserializeOwned> Decoder<K> {
    pub(super) fn new() -> Self {
        Self { managed_fields: false, share: Arc::new }
    }

    /// Decodes one line of a watch. An error means that the line cannot be trusted at all.
    pub(super) fn frame(self, line: &[u8]) -> Result<Frame<K>, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        match guarded(|| whole(text, FrameSeed(self))) {
            Ok(frame) => Ok(frame),
            Err(first) => unusual_frame(text, self, &first),
        }
    }

    /// Decodes a page of a list. An error means that it is no list; an item that does not fit is opaque, and left out
    /// if it has not even a name.
    pub(super) fn page(self, body: &[u8]) -> Result<Page<K>, String> {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
        let read = |items| guarded(|| whole(text, PageSeed { decoder: self, items }));
        // If some item does not fit, or nothing does: cut first, then look at each item by itself.
        let list = read(ReadItems::Typed).or_else(|_| read(ReadItems::OneByOne))?;
        let version = list.metadata.resource_version.filter(|version| is_point(version));
        let items = list.items.ok_or("there are no items")?;
        let mut page = Page::new(items.decoded, version.ok_or("there is no resourceVersion")?);
        page.continue_token = list.metadata.continue_token.filter(|token| !token.is_empty());
        page.left_out = items.left_out;
        if let Some(error) = items.first_error {
            tracing::warn!(left_out = items.left_out, %error, "items of a list have no name");
        }
        Ok(page)
    }

    /// Parses an object into its `Arc`.
    fn object<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Arc<K>, D::Error> {
        let object = if self.managed_fields {
            K::deserialize(deserializer)
        } else {
            K::deserialize(Skip::object(deserializer))
        };
        object.map(self.share)
    }

    /// An object by itself: fits or opaque. An error means that it is not an object, or has no name.
    fn isolated(self, text: &str) -> Result<Decoded<K>, String> {
        match guarded(|| {
            let mut json = serde_json::Deserializer::from_str(text);
            self.object(&mut json).map_err(describe)
        }) {
            Ok(object) => Ok(Decoded::Fits(object)),
            Err(error) => match metadata::of(text) {
                Some(metadata) => {
                    Ok(Decoded::Opaque { metadata: Arc::new(metadata), error: error.into() })
                }
                None => Err(error),
            },
        }
    }
}

impl<K> Clone for Decoder<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Decoder<K> {}

impl<K> fmt::Debug for Decoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

// === parts ===

/// Decodes a Status, if it is one.
pub(super) fn status(body: &[u8]) -> Option<Refusal> {
    serde_json::from_slice::<Status<'_>>(body).ok().map(Refusal::from)
}

/// Whether a version names a point in history. In a question, an empty one and "0" mean any point.
fn is_point(version: &str) -> bool {
    !matches!(version, "" | "0")
}

/// Parses the whole text: nothing but white space may follow.
fn whole<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut json).map_err(describe)?;
    json.end().map_err(describe)?;
    Ok(value)
}

#[cfg(test)]
mod tests;
