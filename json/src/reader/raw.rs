//! [`Raw`]: the text of a value, in the form that `serde_json` gives it.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::{Result, Unfit};

/// A value as raw text, in the form that `serde_json` gives it.
pub(super) struct Raw<'de>(Option<&'de str>);

/// The name that `serde_json` gives to the type of a raw text.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

// === impl Raw ===

impl<'de> Raw<'de> {
    /// Gives `text` to the visitor once.
    pub(super) fn new(text: &'de str) -> Self {
        Self(Some(text))
    }
}

/// A map whose only member is the text, under the name of the type.
impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = Unfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let text = self.0.take().ok_or(Unfit)?;
        seed.deserialize(BorrowedStrDeserializer::new(text))
    }
}
