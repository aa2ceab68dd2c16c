//! [`Stamp`]: the version and the uid of a state in three words.
//!
//! A step compares each new state with the cached one. The cached object was last used long ago, so
//! reading it costs some hundred nanoseconds. Its stamp is next to its key, which the step has just
//! read.

use std::cmp::Ordering;

use crate::object::ObjectMeta;

/// The version and the uid of a state. Stamps answer most comparisons; the caller compares the
/// metadata for the others.
///
/// 24 bytes for each object. Two stamps without an answer are not equal: the caller then reads the
/// metadata.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    /// A decimal number below 2^64 - 1, or [`UNORDERED`], or [`LARGE`].
    version: u64,
    /// A uid in the form that the API server writes, as bytes; 0 for any other.
    uid: [u8; 16],
}

/// A version that is no positive decimal number: it has no order.
const UNORDERED: u64 = u64::MAX;

/// A decimal number that does not fit.
const LARGE: u64 = 0;

// === impl Stamp ===

impl Stamp {
    /// Parses the version and the uid. Takes no more than the length of both texts.
    pub(super) fn new(metadata: &ObjectMeta) -> Self {
        Self {
            version: version_word(metadata.resource_version.as_deref().unwrap_or_default()),
            uid: metadata.uid.as_deref().and_then(uid_bytes).unwrap_or_default(),
        }
    }

    /// Returns true if both are states of the same object. `compare` compares the uids if the
    /// stamps do not show them.
    pub(super) fn is_same_object(self, other: Self, compare: impl FnOnce() -> bool) -> bool {
        if self.has_uid() && other.has_uid() { self.uid == other.uid } else { compare() }
    }

    /// Returns the order of the versions, or `None` if they have none. `compare` compares the texts
    /// if the stamps do not show them.
    pub(super) fn order(
        self,
        other: Self,
        compare: impl FnOnce() -> Option<Ordering>,
    ) -> Option<Ordering> {
        match (self.version, other.version) {
            (UNORDERED, _) | (_, UNORDERED) => None,
            (LARGE, _) | (_, LARGE) => compare(),
            (own, other) => Some(own.cmp(&other)),
        }
    }

    /// Returns true if both are known to be the same state of the same object.
    pub(super) fn is_same_state(self, other: Self) -> bool {
        let is_number = !matches!(self.version, UNORDERED | LARGE);
        is_number && self.version == other.version && self.has_uid() && self.uid == other.uid
    }

    /// Returns true if the uid has the usual form. The nil uid counts as unknown.
    fn has_uid(self) -> bool {
        self.uid != [0; 16]
    }
}

/// Leading zeros make a version unordered, as in Kubernetes' rules for comparing versions
/// (KEP-5504): only canonical decimal numbers have an order.
fn version_word(version: &str) -> u64 {
    let bytes = version.as_bytes();
    if bytes.first().is_none_or(|first| *first == b'0') || !bytes.iter().all(u8::is_ascii_digit) {
        return UNORDERED;
    }
    version.parse().ok().filter(|number| *number != UNORDERED).unwrap_or(LARGE)
}

/// Parses `8-4-4-4-12` lower-case hexadecimal digits.
///
/// Each new state passes through here. The digits are decoded without a branch for each, so that
/// the compiler decodes 16 at a time.
fn uid_bytes(uid: &str) -> Option<[u8; 16]> {
    const GROUPS: [(usize, usize); 5] = [(0, 8), (9, 4), (14, 4), (19, 4), (24, 12)];
    let text: &[u8; 36] = uid.as_bytes().try_into().ok()?;
    let (mut digits, mut end) = ([0; 32], 0);
    for (start, len) in GROUPS {
        digits[end..end + len].copy_from_slice(&text[start..start + len]);
        end += len;
    }
    // Not `digits.map`, which calls a closure for each digit.
    for digit in &mut digits {
        *digit = hex_digit(*digit);
    }
    let has_dashes = [8, 13, 18, 23].iter().all(|place| text[*place] == b'-');
    if !has_dashes || digits.iter().fold(0, |all, digit| all | digit) > 0xf {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}

/// Returns the value of a lower-case hexadecimal digit, and 255 for any other byte.
fn hex_digit(digit: u8) -> u8 {
    let (decimal, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
    match (decimal < 10, letter < 6) {
        (true, _) => decimal,
        (_, true) => letter + 10,
        _ => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::compare_metadata;

    const UIDS: [Option<&str>; 6] = [
        None,
        Some(""),
        Some("u"),
        Some("a0000001-1d2c-4ab3-8e3f-0123456789ab"),
        Some("a0000002-1d2c-4ab3-8e3f-0123456789ab"),
        Some("A0000001-1d2c-4ab3-8e3f-0123456789ab"),
    ];

    /// Decodes the digits one after another.
    fn uid_by_digits(uid: &str) -> Option<[u8; 16]> {
        let is_dash = |place: usize| [8, 13, 18, 23].contains(&place);
        let mut word = 0_u128;
        for (place, byte) in uid.chars().enumerate() {
            match byte {
                '-' if is_dash(place) => {}
                '0'..='9' | 'a'..='f' if !is_dash(place) => {
                    word = word << 4 | u128::from(byte.to_digit(16)?);
                }
                _ => return None,
            }
        }
        (uid.len() == 36).then(|| word.to_be_bytes())
    }

    #[test]
    fn uid_with_any_wrong_byte_is_unreadable() {
        let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        assert_eq!(uid_bytes(uid), uid_by_digits(uid));
        assert_eq!((uid_bytes(&uid[1..]), uid_bytes(&format!("{uid}0"))), (None, None));
        for (place, byte) in (0..36).flat_map(|place| (0..0x80_u8).map(move |byte| (place, byte))) {
            let mut changed = uid.as_bytes().to_vec();
            changed[place] = byte;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(uid_bytes(&changed), uid_by_digits(&changed), "{changed}");
        }
    }

    const VERSIONS: [Option<&str>; 10] = [
        None,
        Some(""),
        Some("0"),
        Some("07"),
        Some("next"),
        Some("7"),
        Some("12"),
        Some("18446744073709551614"),
        Some("18446744073709551615"),
        Some("18446744073709551616"),
    ];

    fn metadata(uid: Option<&str>, version: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            uid: uid.map(Into::into),
            resource_version: version.map(Into::into),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn stamps_give_the_order_of_the_versions() {
        for (one, other) in VERSIONS.iter().flat_map(|one| VERSIONS.map(|other| (*one, other))) {
            let (one, other) = (metadata(None, one), metadata(None, other));
            let compare = || compare_metadata(&one, &other);
            let order = Stamp::new(&one).order(Stamp::new(&other), compare);
            assert_eq!(order, compare(), "{one:?} {other:?}");
        }
    }

    #[test]
    fn stamps_decide_about_readable_uids_alone() {
        for (one, other) in UIDS.iter().flat_map(|one| UIDS.map(|other| (*one, other))) {
            let stamp = |uid| Stamp::new(&metadata(uid, Some("7")));
            let mut asked = false;
            let same = stamp(one).is_same_object(stamp(other), || {
                asked = true;
                true
            });
            let readable = |uid| uid == UIDS[3] || uid == UIDS[4];
            assert_eq!(asked, !(readable(one) && readable(other)), "{one:?} {other:?}");
            assert_eq!(same, asked || one == other, "{one:?} {other:?}");
            let is_same_state = stamp(one).is_same_state(stamp(other));
            assert_eq!(is_same_state, readable(one) && one == other, "{one:?} {other:?}");
        }
    }
}
