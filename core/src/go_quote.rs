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
            c if is_hidden(c) => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether a character shows nothing: a control, a space other than the usual one, or one
/// that formats the text around it.
fn is_hidden(c: char) -> bool {
    let formats = matches!(
        c,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    );
    formats || c.is_control() || (c != ' ' && c.is_whitespace())
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
        ] {
            assert_eq!(go_quote(text), quoted);
        }
    }
}
