//! Pages, watch events and refusals from JSON, each object parsed once and straight into its `Arc`.
//!
//! The common case is one pass. Only when an object does not fit its type is its text looked at again, for what is
//! left of it: its metadata.

mod frame;
mod metadata;
mod page;
mod status;

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer};

use self::{
    frame::{FrameSeed, unusual_frame},
    page::{OneByOne, PageSeed, Typed},
    status::Status,
};
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

/// Decodes a page of a list. An error means that it is no list; an item that does not fit is opaque, and left out if it
/// has not even a name.
pub(super) fn page<K: DeserializeOwned>(body: &[u8]) -> Result<Page<K>, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let list = match guarded(|| whole(text, PageSeed(Typed(PhantomData)))) {
        Ok(list) => list,
        // Some item does not fit, or nothing does: cut first, then look at each item by itself.
        Err(_) => guarded(|| whole(text, PageSeed(OneByOne(PhantomData))))?,
    };
    let version = list.metadata.resource_version.filter(|version| is_point(version));
    Ok(Page {
        items: list.items.ok_or("there are no items")?,
        resource_version: version.ok_or("there is no resourceVersion")?.into(),
        continue_token: list.metadata.continue_token.filter(|token| !token.is_empty()),
    })
}

/// Whether a version names a point in history. In a question, an empty one and "0" mean any point.
fn is_point(version: &str) -> bool {
    !matches!(version, "" | "0")
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

#[cfg(test)]
mod tests;
