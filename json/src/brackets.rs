//! The end of an array or object, and the number of elements of an array, by their brackets and
//! commas alone.
//!
//! The text is read in [`Block`]s of 64 bytes: two to three instructions per byte, a fifth of what
//! it takes to read every token. The price is that the grammar between the brackets is not checked.

use super::block::{BLOCK, Block};

/// The blocks of a text, and what the next one starts in.
struct Blocks<'a> {
    rest: &'a [u8],
    /// All bits if the next block starts within a string, else none.
    in_string: u64,
    /// 1 if the first byte of the next block is escaped, else 0.
    is_escaped: u64,
}

/// The places of one block that are outside of strings.
#[derive(Clone, Copy)]
struct Marks {
    opens: u64,
    closes: u64,
    commas: u64,
}

/// The bits with an odd number.
const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Returns the length of the array or object that `text` starts with, or `None` if it does not
/// end.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    end::<false>(text).map(|(length, _)| length)
}

/// Returns the number of commas between the elements of the array that `text` starts with, or
/// `None` if it does not end.
pub(super) fn commas(text: &[u8]) -> Option<usize> {
    end::<true>(text).map(|(_, commas)| commas)
}

/// Returns the length of the array or object that `text` starts with, and the number of commas
/// between its parts if they are to be counted.
#[inline]
fn end<const COUNTS: bool>(text: &[u8]) -> Option<(usize, usize)> {
    let mut blocks = Blocks::new(text.get(1..)?);
    let (mut depth, mut commas, mut before) = (1_usize, 0, 1);
    loop {
        let marks = blocks.next()?;
        // An empty array or object in this one changes nothing: most of managed fields are `{}`.
        let empty = marks.opens & (marks.closes >> 1);
        let (opens, closes) = (marks.opens ^ empty, marks.closes ^ (empty << 1));
        let mut places = opens | closes | if COUNTS { marks.commas } else { 0 };
        while places != 0 {
            let place = places & places.wrapping_neg();
            places ^= place;
            if COUNTS && marks.commas & place != 0 {
                commas += usize::from(depth == 1);
                continue;
            }
            // No branch, which would be hard to predict.
            let is_end = usize::from(closes & place != 0);
            depth = depth + 1 - 2 * is_end;
            if depth == 0 {
                return Some((before + place.trailing_zeros() as usize + 1, commas));
            }
        }
        before += BLOCK;
    }
}

// === impl Blocks ===

impl<'a> Blocks<'a> {
    /// Starts outside of a string.
    fn new(text: &'a [u8]) -> Self {
        Self { rest: text, in_string: 0, is_escaped: 0 }
    }

    /// Reads the next block; the last one is filled up with zeros. Returns `None` at the end.
    #[expect(clippy::inline_always, reason = "commas are found only for the caller that counts")]
    #[inline(always)]
    fn next(&mut self) -> Option<Marks> {
        if let Some((bytes, rest)) = self.rest.split_first_chunk::<BLOCK>() {
            self.rest = rest;
            return Some(self.marks(bytes));
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut bytes = [0; BLOCK];
        bytes[..self.rest.len()].copy_from_slice(self.rest);
        self.rest = &[];
        Some(self.marks(&bytes))
    }

    #[expect(clippy::inline_always, reason = "as `next`")]
    #[inline(always)]
    fn marks(&mut self, bytes: &[u8; BLOCK]) -> Marks {
        let Block { quotes, backslashes, opens, closes, commas } = Block::of(bytes);
        let quotes = quotes & !self.escaped(backslashes);
        let within = parity(quotes) ^ self.in_string;
        self.in_string = 0_u64.wrapping_sub(within >> 63);
        Marks { opens: opens & !within, closes: closes & !within, commas: commas & !within }
    }

    /// Returns the places of the bytes that follow a backslash which is not escaped itself.
    ///
    /// In a run of backslashes each second one is escaped, and so is the byte after a run of odd
    /// length. With a 1 at each odd place and after each backslash, subtracting the backslashes
    /// leaves the odd places as they were where a run started at an odd place, and inverts them
    /// where it started at an even one: an alternation from the start of each run.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        if backslashes == 0 {
            return std::mem::take(&mut self.is_escaped);
        }
        let free = backslashes & !self.is_escaped;
        // The backslashes that escape, and the byte after each odd run.
        let alternating = ((free << 1) | ODD).wrapping_sub(free) ^ ODD;
        let escaped = alternating ^ (backslashes | self.is_escaped);
        self.is_escaped = (alternating & backslashes) >> 63;
        escaped
    }
}

/// Returns bit `i` as the parity of the bits up to `i`.
#[inline]
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads byte by byte: the length of the container at the start of `text`, and the number of
    /// commas directly in it.
    fn one_by_one(text: &[u8]) -> Option<(usize, usize)> {
        let (mut depth, mut commas, mut in_string, mut is_escaped) = (0, 0, false, false);
        for (at, byte) in text.iter().enumerate() {
            // A backslash outside of a string is no JSON, and escapes as well.
            if !std::mem::take(&mut is_escaped) {
                is_escaped = *byte == b'\\';
                in_string ^= *byte == b'"';
            }
            match byte {
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 1 => return Some((at + 1, commas)),
                b'}' | b']' => depth -= 1,
                b',' if depth == 1 => commas += 1,
                _ => {}
            }
        }
        None
    }

    fn check(text: &str) {
        let text = text.as_bytes();
        let expected = one_by_one(text);
        assert_eq!(length(text), expected.map(|(length, _)| length));
        assert_eq!(commas(text), expected.map(|(_, commas)| commas));
    }

    proptest! {
        #[test]
        fn ends_are_those_of_a_loop(
            rest in r#"([{\[][a,]{0,3}|[}\],]|"|\\{1,70}|[a ]{1,40}){0,60}"#,
        ) {
            check(&format!("[{rest}"));
            check(&format!("[{rest}\"]"));
        }

        #[test]
        fn brackets_in_strings_do_not_count(
            texts in prop::collection::vec("[^\\x00-\\x1f]{0,90}", 0..6),
        ) {
            let value = serde_json::json!({"a": texts, "b": [texts]});
            let text = format!("{value}}}]");
            let end = text.len() - 2;
            prop_assert_eq!(length(text.as_bytes()), Some(end));
            let array = serde_json::to_string(&texts).unwrap();
            prop_assert_eq!(commas(array.as_bytes()), Some(texts.len().saturating_sub(1)));
        }
    }

    #[test]
    fn runs_of_backslashes_escape_by_their_length_across_blocks() {
        for (before, run) in (0..130).flat_map(|before| (0..10).map(move |run| (before, run))) {
            let text = format!("[\"{}{}\"]\"]", "a".repeat(before), "\\".repeat(run));
            check(&text);
        }
    }

    #[test]
    fn text_that_ends_within_a_container_has_no_length() {
        for text in ["[", "[[]", "{\"a\":\"]}", "[\"\\\"]", &format!("[{}", "[]".repeat(64))] {
            assert_eq!((length(text.as_bytes()), commas(text.as_bytes())), (None, None), "{text}");
        }
    }
}
