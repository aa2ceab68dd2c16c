//! What a client is warned of, beside the answer.

use http::HeaderValue;
use parking_lot::Mutex;

/// The warnings of one call.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    texts: Mutex<Vec<String>>,
}

/// Once the warnings are longer than this together, in characters, each is cut.
const LONGEST: usize = 4096;
/// To so many characters.
const CUT: usize = 256;

// === impl Warnings ===

impl Warnings {
    /// Adds a warning; what has been said is not said again.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let (text, mut texts) = (text.into(), self.texts.lock());
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }

    pub(crate) fn extend(&self, texts: Vec<String>) {
        for text in texts {
            self.add(text);
        }
    }

    pub(crate) fn headers(&self) -> Vec<HeaderValue> {
        let texts = self.texts.lock();
        let lengths = texts.iter().map(|text| text.chars().count());
        if lengths.sum::<usize>() <= LONGEST {
            return texts.iter().filter_map(|text| header(text)).collect();
        }
        let (mut written, mut headers, mut total) = (0, Vec::new(), 0);
        for text in texts.iter() {
            let length = text.chars().count();
            // Those that were said before the limit was reached stay; each after it needs room.
            if total > LONGEST && written >= LONGEST {
                break;
            }
            total += length;
            written += length.min(CUT);
            headers.extend(header(&text.chars().take(CUT).collect::<String>()));
        }
        headers
    }
}

/// `299 - "text"`: the text in the quotes of a header.
fn header(text: &str) -> Option<HeaderValue> {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_said_once_and_quoted() {
        let warnings = Warnings::default();
        warnings.add("unknown field \"a\"");
        warnings.add("unknown field \"a\"");
        warnings.add("");
        assert_eq!(warnings.headers(), ["299 - \"unknown field \\\"a\\\"\""]);
    }

    #[test]
    fn many_long_warnings_are_cut() {
        let warnings = Warnings::default();
        for c in 'a'..='z' {
            warnings.add(c.to_string().repeat(300));
        }
        let headers = warnings.headers();
        assert_eq!(headers.len(), LONGEST / CUT);
        assert!(headers.iter().all(|header| header.len() == CUT + "299 - \"\"".len()));
    }
}
