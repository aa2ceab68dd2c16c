//! A [`Scanner`] finds the end of a JSON value without decoding it.
//!
//! It checks the grammar as `serde_json` does when it skips a value, in about half of the
//! instructions. It is pure and never panics. Strings are searched for their end in words of 8
//! bytes.

/// A position in JSON text.
///
/// Its methods return `None` if no valid JSON continues here, or if values are nested more than 64
/// levels deep. The position is undefined then.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    /// The bytes after the position.
    rest: &'a [u8],
}

/// The open arrays and objects around a position, as bits: 1 is an object. The innermost is the
/// lowest, and a 1 precedes the outermost.
struct Nesting(u64);

/// A word in which each byte is 1.
const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
/// A word in which each byte has only its highest bit.
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);

// === impl Scanner ===

impl<'a> Scanner<'a> {
    /// Starts before a value.
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        Self { text, rest: text }
    }

    /// Returns the number of bytes before this position.
    pub(super) fn position(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// Returns the text from `start` to this position.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.position()]
    }

    /// Returns true if `byte` is next.
    pub(super) fn is_at(&self, byte: u8) -> bool {
        self.rest.first() == Some(&byte)
    }

    /// Moves after the value at this position.
    pub(super) fn value(&mut self) -> Option<()> {
        let mut open = Nesting::new();
        while self.open(&mut open)? || self.advance(&mut open)? {}
        Some(())
    }

    /// Reads a value, or the start of an array or object that is not empty. Returns true in the
    /// second case: its first value is next.
    fn open(&mut self, open: &mut Nesting) -> Option<bool> {
        match self.token()? {
            b'"' => {
                self.string()?;
            }
            b'{' => {
                if !self.skip_token(b'}') {
                    open.push(true)?;
                    return self.key().map(|()| true);
                }
            }
            b'[' => {
                if !self.skip_token(b']') {
                    open.push(false)?;
                    return Some(true);
                }
            }
            first => self.scalar(first)?,
        }
        Some(false)
    }

    /// Reads the ends of arrays and objects after a value, and a comma. Returns false if the
    /// outermost value has ended.
    fn advance(&mut self, open: &mut Nesting) -> Option<bool> {
        while !open.is_empty() {
            match (self.token()?, open.is_in_object()) {
                (b',', true) => return self.key().map(|()| true),
                (b',', false) => return Some(true),
                (b'}', true) | (b']', false) => open.pop(),
                _ => return None,
            }
        }
        Some(false)
    }

    /// Moves after the name of a member and its colon, and after all members before it that have
    /// the value `{}`: most members of managed fields have this value.
    fn key(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.string()?;
        while let Some(rest) = self.rest.strip_prefix(b":{},\"") {
            self.rest = rest;
            self.string()?;
        }
        self.expect(b':')
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

    /// Reads the next byte that is not white space, if it is `wanted`. Returns true if it is.
    pub(super) fn skip_token(&mut self, wanted: u8) -> bool {
        self.skip_space();
        self.skip_if(|byte| byte == wanted)
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

// === impl Nesting ===

impl Nesting {
    fn new() -> Self {
        Self(1)
    }

    fn is_empty(&self) -> bool {
        self.0 == 1
    }

    /// Opens an array or an object; `None` at the limit.
    fn push(&mut self, is_object: bool) -> Option<()> {
        let is_full = self.0.leading_zeros() == 0;
        self.0 = self.0 << 1 | u64::from(is_object);
        (!is_full).then_some(())
    }

    fn pop(&mut self) {
        self.0 >>= 1;
    }

    fn is_in_object(&self) -> bool {
        self.0 & 1 == 1
    }
}

// === parts ===

/// Returns the text after the end of the string whose first character `text` starts with, and true
/// if the string has an escape.
#[inline]
fn after_string(mut text: &[u8]) -> Option<(&[u8], bool)> {
    let mut has_escape = false;
    loop {
        if let Some(word) = text.first_chunk() {
            let plain = plain_bytes(u64::from_le_bytes(*word));
            text = &text[plain..];
            if plain == 8 {
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

/// Returns the number of bytes of a little-endian word before the first quote, backslash or
/// control character.
///
/// Subtracting from a byte below 0x80 sets its highest bit if the byte was smaller. A borrow comes
/// only from such a byte and changes only later ones, so that the first one is exact.
fn plain_bytes(word: u64) -> usize {
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    let special = (control | quote | backslash) & !word & HIGH_BITS;
    special.trailing_zeros() as usize / 8
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
        scanner.value()?;
        Some(scanner.position())
    }

    /// Generates valid JSON, and JSON in which some pieces are replaced by others.
    pub(in crate::json) fn json_like() -> impl Strategy<Value = String> {
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
            prop_assert_eq!(scanned_length(&text), skipped_length(&text), "{}", text);
        }
    }

    #[test]
    fn first_special_byte_of_a_word_is_found() {
        let places = (0..=u8::MAX).flat_map(|byte| (0..8).map(move |at| (byte, at)));
        for (byte, at) in places {
            let is_special = matches!(byte, b'"' | b'\\' | 0..0x20);
            let expected = [8, at][usize::from(is_special)];
            for others in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                let mut word = [others; 8];
                word[at] = byte;
                assert_eq!(plain_bytes(u64::from_le_bytes(word)), expected, "{others} {byte} {at}");
            }
        }
        assert_eq!(plain_bytes(u64::from_le_bytes(*b"ab\0\"\\\"\"\"")), 2);
        assert_eq!(plain_bytes(u64::from_le_bytes(*b"abc\"!]#\"")), 3);
    }

    #[test]
    fn nesting_of_more_than_64_levels_is_left_to_the_deserializer() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(scanned_length(&nested(64)), Some(128));
        assert_eq!(scanned_length(&nested(65)), None);
    }
}
