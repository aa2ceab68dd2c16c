//! A [`Block`] is 64 bytes of JSON text: the places of its quotes, backslashes, brackets and
//! commas, as bits. [`plain_length`] searches a string for its end.
//!
//! 16 bytes are compared at once. [`wide`] does so in one instruction where the processor has one,
//! and in words elsewhere.

use wide::u8x16;

/// The number of bytes of a block.
pub(super) const BLOCK: usize = 64;
/// The number of bytes that are compared at once.
pub(super) const PART: usize = 16;

/// The places of the bytes that structure JSON text. Bit `i` stands for byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Block {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    /// `{` and `[`.
    pub(super) opens: u64,
    /// `}` and `]`.
    pub(super) closes: u64,
    pub(super) commas: u64,
}

// === impl Block ===

impl Block {
    /// Finds the places in `bytes`.
    #[inline]
    pub(super) fn of(bytes: &[u8; BLOCK]) -> Self {
        let mut block = Self::default();
        for (number, part) in bytes.as_chunks::<PART>().0.iter().enumerate() {
            let part = u8x16::new(*part);
            // `{` and `}` are `[` and `]` with this bit; no other byte becomes one of them.
            let folded = part | u8x16::splat(0x20);
            let shift = PART * number;
            block.quotes |= places(part, b'"') << shift;
            block.backslashes |= places(part, b'\\') << shift;
            block.opens |= places(folded, b'{') << shift;
            block.closes |= places(folded, b'}') << shift;
            block.commas |= places(part, b',') << shift;
        }
        block
    }
}

/// Returns the places of `byte` in `part`.
#[inline]
fn places(part: u8x16, byte: u8) -> u64 {
    u64::from(part.cmp_eq(u8x16::splat(byte)).move_mask().cast_unsigned())
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline]
pub(super) fn plain_length(part: &[u8; PART]) -> usize {
    let part = u8x16::new(*part);
    let last_control = u8x16::splat(0x1f);
    let special = part.cmp_eq(u8x16::splat(b'"'))
        | part.cmp_eq(u8x16::splat(b'\\'))
        | part.max(last_control).cmp_eq(last_control);
    (special.move_mask().trailing_zeros() as usize).min(PART)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the places byte by byte.
    fn one_by_one(bytes: &[u8; BLOCK]) -> Block {
        let mut block = Block::default();
        for (at, byte) in bytes.iter().enumerate() {
            let places = match byte {
                b'"' => &mut block.quotes,
                b'\\' => &mut block.backslashes,
                b'{' | b'[' => &mut block.opens,
                b'}' | b']' => &mut block.closes,
                b',' => &mut block.commas,
                _ => continue,
            };
            *places |= 1 << at;
        }
        block
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_loop(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let bytes: [u8; BLOCK] = bytes.try_into().unwrap();
            prop_assert_eq!(Block::of(&bytes), one_by_one(&bytes));
        }
    }

    #[test]
    fn each_byte_is_found_at_each_place() {
        for (byte, at) in (0..=u8::MAX).flat_map(|byte| (0..BLOCK).map(move |at| (byte, at))) {
            let mut bytes = [b'a'; BLOCK];
            bytes[at] = byte;
            assert_eq!(Block::of(&bytes), one_by_one(&bytes), "{byte} at {at}");
        }
    }

    #[test]
    fn first_special_byte_of_a_part_is_found() {
        let places = (0..=u8::MAX).flat_map(|byte| (0..PART).map(move |at| (byte, at)));
        for (byte, at) in places {
            let is_special = matches!(byte, b'"' | b'\\' | 0..0x20);
            let expected = [PART, at][usize::from(is_special)];
            for others in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                let mut part = [others; PART];
                part[at] = byte;
                assert_eq!(plain_length(&part), expected, "{others} {byte} {at}");
            }
        }
        assert_eq!(plain_length(b"ab\0\"\\\"\"\"abcdefgh"), 2);
    }
}
