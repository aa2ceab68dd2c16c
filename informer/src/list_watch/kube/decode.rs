//! Decodes lists, watch events and Statuses from JSON. Each object is parsed once, straight into
//! its `Arc`.
//!
//! The common case is one pass, before which a scanner removes the entries of
//! `metadata.managedFields` from the text of a watch event. The text is parsed a second time only
//! if an object does not fit its type, to save its metadata, or is read as raw text.
//!
//! A second pass reads each object alone, so that one misfit does not affect the others. An item of
//! a list that fails alone has no usable name and is skipped. A frame that fails both passes ends
//! the watch, and the reflector resumes after the last good event.
//!
//! Panics of a `Deserialize` implementation are caught and count as an object that does not fit:
//! the author's types must not end the informer.

mod frame;
mod list;
mod metadata;
mod status;

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer};

use self::frame::{FrameSeed, unusual_frame};
pub(super) use self::list::{ListDecoder, Progress};
use self::status::Status;
use super::prune::Prune;
use super::shorten::{MANAGED_FIELDS, without_managed_fields};
use super::skip::Skip;
use crate::json::{describe, guarded};
use crate::list_watch::{ApiError, Decoded, WatchEvent};

/// The author's decoding options.
///
/// A clone shares the tree of skipped members, so that each decoding task has its own decoder.
pub(super) struct Decoder<K> {
    /// The members that are skipped.
    prune: Arc<Prune>,
    /// The same for the text of a frame without the entries of `metadata.managedFields`. `None` if
    /// these are kept.
    shortened: Option<Arc<Prune>>,
    /// Converts the parsed object into a shared one.
    pub(super) share: fn(K) -> Arc<K>,
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
        let mut decoder = Self { prune: Arc::default(), shortened: None, share: Arc::new };
        decoder.set_managed_fields(false);
        decoder
    }

    /// Keeps or skips `metadata.managedFields`.
    ///
    /// They are skipped by default. A decoder that is running is not affected: it has its own tree.
    pub(super) fn set_managed_fields(&mut self, keep: bool) {
        let prune = Arc::make_mut(&mut self.prune);
        if keep {
            prune.remove(&MANAGED_FIELDS);
        } else {
            prune.add(&MANAGED_FIELDS.join(".")).expect("the path is valid");
        }
        self.set_shortened();
    }

    /// Skips the member at `path`.
    ///
    /// # Errors
    /// Returns the reason if the path is malformed or drops the identity of an object.
    pub(super) fn skip(&mut self, path: &str) -> Result<(), String> {
        Arc::make_mut(&mut self.prune).add(path)?;
        self.set_shortened();
        Ok(())
    }

    /// Derives the tree for shortened frames after the tree for complete ones has changed.
    fn set_shortened(&mut self) {
        self.shortened = self.prune.without_elements(&MANAGED_FIELDS).map(Arc::new);
    }

    /// Decodes one line of a watch. `buffer` holds a copy of it without the entries of
    /// `metadata.managedFields`; its memory serves the next line.
    ///
    /// If the object of a shortened frame does not fit, the complete frame is decoded.
    ///
    /// # Errors
    /// Returns the reason if the line is not a valid frame, so that nothing in it can be trusted.
    pub(super) fn frame(&self, line: &[u8], buffer: &mut String) -> Result<Frame<K>, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        let usual = self
            .shortened_frame(text, buffer)
            .unwrap_or_else(|| guarded(|| parse(text, FrameSeed(self, &self.prune))));
        usual.or_else(|first| unusual_frame(text, self, &first))
    }

    /// Decodes the frame without the entries of `metadata.managedFields`; `None` if there are none.
    ///
    /// # Errors
    /// Returns the reason if the rest is not a usual frame with an object that fits, or if `K`
    /// reads its metadata as raw text.
    fn shortened_frame(&self, text: &str, buffer: &mut String) -> Option<Result<Frame<K>, String>> {
        let prune = self.shortened.as_deref()?;
        let text = without_managed_fields(text, buffer)?;
        Some(guarded(|| parse(text, FrameSeed(self, prune))))
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

    /// Parses an object into its `Arc`, without the members that `prune` skips.
    ///
    /// Without skipped members the deserializer is used as it is, without the adaptor.
    fn object<'de, D: Deserializer<'de>>(
        &self,
        deserializer: D,
        prune: &Prune,
    ) -> Result<Arc<K>, D::Error> {
        let object = if prune.is_leaf() {
            K::deserialize(deserializer)
        } else {
            K::deserialize(Skip::new(deserializer, prune))
        };
        object.map(self.share)
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
            self.object(&mut json, &self.prune).map_err(describe)
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
        Self {
            prune: Arc::clone(&self.prune),
            shortened: self.shortened.clone(),
            share: self.share,
        }
    }
}

impl<K> fmt::Debug for Decoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

// === parts ===

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
