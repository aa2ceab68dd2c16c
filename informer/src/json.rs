//! Decoding JSON from a server: error texts contain no content, and a panic of a decoder is an
//! error.
//!
//! serde's messages quote the input: `invalid value: string "hunter2"`. An object may be a Secret
//! and an error goes to logs, so each message is reduced before it leaves this module. Panics are
//! caught here and not in the callers, because a decoder is the author's code wherever JSON is
//! parsed.

use std::borrow::Cow;
use std::fmt;

use homeostat_core::user_code;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};

/// Runs the author's `Deserialize`. Its panic is reported like an object that does not fit.
///
/// The panic's message is not part of the result, because it may contain a value of the object.
pub(crate) fn guarded<T>(parse: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    user_code("decoder", parse).unwrap_or_else(|_| Err("its decoder panicked".to_owned()))
}

/// Decodes a complete text.
///
/// # Errors
/// Returns the reason if the text does not fit, without a part of the text.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    guarded(|| homeostat_json::from_str(text).map_err(describe))
}

/// Returns the error and its place, without the text around it: that may be a secret.
///
/// Keeps the part that comes from the type: a field's name that is missing or duplicate, or the
/// expected form. Of a message that the author's decoder has written, and for text that is not
/// JSON, only the line and the column are kept.
#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(describe)`")]
pub(crate) fn describe(error: serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("line {} column {}", error.line(), error.column());
    if text.starts_with("missing field") || text.starts_with("duplicate field") {
        return text;
    }
    let is_serde = SERDE.iter().any(|start| text.starts_with(start));
    match text.rfind(", expected ") {
        Some(at) if error.is_data() && is_serde => format!("does not fit{}", &text[at..]),
        _ if error.is_data() => format!("does not fit at {place}"),
        _ => format!("is no JSON at {place}"),
    }
}

/// The starts of serde's own messages, which end with the expected form.
const SERDE: [&str; 5] =
    ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant ", "unknown field "];

/// The characters that may stand between two tokens.
pub(crate) const WHITE_SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

/// A key, borrowed from the input unless it holds an escape.
///
/// `serde_json` lends keys without escapes, so a key of a usual object allocates nothing. A plain
/// `Cow` would always be owned when serde decodes it.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E: Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}
