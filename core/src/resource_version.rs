//! A version of an object, and the order of versions.
//!
//! Upstream documents a version as opaque. Since Kubernetes 1.35 its order is an API promise
//! (KEP-5504): a version is a decimal number of any length, and a larger one is later. This module
//! compares numbers where both versions are numbers, and otherwise says that the order is unknown.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use smol_str::SmolStr;

/// A point in the API server's history: the `resourceVersion` of an object, a list or a bookmark.
///
/// Equality works for every server. Only decimal numbers have an order; all current API servers use
/// them (apimachinery's `resourceversion.CompareResourceVersion`). A version of at most 23 bytes is
/// stored inline, so that neither creating nor cloning it allocates. Its number is parsed once,
/// when it is created.
///
/// # Examples
///
/// ```
/// use std::cmp::Ordering;
///
/// use homeostat_core::ResourceVersion;
///
/// let version = |text: &str| ResourceVersion::from(text);
/// assert_eq!(version("9").compare(&version("10")), Some(Ordering::Less));
/// assert_eq!(version("9").compare(&version("next")), None);
/// ```
#[derive(Clone)]
pub struct ResourceVersion {
    text: SmolStr,
    /// The number that `text` is; 0 if it has no order, or is larger than a `u64`.
    number: u64,
}

// === impl ResourceVersion ===

impl ResourceVersion {
    /// Returns the version as text.
    ///
    /// It is the text that the server sent, unchanged. Send it back as it is.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number, or `None` if the version is no positive decimal number that fits into 64
    /// bits.
    ///
    /// Use it for metrics and logs. Use [`compare`](Self::compare) instead to order versions: it
    /// also works for numbers that do not fit.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::ResourceVersion;
    ///
    /// assert_eq!(ResourceVersion::from("42").number(), Some(42));
    /// assert_eq!(ResourceVersion::from("0").number(), None);
    /// // A version with an order and without a 64-bit number.
    /// let large = ResourceVersion::from("18446744073709551616");
    /// assert_eq!((large.number(), large.is_ordered()), (None, true));
    /// ```
    pub fn number(&self) -> Option<u64> {
        (self.number != 0).then_some(self.number)
    }

    /// Compares two versions as decimal numbers of any length.
    ///
    /// Returns `None` if one of them is no positive decimal number: their order is unknown then.
    ///
    /// For numbers that fit into 64 bits it is one comparison of integers. Longer ones are compared
    /// by length and then by digits, without an allocation.
    ///
    /// There is no `Ord`: an order that is sometimes unknown is not a total one, and `PartialOrd`
    /// would let `<` return false for an unknown order without a warning.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if self.number != 0 && other.number != 0 {
            return Some(self.number.cmp(&other.number));
        }
        Self::compare_text(&self.text, &other.text)
    }

    /// Compares two texts as [`compare`](Self::compare) does, without storing them.
    ///
    /// It is the cheaper way for two versions that are compared once, such as those of two states
    /// of one object.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cmp::Ordering;
    ///
    /// use homeostat_core::ResourceVersion;
    ///
    /// assert_eq!(ResourceVersion::compare_text("9", "10"), Some(Ordering::Less));
    /// assert_eq!(ResourceVersion::compare_text("9", "next"), None);
    /// ```
    pub fn compare_text(one: &str, other: &str) -> Option<Ordering> {
        let (one, other) = (digits(one)?, digits(other)?);
        // Without leading zeros the longer number is the larger one.
        Some((one.len(), one).cmp(&(other.len(), other)))
    }

    /// Returns true if the version has an order: it is a positive decimal number of any length.
    pub fn is_ordered(&self) -> bool {
        self.number != 0 || digits(&self.text).is_some()
    }

    /// Returns true if the version names a point in history.
    ///
    /// In a request, an empty version and `0` mean "any version". In an answer they mean nothing.
    pub fn is_point(&self) -> bool {
        !matches!(self.as_str(), "" | "0")
    }

    /// Returns true if a server that was at `other` can have advanced to this version.
    ///
    /// A smaller or equal number cannot follow a number, and a version without an order cannot
    /// follow a number either.
    ///
    /// Use it to notice a server that was restored from a backup: its versions go back.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::ResourceVersion;
    ///
    /// let version = |text: &str| ResourceVersion::from(text);
    /// assert!(version("11").may_follow(&version("10")));
    /// assert!(!version("9").may_follow(&version("10")), "the server went back");
    /// assert!(version("b").may_follow(&version("a")), "the order is unknown");
    /// ```
    pub fn may_follow(&self, other: &Self) -> bool {
        match self.compare(other) {
            Some(order) => order == Ordering::Greater,
            None => self != other && !other.is_ordered(),
        }
    }
}

