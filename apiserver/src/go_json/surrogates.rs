//! Escapes of half a character, such as `\\ud800`. Go reads each as U+FFFD; serde refuses them.

use std::borrow::Cow;

use serde_json::Value;

/// Parses JSON as Go does.
pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    let read = match str::from_utf8(bytes) {
        Ok(text) => homeostat_json::from_str(text),
        // The error says where.
        Err(_) => serde_json::from_slice(bytes),
    };
    read.or_else(|error| match replace_halves(bytes) {
        Cow::Owned(bytes) => serde_json::from_slice(&bytes),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Replaces each escape of a half of a character by that of U+FFFD.
pub(crate) fn replace_halves(json: &[u8]) -> Cow<'_, [u8]> {
    let mut replaced = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &json[at..]) {
        at += found;
        at += match (escaped(json, at), escaped(json, at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                replaced.to_mut()[at..at + ESCAPE].copy_from_slice(b"\\ufffd");
                ESCAPE
            }
            // The escaped character, which may be a backslash, too.
            _ => 2,
        };
        if at >= json.len() {
            break;
        }
    }
    replaced
}

/// The length of an escape.
const ESCAPE: usize = b"\\uffff".len();

/// Returns the number in an escape.
fn escaped(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_of_a_character_is_replaced() {
        for (text, expected) in [
            (r#""\ud800""#, "\u{fffd}"),
            (r#""a\udc00b""#, "a\u{fffd}b"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ud83dx\\ud83d""#, "\u{fffd}x\\ud83d"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), json!(expected), "{text}");
        }
        for wrong in [r#""\ud8""#, r#""\ud800"#, r"\", r#""\ud+00""#] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
