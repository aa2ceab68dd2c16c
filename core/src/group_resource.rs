//! A resource with its API group.
//!
//! Upstream writes it as `resource.group`, in logs and in the names of `CustomResourceDefinition`s.
//! The version is not part of it: all versions of a resource are one set of objects.

use std::borrow::Cow;
use std::fmt;

/// A resource and its API group, such as `pods` or `replicasets.apps` (apimachinery's
/// `schema.GroupResource`).
///
/// Use it as a key for what concerns all objects of one kind, such as the version of a cache. A
/// value made of literals allocates nothing, and neither does its clone. It sorts by group, then by
/// resource.
///
/// # Examples
///
/// ```
/// use homeostat_core::GroupResource;
///
/// assert_eq!(GroupResource::new("", "pods").to_string(), "pods");
/// assert_eq!(GroupResource::new("apps", "replicasets").to_string(), "replicasets.apps");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The name of the resource: plural, lower case.
    pub resource: Cow<'static, str>,
}

// === impl GroupResource ===

impl GroupResource {
    /// Returns the resource `resource` of `group`. The core group is the empty string.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::GroupResource;
    ///
    /// // A group that is known only at run time is owned.
    /// let group = String::from("example.com");
    /// let shops = GroupResource::new(group, "shops");
    /// assert_eq!((&*shops.group, &*shops.resource), ("example.com", "shops"));
    /// ```
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        resource: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource } = self;
        if group.is_empty() { f.write_str(resource) } else { write!(f, "{resource}.{group}") }
    }
}
