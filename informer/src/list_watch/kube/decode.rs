//! Decodes lists, watch events and Statuses from JSON. Each object is parsed once, straight into
//! its `Arc`.
//!
//! The common case is one pass of a [`Reader`]. Only if that fails is the text parsed again, by
//! `serde_json`: an object that does not fit its type, of which the metadata is saved, or one with
//! a value that the reader leaves out.
//!
//! That second pass reads each object alone, so that one misfit does not affect the others. An item
//! of a list that fails alone has no usable name and is skipped. A frame that fails both passes
//! ends the watch, and the reflector resumes after the last good event.
//!
//! Panics of a `Deserialize` implementation are caught and count as an object that does not fit:
//! the author's types must not end the informer.

mod frame;
mod list;
mod metadata;
mod status;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use homeostat_json::{Reader, Unfit};
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny};

use self::frame::{FrameSeed, unusual_frame};
pub(super) use self::list::{ListDecoder, Progress};
use self::status::Status;
use super::prune::Prune;
use super::skip::Skip;
use crate::json::{describe, guarded};
use crate::list_watch::{ApiError, Decoded, WatchEvent};

/// The author's decoding options.
///
/// A clone shares the tree of skipped members, so that each decoding task has its own decoder.
pub(super) struct Decoder<K> {
    /// The members that are skipped.
    prune: Arc<Prune>,
    object: PhantomData<fn() -> K>,
}

/// One frame of a watch: an event, or the error that ends it.
pub(super) enum Frame<K> {
    Event(WatchEvent<K>),
    Error(ApiError),
}

// === impl Decoder ===

impl<K: DeserializeOwned> Decoder<K> {
    /// Returns a decoder that skips `metadata.managedFields`.
    pub(super) fn new() -> Self {
        let mut decoder = Self { prune: Arc::default(), object: PhantomData };
        decoder.set_managed_fields(false);
        decoder
    }

    /// Keeps or skips `metadata.managedFields`.
    ///
    /// They are skipped by default. A decoder that is running is not affected: it has its own tree.
    pub(super) fn set_managed_fields(&mut self, keep: bool) {
        let prune = Arc::make_mut(&mut self.prune);
        if keep {
            prune.remove(&["metadata", MANAGED_FIELDS]);
        } else {
            prune.add("metadata.managedFields").expect("the path is valid");
        }
    }

    /// Skips the member at `path`.
    ///
    /// # Errors
    /// Returns the reason if the path is malformed or drops the identity of an object.
    pub(super) fn skip(&mut self, path: &str) -> Result<(), String> {
        Arc::make_mut(&mut self.prune).add(path)
    }

    /// Decodes one line of a watch.
    ///
    /// # Errors
    /// Returns the reason if the line is not a valid frame, so that nothing in it can be trusted.
    pub(super) fn frame(&self, line: &[u8]) -> Result<Frame<K>, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        if let Some(frame) = self.usual_frame(text) {
            return Ok(frame);
        }
        guarded(|| parse(text, FrameSeed(self))).or_else(|first| unusual_frame(text, self, &first))
    }

    /// Decodes a frame in one pass; `None` if it is left to `serde_json`.
    fn usual_frame(&self, text: &str) -> Option<Frame<K>> {
        guarded(|| {
            homeostat_json::read(text, |reader| FrameSeed(self).deserialize(reader)).map_err(unfit)
        })
        .ok()
    }

    /// Decodes the object at the start of `text` in one pass, and returns it with its length;
    /// `None` if it is left to `serde_json`, or incomplete.
    fn usual_object(&self, text: &str) -> Option<(Arc<K>, usize)> {
        let mut end = Reader::new(text);
        IgnoredAny::deserialize(&mut end).ok()?;
        let text = &text[..end.position()];
        let object =
            guarded(|| homeostat_json::read(text, |reader| self.object(reader)).map_err(unfit));
        Some((object.ok()?, text.len()))
    }

    /// Decodes a complete list.
    ///
    /// # Errors
    /// Returns the reason if the body is not a list.
    #[cfg(test)]
    pub(super) fn page(&self, body: &[u8]) -> Result<crate::list_watch::Page<K>, String> {
        let mut list = ListDecoder::new(self.clone(), usize::MAX);
        list.feed(body);
        while list.decode()? == Progress::Busy {}
        list.finish()
    }

    /// Parses an object into its `Arc`, without the members that are skipped.
    ///
    /// If there are none, the deserializer is used as it is, without the adaptor.
    fn object<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Arc<K>, D::Error> {
        let object = if self.prune.is_leaf() {
            K::deserialize(deserializer)
        } else {
            K::deserialize(Skip::new(deserializer, &self.prune))
        };
        object.map(Arc::new)
    }

    /// Decodes one object alone: it fits, or is opaque.
    ///
    /// The text of the error names the member and the reason, and no value of the object: the error
    /// is logged.
    ///
    /// # Errors
    /// Returns the reason if the text is not an object, or an object without a name.
    fn isolated(&self, text: &str) -> Result<Decoded<K>, String> {
        match guarded(|| {
            let mut json = serde_json::Deserializer::from_str(text);
            self.object(&mut json).map_err(describe)
        }) {
            Ok(object) => Ok(Decoded::Fits(object)),
            Err(error) => match metadata::of(text, &self.prune) {
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
        Self { prune: Arc::clone(&self.prune), object: PhantomData }
    }
}

impl<K> fmt::Debug for Decoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

// === parts ===

/// The member of an object's metadata that says who owns which field.
const MANAGED_FIELDS: &str = "managedFields";

/// Returns an empty text: this error is not shown.
fn unfit(_: Unfit) -> String {
    String::new()
}

/// Decodes a Status; `None` if `body` is not one.
pub(super) fn status(body: &[u8]) -> Option<ApiError> {
    serde_json::from_slice::<Status<'_>>(body).ok().map(ApiError::from)
}

/// Parses the complete text. Only white space may follow the value.
fn parse<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut json).map_err(describe)?;
    json.end().map_err(describe)?;
    Ok(value)
}

#[cfg(test)]
mod tests;
