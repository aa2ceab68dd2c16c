//! Random UUIDs, written once.

use std::{fmt, str};

/// A random UUID (version 4 of RFC 9562) as text: 36 lower-case characters.
///
/// It allocates nothing. Get one from [`Random::uuid`](crate::Random::uuid), or from a source of
/// secrets with [`from_random`](Self::from_random).
///
/// # Examples
///
/// ```
/// use homeostat_core::Uuid;
///
/// let uuid = Uuid::from_random(0);
/// assert_eq!(uuid.as_str(), "00000000-0000-4000-8000-000000000000");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid([u8; 36]);

// === impl Uuid ===

impl Uuid {
    /// Returns the UUID of 128 random bits. Six of them have no effect: the version and the variant
    /// take their places.
    pub fn from_random(bits: u128) -> Self {
        const HYPHENS: [usize; 4] = [8, 13, 18, 23];
        let version = 0x4 << 76;
        // The highest two bits of the lower half are those behind the variant.
        let variant = (0x8 + (bits >> 62 & 0x3)) << 60;
        let mut bits = bits & !(0xf << 76) & !(0xf << 60) | version | variant;
        let mut text = [b'-'; 36];
        for at in (0..text.len()).rev().filter(|at| !HYPHENS.contains(at)) {
            text[at] = b"0123456789abcdef"[(bits & 0xf) as usize];
            bits >>= 4;
        }
        Self(text)
    }

    /// Returns the text.
    #[expect(clippy::missing_panics_doc, reason = "it never panics: the text is ASCII")]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("digits and hyphens are ASCII")
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bits_keep_their_places() {
        let uuid = Uuid::from_random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(uuid.as_str(), "01234567-89ab-4def-8123-456789abcdef");
        let uuid = Uuid::from_random(u128::MAX);
        assert_eq!(uuid.as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
