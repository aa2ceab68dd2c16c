//! Names of resources, and lists of names.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// The name of a resource, such as `cpu` or `requests.memory` (`v1.ResourceName`).
///
/// A clone never copies the text, and a name of up to 23 bytes is stored without an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceName(SmolStr);

// === impl ResourceName ===

impl ResourceName {
    /// Returns the name `name`, without an allocation.
    pub const fn from_static(name: &'static str) -> Self {
        Self(SmolStr::new_static(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for ResourceName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl Deref for ResourceName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for ResourceName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ResourceName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

/// Returns the names as a set (`quota.ToSet`).
pub fn to_set<'a>(names: impl IntoIterator<Item = &'a ResourceName>) -> BTreeSet<ResourceName> {
    names.into_iter().cloned().collect()
}

/// Returns the names that are in both lists, sorted, each once (`quota.Intersection`).
pub fn intersection<'a>(
    left: impl IntoIterator<Item = &'a ResourceName>,
    right: impl IntoIterator<Item = &'a ResourceName>,
) -> Vec<ResourceName> {
    let mut right: Vec<&ResourceName> = right.into_iter().collect();
    right.sort_unstable();
    let is_common = |name: &&ResourceName| right.binary_search(name).is_ok();
    let mut common: Vec<&ResourceName> = left.into_iter().filter(is_common).collect();
    common.sort_unstable();
    common.dedup();
    common.into_iter().cloned().collect()
}

/// Returns the names of `left` that are not in `right`, sorted, each once (`quota.Difference`).
pub fn difference<'a>(
    left: impl IntoIterator<Item = &'a ResourceName>,
    right: impl IntoIterator<Item = &'a ResourceName>,
) -> Vec<ResourceName> {
    to_set(left).difference(&to_set(right)).cloned().collect()
}

/// Returns true if `name` starts with a prefix of the list (`quota.ContainsPrefix`).
pub fn contains_prefix(prefixes: &[&str], name: &str) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}
