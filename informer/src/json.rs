//! Decoding JSON that others wrote, with what others wrote: errors that leak nothing, panics that stay where they are.

use std::{
    borrow::Cow,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// A panic in the author's `Deserialize` is one more way of not fitting.
pub(crate) fn guarded<T>(parse: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| Err("its decoder panicked".to_owned()))
}

/// What went wrong and where, without what was there: the text may be a secret.
#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(describe)`")]
pub(crate) fn describe(error: serde_json::Error) -> String {
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

/// A key, borrowed from the input unless it holds an escape.
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
