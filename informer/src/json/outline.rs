//! An [`Outline`] is the list of all tokens of a JSON value, made in one pass over its text.
//!
//! A [`Reader`](super::reader::Reader) decodes from it. It knows the end of each string before it
//! reads it, skips a value of any size in one step, and makes each vector as long as its array, so
//! that none has spare capacity: a pod takes 20 % less memory.

use super::WHITE_SPACE;
use super::scanner::Scanner;

/// The tokens of the value that was read last. Its memory serves the next value.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    tokens: Vec<Token>,
    /// The arrays and objects around the position, the innermost last.
    open: Vec<Open>,
}

/// A value, or the name of a member.
///
/// The tokens inside of an array or object follow it, each name before its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// The position of its first byte.
    pub(super) start: u32,
    /// The position after its last byte.
    pub(super) end: u32,
    /// The number of the token that follows the value.
    pub(super) next: u32,
    /// The number of elements of an array, or of members of an object. For a string, 1 if it has
    /// an escape.
    pub(super) count: u32,
}

/// An array or object that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The number of its token.
    number: usize,
    /// The elements or members so far.
    count: u32,
    is_object: bool,
}

/// The maximal number of tokens, so that an outline takes at most 1 MiB. A pod of 12 KB has about
/// 500 tokens. A value with more is left to `serde_json`.
const MOST_TOKENS: usize = 1 << 16;

/// The bytes of text per token: a pod of 12 KB has about 500.
const BYTES_PER_TOKEN: usize = 24;

/// The tokens that an outline has space for before it has read any. A list may follow the value.
const MOST_AT_ONCE: usize = 512;

/// The maximal depth of the open arrays and objects; `serde_json` accepts 127.
const MOST_OPEN: usize = 64;

/// The count of an array or object whose tokens are left out.
pub(super) const LEFT_OUT: u32 = u32::MAX;

// === impl Outline ===

impl Outline {
    /// Reads the value at the start of `text`, and returns the position after it.
    ///
    /// An array that is the member `without` of some object has no tokens inside.
    ///
    /// Returns `None` if the text is not valid JSON up to there, or has too many tokens or levels.
    /// A number that ends with the text may be incomplete.
    pub(crate) fn read(&mut self, text: &str, without: Option<&str>) -> Option<usize> {
        u32::try_from(text.len()).ok()?;
        self.tokens.clear();
        // One growth instead of eight.
        self.tokens.reserve((text.len() / BYTES_PER_TOKEN).min(MOST_AT_ONCE));
        self.open.clear();
        let mut scanner = Scanner::new(text);
        let without = without.unwrap_or_default().as_bytes();
        while self.value(&mut scanner, without)? || self.advance(&mut scanner, without)? {}
        Some(scanner.position())
    }

    /// Reads the complete text, which is one value.
    ///
    /// Returns `None` as [`read`](Self::read) does, and if more than white space follows.
    pub(crate) fn read_all(&mut self, text: &str, without: Option<&str>) -> Option<()> {
        let rest = &text[self.read(text, without)?..];
        rest.trim_start_matches(WHITE_SPACE).is_empty().then_some(())
    }

    /// Returns the tokens of the value that was read last. The first one is the value itself.
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Reads a value, or the start of an array or object that is not empty. Returns true in the
    /// second case: its first value is next.
    fn value(&mut self, scanner: &mut Scanner<'_>, without: &[u8]) -> Option<bool> {
        let first = scanner.token()?;
        let start = scanner.position() - 1;
        let (end_of_empty, is_object) = match first {
            b'{' => (b'}', true),
            b'[' => (b']', false),
            b'"' => {
                let has_escape = scanner.string()?;
                return self.push(start, scanner, u32::from(has_escape)).map(|()| false);
            }
            first => {
                scanner.scalar(first)?;
                return self.push(start, scanner, 0).map(|()| false);
            }
        };
        self.push(start, scanner, 0)?;
        let open = Open { number: self.tokens.len() - 1, count: 0, is_object };
        if scanner.skip_token(end_of_empty) {
            self.end(open, scanner);
            return Some(false);
        }
        if self.open.len() == MOST_OPEN {
            return None;
        }
        self.open.push(open);
        if is_object {
            return self.member(scanner, without);
        }
        self.count();
        Some(true)
    }

    /// Reads the ends of arrays and objects after a value, and a comma with the name of a member.
    /// Returns false if the outermost value has ended.
    fn advance(&mut self, scanner: &mut Scanner<'_>, without: &[u8]) -> Option<bool> {
        while let Some(&open) = self.open.last() {
            match (scanner.token()?, open.is_object) {
                (b',', true) if self.member(scanner, without)? => return Some(true),
                (b',', true) => {}
                (b',', false) => {
                    self.count();
                    return Some(true);
                }
                (b'}', true) | (b']', false) => {
                    self.open.pop();
                    self.end(open, scanner);
                }
                _ => return None,
            }
        }
        Some(false)
    }

