//! What a cached object must tell, and how it is named: [`Object`], [`ObjectKey`], [`Uid`] and [`ResourceVersion`].
//!
//! Below it are the weights that one informer can have: a whole type, [`Lazy`], [`Metadata`], [`Dynamic`], or a part
//! of an object that a user describes.

mod dynamic;
mod lazy;
mod members;
mod metadata;

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
    sync::Arc,
};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use self::{dynamic::Dynamic, lazy::Lazy, members::DecodeError, metadata::Metadata};

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

    /// The object's metadata.
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

/// The namespace and name of an object of one kind. A clone allocates nothing.
///
/// Keys of different kinds are different types, so that a queue of `ReplicaSet` keys cannot be handed a `Pod`'s.
pub struct ObjectKey<Kind: ?Sized> {
    /// `namespace/name`, or `name` alone.
    text: Arc<str>,
    /// How many bytes of `text` the namespace takes; 0 when there is none.
    namespace: u32,
    kind: PhantomData<fn() -> Kind>,
}

/// A borrowed [`ObjectKey`]: what look-ups take, so that they allocate nothing.
///
/// Made from `&ObjectKey`, from `(namespace, name)`, or from a `name` alone for what lives in no namespace.
pub struct KeyRef<'a, Kind: ?Sized> {
    namespace: Option<&'a str>,
    name: &'a str,
    kind: PhantomData<fn() -> Kind>,
}

/// The identity that the API server gave to an object. A clone allocates nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

/// A point in the API server's history. A clone allocates nothing.
///
/// Equality works for every server. Order is known only for decimal numbers, which all current servers use.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Arc<str>);

/// Why a text is no [`ObjectKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key: expected `namespace/name` or `name`")]
pub struct ParseKeyError;

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

// === impl ObjectKey ===

impl<Kind: ?Sized> ObjectKey<Kind> {
    /// The key of `name` in `namespace`; `None` or an empty namespace for what lives in none.
    ///
    /// # Panics
    /// If the namespace takes more than 4 GiB.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => {
                let mut text = String::with_capacity(namespace.len() + 1 + name.len());
                text.push_str(namespace);
                text.push('/');
                text.push_str(name);
                let length = u32::try_from(namespace.len()).expect("a namespace is short");
                Self { text: text.into(), namespace: length, kind: PhantomData }
            }
            _ => Self { text: name.into(), namespace: 0, kind: PhantomData },
        }
    }

    /// The key of `name` in `namespace`.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self::new(Some(namespace), name)
    }

    /// The key of `name` of a kind that lives in no namespace.
    pub fn cluster(name: &str) -> Self {
        Self::new(None, name)
    }

    /// The key of the object that has this metadata.
    pub fn from_metadata(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default())
    }

    /// The namespace, if the object lives in one.
    pub fn namespace(&self) -> Option<&str> {
        match self.namespace {
            0 => None,
            length => Some(&self.text[..length as usize]),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self.namespace {
            0 => &self.text,
            length => &self.text[length as usize + 1..],
        }
    }

    /// `namespace/name`, or `name` alone.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same key, borrowed.
    pub fn as_key_ref(&self) -> KeyRef<'_, Kind> {
        KeyRef { namespace: self.namespace(), name: self.name(), kind: PhantomData }
    }
}

impl<Kind: ?Sized> Clone for ObjectKey<Kind> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), namespace: self.namespace, kind: PhantomData }
    }
}

impl<Kind: ?Sized> PartialEq for ObjectKey<Kind> {
    fn eq(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.text == other.text
    }
}

impl<Kind: ?Sized> Eq for ObjectKey<Kind> {}

impl<Kind: ?Sized> Hash for ObjectKey<Kind> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_key_ref().hash(state);
    }
}

impl<Kind: ?Sized> PartialOrd for ObjectKey<Kind> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Kind: ?Sized> Ord for ObjectKey<Kind> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl<Kind: ?Sized> fmt::Display for ObjectKey<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<Kind: ?Sized> fmt::Debug for ObjectKey<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl<Kind: ?Sized> FromStr for ObjectKey<Kind> {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        match text.split_once('/') {
            None if !text.is_empty() => Ok(Self::cluster(text)),
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self::namespaced(namespace, name))
            }
            _ => Err(ParseKeyError),
        }
    }
}

// === impl KeyRef ===

impl<'a, Kind: ?Sized> KeyRef<'a, Kind> {
    /// The key of the object that has this metadata.
    pub fn from_metadata(metadata: &'a ObjectMeta) -> Self {
        Self::from((
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        ))
    }

    /// The namespace, if the object lives in one.
    pub fn namespace(&self) -> Option<&'a str> {
        self.namespace
    }

    /// The name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The same key, owned.
    pub fn to_key(&self) -> ObjectKey<Kind> {
        ObjectKey::new(self.namespace, self.name)
    }
}

impl<Kind: ?Sized> Clone for KeyRef<'_, Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind: ?Sized> Copy for KeyRef<'_, Kind> {}

impl<Kind: ?Sized> PartialEq for KeyRef<'_, Kind> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }
}

impl<Kind: ?Sized> Eq for KeyRef<'_, Kind> {}

impl<Kind: ?Sized> Hash for KeyRef<'_, Kind> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.namespace.unwrap_or_default().hash(state);
        self.name.hash(state);
    }
}

impl<Kind: ?Sized> fmt::Debug for KeyRef<'_, Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            Some(namespace) => write!(f, "\"{namespace}/{}\"", self.name),
            None => write!(f, "\"{}\"", self.name),
        }
    }
}

impl<'a, Kind: ?Sized> From<&'a ObjectKey<Kind>> for KeyRef<'a, Kind> {
    fn from(key: &'a ObjectKey<Kind>) -> Self {
        key.as_key_ref()
    }
}

impl<'a, Kind: ?Sized> From<(&'a str, &'a str)> for KeyRef<'a, Kind> {
    fn from((namespace, name): (&'a str, &'a str)) -> Self {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        Self { namespace, name, kind: PhantomData }
    }
}

impl<'a, Kind: ?Sized> From<&'a str> for KeyRef<'a, Kind> {
    fn from(name: &'a str) -> Self {
        Self { namespace: None, name, kind: PhantomData }
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