/// Returns `text` if it is a positive decimal number without a leading zero.
fn digits(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let is_decimal =
        bytes.first().is_some_and(|first| *first != b'0') && bytes.iter().all(u8::is_ascii_digit);
    is_decimal.then_some(text)
}

/// Parses a positive decimal number without a leading zero; 0 for every other text.
fn parse(text: &str) -> u64 {
    match text.as_bytes().first() {
        Some(b'1'..=b'9') => text.parse().unwrap_or(0),
        _ => 0,
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self { text: text.into(), number: parse(text) }
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialEq for ResourceVersion {
    fn eq(&self, other: &Self) -> bool {
        // Equal texts have equal numbers, and a number other than 0 has one text.
        self.number == other.number && (self.number != 0 || self.text == other.text)
    }
}

impl Eq for ResourceVersion {}

impl Hash for ResourceVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::from(text)
    }

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        let ascending = [
            "1",
            "9",
            "10",
            "99",
            "18446744073709551615",
            "18446744073709551616",
            "340282366920938463463374607431768211456",
            "340282366920938463463374607431768211457",
            "1000000000000000000000000000000000000000000000000000000000000",
        ];
        for (i, one) in ascending.iter().enumerate() {
            for (j, other) in ascending.iter().enumerate() {
                let compared = version(one).compare(&version(other));
                assert_eq!(compared, Some(i.cmp(&j)), "{one} {other}");
                assert_eq!(version(one) == version(other), i == j, "{one} {other}");
            }
        }
    }

    #[test]
    fn only_positive_decimal_numbers_have_an_order() {
        for odd in ["", "0", "01", "-1", "+1", " 1", "1.5", "1e3", "abc", "１"] {
            assert_eq!(version(odd).compare(&version("10")), None, "{odd:?}");
            assert!(!version(odd).is_ordered(), "{odd:?}");
            assert_eq!(version(odd).number(), None, "{odd:?}");
        }
    }

    #[test]
    fn empty_version_and_zero_name_no_point() {
        assert!(!version("").is_point() && !version("0").is_point());
        assert!(version("1").is_point() && version("next").is_point());
    }

    #[test]
    fn server_does_not_go_back_or_lose_its_numbers() {
        assert!(version("11").may_follow(&version("10")));
        assert!(!version("10").may_follow(&version("10")));
        assert!(!version("9").may_follow(&version("10")));
        assert!(!version("b").may_follow(&version("10")));
        assert!(version("b").may_follow(&version("a")));
        assert!(version("1").may_follow(&version("a")));
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_numbers(one in 1_u128.., other in 1_u128..) {
            let compared = version(&one.to_string()).compare(&version(&other.to_string()));
            prop_assert_eq!(compared, Some(one.cmp(&other)));
        }

        #[test]
        fn equality_is_that_of_the_texts(one in "[0-9a]{0,24}", other in "[0-9a]{0,24}") {
            prop_assert_eq!(version(&one) == version(&other), one == other);
            let version = version(&one);
            prop_assert_eq!(version.as_str(), one.as_str());
        }
    }
}
