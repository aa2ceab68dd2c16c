//! Texts in quotes, as Go's `%q` prints them.

use std::fmt::Write;

/// Quotes a text as Go's `%q` does (`strconv.Quote`): messages of Kubernetes show names this way.
///
/// # Examples
///
/// ```
/// use homeostat_core::go_quote;
///
/// assert_eq!(go_quote("a\n\"b\" \u{1}"), r#""a\n\"b\" \x01""#);
/// ```
#[doc(alias = "strconv.Quote")]
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c if is_hidden(c) && c > '\u{ffff}' => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            c if is_hidden(c) => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns true if Go does not print a character: a control, a space other than the usual one, one
/// that formats the text around it, for private use, or of no use yet.
fn is_hidden(c: char) -> bool {
    // Rust escapes the same ones, and marks at the start of a text. Its Unicode may be newer.
    !c.is_ascii() && String::from_iter(['a', c]).escape_debug().count() > 2
}

#[cfg(test)]
mod tests {
    use super::go_quote;

    #[test]
    fn character_that_shows_nothing_is_escaped() {
        for (text, quoted) in [
            ("a b", r#""a b""#),
            ("é'", r#""é'""#),
            ("\\\"", r#""\\\"""#),
            ("\0\u{1}\u{7f}", r#""\x00\x01\x7f""#),
            ("\t\r\n\u{7}\u{8}\u{b}\u{c}", r#""\t\r\n\a\b\v\f""#),
            ("\u{80}\u{a0}\u{2028}", r#""\u0080\u00a0\u2028""#),
            ("\u{200b}\u{feff}", r#""\u200b\ufeff""#),
            ("\u{e000}\u{e0001}", r#""\ue000\U000e0001""#),
            ("\u{301}e\u{301}\u{1f600}", "\"\u{301}e\u{301}\u{1f600}\""),
        ] {
            assert_eq!(go_quote(text), quoted);
        }
    }
}
