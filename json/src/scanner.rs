//! A [`Scanner`] moves over JSON text token by token.
//!
//! It checks the grammar of what it reads as `serde_json` does. An array or object that is skipped
//! is not read: its end is found by its [`brackets`]. It is pure and never panics. Strings are
//! searched for their end 16 bytes at a time.

use super::block::{PART, plain_length};
use super::brackets;

/// A position in JSON text.
///
/// Its methods return `None` if no valid JSON continues here. The position is undefined then.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// The bytes after the position.
    rest: &'a [u8],
}

/// The longest array whose elements are counted. The arrays within an array are counted again, and
/// that of a list of objects has most of the text.
const MOST_COUNTED: usize = 16 << 10;

// === impl Scanner ===

impl<'a> Scanner<'a> {
    /// Starts before a value.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, rest: text.as_bytes() }
    }

    /// Returns the number of bytes before this position.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// Returns the text from `start` to this position.
    #[inline]
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.position()]
    }

    /// Returns the next byte that is not white space, and stays before it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.rest.first().copied()
    }

    /// Moves after the value at this position.
    ///
    /// Of an array or object only the strings and brackets are read: what else is between them may
    /// be no JSON.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' => {
                self.rest = &self.rest[brackets::length(self.rest)?..];
                Some(())
            }
            b'"' => {
                self.rest = &self.rest[1..];
                self.string().map(drop)
            }
            first => {
                self.rest = &self.rest[1..];
                self.scalar(first)
            }
        }
    }

    /// Returns true if the rest of the text is longer than any array whose elements are counted.
    pub(super) fn is_far_from_end(&self) -> bool {
        self.rest.len() >= MOST_COUNTED
    }

    /// Returns the number of elements of the array whose bracket precedes this position, or `None`
    /// if it does not end, or is longer than 16 KiB.
    pub(super) fn element_count(&mut self) -> Option<usize> {
        let bracket = self.position().checked_sub(1)?;
        if self.peek()? == b']' {
            return Some(0);
        }
        let text = &self.text.as_bytes()[bracket..];
        brackets::commas(&text[..text.len().min(MOST_COUNTED)]).map(|commas| commas + 1)
    }

    /// Moves after the end of a string whose quote precedes this position. Returns true if the
    /// string has an escape.
    #[inline]
    pub(super) fn string(&mut self) -> Option<bool> {
        let (rest, has_escape) = after_string(self.rest)?;
        self.rest = rest;
        Some(has_escape)
    }

    /// Reads the rest of a number, `true`, `false` or `null` with this first character.
    pub(super) fn scalar(&mut self, first: u8) -> Option<()> {
        match first {
            b't' => self.literal(b"rue"),
            b'f' => self.literal(b"alse"),
            b'n' => self.literal(b"ull"),
            first => self.number(first),
        }
    }

    /// Reads the rest of a number with this first character.
    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.byte()? } else { first };
        match first {
            b'0' if self.rest.first().is_some_and(u8::is_ascii_digit) => return None,
            b'0'..=b'9' => self.skip_digits(),
            _ => return None,
        }
        if self.skip_if(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.skip_if(|byte| matches!(byte, b'e' | b'E')) {
            self.skip_if(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// Reads at least one digit.
    fn digits(&mut self) -> Option<()> {
        let is_digit = self.byte()?.is_ascii_digit();
        self.skip_digits();
        is_digit.then_some(())
    }

    fn skip_digits(&mut self) {
        while self.skip_if(|byte| byte.is_ascii_digit()) {}
    }

    /// Reads the rest of `true`, `false` or `null`.
    fn literal(&mut self, rest: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(rest)?;
        Some(())
    }

    /// Reads the next byte that is not white space, which must be `wanted`.
    pub(super) fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.token()? == wanted).then_some(())
    }

    /// Reads the next byte that is not white space.
    #[inline]
    pub(super) fn token(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    /// Moves to the next byte that is not white space. Servers send none between tokens: one
    /// comparison is the usual case.
    #[inline]
    pub(super) fn skip_space(&mut self) {
        if self.rest.first().is_some_and(|byte| *byte <= b' ') {
            self.skip_some_space();
        }
    }

    #[cold]
    fn skip_some_space(&mut self) {
        while self.skip_if(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {}
    }

    /// Reads the next byte if the condition holds for it. Returns true if it does.
    fn skip_if(&mut self, condition: impl Fn(u8) -> bool) -> bool {
        match self.rest.split_first() {
            Some((byte, rest)) if condition(*byte) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }
}

// === parts ===

/// Returns the text after the end of the string whose first character `text` starts with, and true
/// if the string has an escape.
#[inline]
fn after_string(mut text: &[u8]) -> Option<(&[u8], bool)> {
    let mut has_escape = false;
    loop {
        if let Some(part) = text.first_chunk() {
            let plain = plain_length(part);
            text = &text[plain..];
            if plain == PART {
                continue;
            }
        }
        let (byte, rest) = text.split_first()?;
        text = match byte {
            b'"' => return Some((rest, has_escape)),
            b'\\' => {
                has_escape = true;
                after_escape(rest)?
            }
            0..0x20 => return None,
            _ => rest,
        };
    }
}

/// Returns the text after an escape whose backslash precedes `text`. Like `serde_json` when it
/// skips, it accepts each half of a surrogate pair.
///
/// It stays out of line, because most strings have no escape.
#[cold]
fn after_escape(text: &[u8]) -> Option<&[u8]> {
    match text.split_first()? {
        (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest) => Some(rest),
        (b'u', rest) => {
            let (digits, rest) = rest.split_first_chunk::<4>()?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(rest)
        }
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde::Deserialize as _;
    use serde::de::IgnoredAny;

    use super::*;

    /// Returns the length of the value at the start of `text` as `serde_json` skips it.
    fn skipped_length(text: &str) -> Option<usize> {
        let mut json = serde_json::Deserializer::from_str(text);
        IgnoredAny::deserialize(&mut json).ok()?;
        Some(json.into_iter::<IgnoredAny>().byte_offset())
    }

    fn scanned_length(text: &str) -> Option<usize> {
        let mut scanner = Scanner::new(text);
        scanner.skip()?;
        Some(scanner.position())
    }

    /// Generates valid JSON, and JSON in which some pieces are replaced by others.
    pub(crate) fn json_like() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            8 => "\"[ -~ü]{0,20}\"".prop_map(|text| text.replace('\\', r"\u00e4")),
            4 => "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
            4 => prop::sample::select(vec![
                "true", "false", "null", "[ ]", "{\t}", r#""k:{\"name\":\"a\"}""#, r#""\ud800""#,
            ]).prop_map(str::to_owned),
            1 => prop::sample::select(vec![
                "01", "-", "1.", "1e", "1e+", ".5", "tru", "nulL", "\"", "[", "}", ",", ":",
                "\u{1}", r#""\u12g4""#, r#""\x""#, "\"a\u{1f}b\"", "", "\u{a0}",
            ]).prop_map(str::to_owned),
        ];
        scalar.prop_recursive(6, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|items| format!("[{}]", items.join(" , "))),
                prop::collection::vec(("[a-z:]{0,20}", inner), 0..6).prop_map(|members| {
                    let members = members.iter().map(|(key, value)| format!("\"{key}\":{value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn value_ends_where_serde_json_ends_it(text in json_like(), rest in "[ 0-9a,}\"]{0,9}") {
            let text = format!("{text}{rest}");
            let scanned = scanned_length(&text);
            match skipped_length(&text) {
                Some(length) => prop_assert_eq!(scanned, Some(length), "{}", text),
                // Only what is between brackets is not checked.
                None if text.starts_with(['[', '{', ' ']) => {}
                None => prop_assert_eq!(scanned, None, "{}", text),
            }
        }
    }

    #[test]
    fn elements_of_an_array_are_counted_without_those_inside_of_them() {
        for (text, count) in [
            ("[]", 0),
            ("[ ]", 0),
            ("[1]", 1),
            ("[ [1,2] , {\"a\":1,\"b\":[]},\",\"]", 3),
            ("[1,", 0),
            (&format!("[1,{}2]", " ".repeat(MOST_COUNTED - 5)), 2),
        ] {
            let mut scanner = Scanner::new(text);
            scanner.byte().unwrap();
            let expected = text.ends_with(']').then_some(count);
            assert_eq!(scanner.element_count(), expected, "{text}");
        }
        let long = format!("[1,{}2]", " ".repeat(MOST_COUNTED - 4));
        let mut scanner = Scanner::new(&long);
        scanner.byte().unwrap();
        assert_eq!(scanner.element_count(), None);
    }
}
