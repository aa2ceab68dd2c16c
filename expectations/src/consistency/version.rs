//! The total order of those resource versions that have one.
//!
//! A version that is not a positive decimal number has no order here: a caller never guesses one.

use std::cmp::Ordering;
use std::fmt;

use homeostat_core::ResourceVersion;

/// A resource version that has an order: a positive decimal number of any length.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Version(ResourceVersion);

// === impl Version ===

impl Version {
    /// Returns `None` for a text that is no positive decimal number: `""`, `"0"`, `"01"`, `"next"`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self(ResourceVersion::from(text))).filter(|Self(version)| version.is_ordered())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&other.0).expect("`parse` admits only versions with an order")
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
