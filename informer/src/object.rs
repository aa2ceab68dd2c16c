//! What a cached object must tell, and how it is named: [`Object`], [`ObjectKey`], [`Uid`] and [`ResourceVersion`].
//!
//! Below it are the weights that one informer can have: a whole type, [`Lazy`], [`Metadata`], [`Dynamic`], or a part
//! of an object that a user describes.

mod dynamic;
mod key;
mod lazy;
mod members;
mod metadata;

use std::{borrow::Borrow, cmp::Ordering, fmt, sync::Arc};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use self::{
    dynamic::Dynamic,
    key::{KeyRef, ObjectKey, ParseKeyError},
    lazy::Lazy,
    members::DecodeError,
    metadata::Metadata,
};

/// Anything an informer can cache: it has metadata, and it stands for objects of one kind.
///
/// Every type with a [`kube_core::Resource`] implementation that needs no run-time type information is an `Object`
/// of its own kind: the types of `k8s_openapi`, and what `#[derive(CustomResource)]` makes. A type that holds only
/// a part of an object implements the trait itself, and names the kind it is a part of; the two then share keys:
///
/// ```
/// use homeostat_informer::{Object, ObjectKey, ObjectMeta};
/// use k8s_openapi::api::core::v1::Pod;
///
/// #[derive(serde::Deserialize)]
/// struct PodNode {
///     metadata: ObjectMeta,
///     spec: PodNodeSpec,
/// }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct PodNodeSpec {
///     node_name: Option<String>,
/// }
///
/// impl Object for PodNode {
///     type Kind = Pod;
///     fn metadata(&self) -> &ObjectMeta {
///         &self.metadata
///     }
/// }
///
/// let pod: PodNode = serde_json::from_str(r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"n"}}"#)?;
/// let key: ObjectKey<Pod> = pod.key();
/// assert_eq!(key.to_string(), "b/a");
/// # Ok::<_, serde_json::Error>(())
/// ```
pub trait Object: Send + Sync + 'static {
    /// The kind that keys are typed by, and whose path is listed and watched.
    type Kind: 'static;

    /// Whether nothing but metadata is read: then the server is asked for no more.
    const METADATA_ONLY: bool = false;

    /// The object's metadata: a field of it.
    ///
    /// It is asked for often, also while the cache is locked: it must not use an informer, wait, or compute. An object
    /// whose metadata panics when it comes is left out, and counted with those that have no name.
    fn metadata(&self) -> &ObjectMeta;

    /// The object's namespace and name.
    fn key(&self) -> ObjectKey<Self::Kind> {
        ObjectKey::from_metadata(self.metadata())
    }

    /// The object's identity in time: an object that is deleted and made again under its old name has another one.
    fn uid(&self) -> Uid {
        Uid::from(self.metadata().uid.as_deref().unwrap_or_default())
    }
}

/// The identity that the API server gave to an object. A clone allocates nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

/// A point in the API server's history. A clone allocates nothing.
///
/// Equality works for every server. Order is known only for decimal numbers, which all current servers use.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Arc<str>);

// === impl Object ===

impl<K> Object for K
where
    K: kube_core::Resource<DynamicType = ()> + Send + Sync + 'static,
{
    type Kind = Self;

    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }
}

// === impl Uid ===

impl Uid {
    /// The identity as text; empty for an object that no server has seen.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

// === impl ResourceVersion ===

impl ResourceVersion {
    /// The version as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Which of the two is older, if both are decimal numbers; `None` means that nobody can tell.
    ///
    /// ```
    /// # use homeostat_informer::ResourceVersion;
    /// # use std::cmp::Ordering;
    /// let version = |text: &str| ResourceVersion::from(text);
    /// assert_eq!(version("9").compare(&version("10")), Some(Ordering::Less));
    /// assert_eq!(version("9").compare(&version("next")), None);
    /// ```
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        compare_versions(&self.0, &other.0)
    }

    /// Whether this names a point in history. In a question, an empty version and "0" mean any point; in an answer,
    /// nothing.
    pub(crate) fn is_point(&self) -> bool {
        is_point(&self.0)
    }

    /// Whether a server that was at `other` can have gone on to this: not back, and not from numbers to something else.
    pub(crate) fn may_follow(&self, other: &Self) -> bool {
        match self.compare(other) {
            Some(order) => order == Ordering::Greater,
            None => self != other && other.compare(other).is_none(),
        }
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// See [`ResourceVersion::is_point`].
pub(crate) fn is_point(version: &str) -> bool {
    !matches!(version, "" | "0")
}

/// The order of two decimal numbers of any length; `None` if one of them is no positive decimal number.
pub(crate) fn compare_versions(one: &str, other: &str) -> Option<Ordering> {
    let decimal = |text: &str| {
        let bytes = text.as_bytes();
        bytes.first().is_some_and(|first| *first != b'0') && bytes.iter().all(u8::is_ascii_digit)
    };
    (decimal(one) && decimal(other)).then(|| (one.len(), one).cmp(&(other.len(), other)))
}

#[cfg(test)]
mod tests;
