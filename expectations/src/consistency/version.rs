//! The order of resource versions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A resource version that has a place in an order: a positive decimal number of any length.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Version(Arc<str>);

// === impl Version ===

impl Version {
    /// `None` for what is no such number: `""`, `"0"`, `"01"`, `"next"`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits && !text.is_empty() && !text.starts_with('0');
        number.then(|| Self(text.into()))
    }
}

impl Ord for Version {
    /// Without leading zeros the longer number is the larger one.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        let ascending = [
            "1",
            "9",
            "10",
            "99",
            "18446744073709551616",
            "340282366920938463463374607431768211456",
            "340282366920938463463374607431768211457",
            "1000000000000000000000000000000000000000000000000000000000000",
        ];
        for (i, one) in ascending.iter().enumerate() {
            for (j, other) in ascending.iter().enumerate() {
                let (one, other) = (Version::parse(one).unwrap(), Version::parse(other).unwrap());
                assert_eq!(one.cmp(&other), i.cmp(&j), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_no_positive_decimal_number_has_no_place() {
        for odd in ["", "0", "01", "-1", "+1", " 1", "1.5", "1e3", "abc", "１"] {
            assert_eq!(Version::parse(odd), None, "{odd:?}");
        }
    }
}