    /// Reads the name of a member and its colon. Returns false if its value is an array that is
    /// left out, and was read, too.
    fn member(&mut self, scanner: &mut Scanner<'_>, without: &[u8]) -> Option<bool> {
        self.count();
        scanner.expect(b'"')?;
        let start = scanner.position() - 1;
        let has_escape = scanner.string()?;
        self.push(start, scanner, u32::from(has_escape))?;
        let is_left_out = scanner.since(start + 1).strip_suffix(b"\"") == Some(without);
        scanner.expect(b':')?;
        scanner.skip_space();
        if !(is_left_out && scanner.is_at(b'[')) {
            return Some(true);
        }
        let start = scanner.position();
        scanner.value()?;
        self.push(start, scanner, LEFT_OUT).map(|()| false)
    }

    /// Counts a member or an element of the innermost array or object.
    fn count(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
        }
    }

    /// Adds a token that ends at the scanner's position, or nothing if there are too many.
    fn push(&mut self, start: usize, scanner: &Scanner<'_>, count: u32) -> Option<()> {
        let next = self.tokens.len() + 1;
        if next > MOST_TOKENS {
            return None;
        }
        // No array of the three: its `map` calls a closure for each.
        let (start, end) = (narrow(start), narrow(scanner.position()));
        self.tokens.push(Token { start, end, next: narrow(next), count });
        Some(())
    }

    /// Notes that an array or object has ended at the scanner's position.
    fn end(&mut self, open: Open, scanner: &Scanner<'_>) {
        let next = narrow(self.tokens.len());
        let token = &mut self.tokens[open.number];
        (token.end, token.next, token.count) = (narrow(scanner.position()), next, open.count);
    }
}

// === parts ===

/// Returns a number that is at most the length of the text, which was checked to fit.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scanner::tests::json_like;
    use super::*;

    /// Returns each token: its text, the tokens inside, and the count.
    fn outline<'a>(text: &'a str, without: Option<&str>) -> Option<Vec<(&'a str, usize, u32)>> {
        let mut outline = Outline::default();
        outline.read(text, without)?;
        let tokens = outline.tokens().iter().enumerate();
        let shown = tokens.map(|(number, token)| {
            let text = &text[token.start as usize..token.end as usize];
            (text, token.next as usize - number - 1, token.count)
        });
        Some(shown.collect())
    }

    #[test]
    fn tokens_have_their_ends_and_counts() {
        let text = r#" {"a" : [1, {}, "\n"], "b":null} "#;
        let expected = vec![
            (text.trim(), 7, 2),
            (r#""a""#, 0, 0),
            (r#"[1, {}, "\n"]"#, 3, 3),
            ("1", 0, 0),
            ("{}", 0, 0),
            (r#""\n""#, 0, 1),
            (r#""b""#, 0, 0),
            ("null", 0, 0),
        ];
        assert_eq!(outline(text, None), Some(expected));
    }

    #[test]
    fn array_that_is_left_out_is_one_token() {
        let text = r#"{"f":[{"x":[1]}],"g":{"f":[]},"h":{"f":{"f":"f"}}}"#;
        let tokens = outline(text, Some("f")).unwrap();
        let texts = tokens.iter().map(|(text, ..)| *text).collect::<Vec<_>>();
        let (f, inner) = (r#""f""#, r#"{"f":"f"}"#);
        let g = [r#""g""#, r#"{"f":[]}"#, f, "[]"];
        let h = [r#""h""#, r#"{"f":{"f":"f"}}"#, f, inner, f, f];
        assert_eq!(texts, [&[text, f, r#"[{"x":[1]}]"#][..], &g, &h].concat());
        assert_eq!((tokens[2].2, tokens[6].2, tokens[0].1), (LEFT_OUT, LEFT_OUT, 12));
    }

    #[test]
    fn value_of_too_many_tokens_or_levels_is_left_to_serde_json() {
        let read = |text: &str| Outline::default().read(text, None);
        let array = |length: usize| format!("[{}1]", "1,".repeat(length - 1));
        assert!(read(&array(MOST_TOKENS - 1)).is_some());
        assert_eq!(read(&array(MOST_TOKENS)), None);
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(read(&nested(MOST_OPEN)), Some(2 * MOST_OPEN + 1));
        assert_eq!(read(&nested(MOST_OPEN + 1)), None);
    }

    proptest! {
        #[test]
        fn value_ends_where_the_scanner_ends_it(text in json_like(), rest in "[ 0-9a,}\"]{0,9}") {
            let text = format!("{text}{rest}");
            let mut scanner = Scanner::new(&text);
            let end = scanner.value().map(|()| scanner.position());
            prop_assert_eq!(Outline::default().read(&text, None), end, "{}", text);
            prop_assert_eq!(Outline::default().read(&text, Some("a")), end, "{}", text);
        }
    }
}
