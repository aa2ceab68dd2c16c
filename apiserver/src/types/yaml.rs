//! The dialect of YAML that Go reads: YAML 1.1, of which only the first document counts.

use serde::de::DeserializeSeed;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Decodes the first document of YAML. Of a key that occurs twice the last value counts.
///
/// # Errors
///
/// Fails if the text is not YAML, or beyond the limits of aliases, nesting and size.
pub(super) fn decode<S, T>(bytes: &[u8], seed: S) -> Result<T, serde_saphyr::Error>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    let text = String::from_utf8_lossy(bytes);
    serde_saphyr::with_deserializer_from_str_with_options(
        first_document(&text),
        options(),
        |deserializer| seed.deserialize(deserializer),
    )
}

fn options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options.legacy_octal_numbers = true;
    options.with_snippet = false;
    options
}

/// Returns the text up to the line that starts a second document.
fn first_document(text: &str) -> &str {
    let from = if text.starts_with("---") { 3 } else { 0 };
    let end = text[from..].find("\n---").map_or(text.len(), |end| from + end + 1);
    &text[..end]
}
