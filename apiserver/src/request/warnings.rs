//! The `Warning` headers of a reply.

use http::HeaderValue;
use parking_lot::Mutex;

/// The warnings of one request.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    texts: Mutex<Vec<String>>,
}

/// Once all warnings together are longer than this, in characters, each is truncated.
const MAX_TOTAL: usize = 4096;
/// The length of a truncated warning, in characters.
const MAX_TRUNCATED: usize = 256;

// === impl Warnings ===

impl Warnings {
    /// Returns the warnings of a request whose credentials have this one, unless it is empty.
    pub(crate) fn of(credentials: &str) -> Self {
        let warnings = Self::default();
        warnings.add(credentials);
        warnings
    }

    /// Adds a warning, once.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let (text, mut texts) = (text.into(), self.texts.lock());
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }

    pub(crate) fn extend(&self, texts: impl IntoIterator<Item = impl Into<String>>) {
        for text in texts {
            self.add(text);
        }
    }

    pub(crate) fn headers(&self) -> Vec<HeaderValue> {
        let texts = self.texts.lock();
        let lengths = texts.iter().map(|text| text.chars().count());
        if lengths.sum::<usize>() <= MAX_TOTAL {
            return texts.iter().filter_map(|text| header(text)).collect();
        }
        let (mut written, mut headers, mut total) = (0, Vec::new(), 0);
        for text in texts.iter() {
            let length = text.chars().count();
            // Warnings before the limit stay; each later one must fit.
            if total > MAX_TOTAL && written >= MAX_TOTAL {
                break;
            }
            total += length;
            written += length.min(MAX_TRUNCATED);
            headers.extend(header(&text.chars().take(MAX_TRUNCATED).collect::<String>()));
        }
        headers
    }
}

/// Formats `299 - "text"`, with the text escaped for a header.
fn header(text: &str) -> Option<HeaderValue> {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_warning_is_sent_once_and_quoted() {
        let warnings = Warnings::default();
        warnings.add("unknown field \"a\"");
        warnings.add("unknown field \"a\"");
        warnings.add("");
        assert_eq!(warnings.headers(), ["299 - \"unknown field \\\"a\\\"\""]);
    }

    #[test]
    fn many_long_warnings_are_truncated() {
        let warnings = Warnings::default();
        for c in 'a'..='z' {
            warnings.add(c.to_string().repeat(300));
        }
        let headers = warnings.headers();
        assert_eq!(headers.len(), MAX_TOTAL / MAX_TRUNCATED);
        assert!(headers.iter().all(|header| header.len() == MAX_TRUNCATED + "299 - \"\"".len()));
    }
}
