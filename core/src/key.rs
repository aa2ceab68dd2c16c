//! The name of an object: [`ObjectKey`], and [`KeyRef`] for look-ups.
//!
//! A key is stored as the text that people read (`shop/web-1`), in one shared allocation: printing
//! it formats nothing, and a clone raises a reference count. The kind is a type parameter without a
//! value, so that it costs no memory.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "k8s-openapi")]
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The namespace and name of an object of one kind. A clone allocates nothing.
///
/// Keys of different kinds are different types: a queue of `ReplicaSet` keys does not accept the
/// key of a `Pod`. Keys sort by namespace, then by name; a key without a namespace comes first.
///
/// Use it for a key that is kept: in a queue, a map or a task. Use [`KeyRef`] instead for a look-up
/// with borrowed parts. Creating a key allocates once (a namespaced key builds its text first,
/// which is a second, temporary allocation).
///
/// A namespace or name is not checked against the API server's rules. The server checks it when it
/// stores the object.
///
/// # Examples
///
/// ```
/// use homeostat_core::ObjectKey;
///
/// struct Pod;
///
/// let key = ObjectKey::<Pod>::namespaced("shop", "web-1");
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-1"));
/// assert_eq!("shop/web-1".parse(), Ok(key));
/// ```
#[doc(alias = "MetaNamespaceKeyFunc")]
#[doc(alias = "NamespacedName")]
#[doc(alias = "ObjectName")]
pub struct ObjectKey<Kind: ?Sized> {
    /// `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// Never changes after the key was created.
    text: Arc<str>,
    /// Length of the namespace in `text`, in bytes; 0 for a cluster-scoped object.
    ///
    /// If it is not 0, the byte at this position is the slash, and the name follows it.
    namespace: u32,
    kind: PhantomData<fn() -> Kind>,
}

/// A borrowed [`ObjectKey`]. Look-ups take it, so that they allocate nothing.
///
/// Convert from `&ObjectKey`, from `(namespace, name)`, or from the text of a key:
/// `namespace/name`, or a `name` alone for a cluster-scoped object.
///
/// # Examples
///
/// ```
/// use homeostat_core::{KeyRef, ObjectKey};
///
/// struct Pod;
///
/// fn is_system<'a>(key: impl Into<KeyRef<'a, Pod>>) -> bool {
///     key.into().namespace() == Some("kube-system")
/// }
///
/// let key = ObjectKey::<Pod>::namespaced("kube-system", "dns");
/// assert!(is_system(&key));
/// assert!(is_system(("kube-system", "dns")));
/// assert!(is_system("kube-system/dns"));
/// assert!(!is_system("dns"));
/// ```
pub struct KeyRef<'a, Kind: ?Sized> {
    /// Never `Some("")`.
    namespace: Option<&'a str>,
    name: &'a str,
    kind: PhantomData<fn() -> Kind>,
}

/// A text is no [`ObjectKey`]: it is empty, or one of its parts is, or it has more than two parts.
///
/// # Examples
///
/// ```
/// use homeostat_core::{ObjectKey, ParseKeyError};
///
/// struct Pod;
///
/// assert_eq!("a/b/c".parse::<ObjectKey<Pod>>(), Err(ParseKeyError));
/// assert_eq!(ParseKeyError.to_string(), "not a key: expected `namespace/name` or `name`");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key: expected `namespace/name` or `name`")]
pub struct ParseKeyError;

// === impl ObjectKey ===

impl<Kind: ?Sized> ObjectKey<Kind> {
    /// Returns the key of `name` in `namespace`. `None` and an empty namespace mean a
    /// cluster-scoped object.
    ///
    /// # Panics
    ///
    /// Panics if the namespace is longer than 4 GiB.
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

    /// Returns the key of `name` in `namespace`.
    ///
    /// An empty namespace means a cluster-scoped object, as in [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// Panics if the namespace is longer than 4 GiB.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self::new(Some(namespace), name)
    }

    /// Returns the key of the cluster-scoped object `name`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::ObjectKey;
    ///
    /// struct Node;
    ///
    /// let key = ObjectKey::<Node>::cluster("node-1");
    /// assert_eq!((key.namespace(), key.to_string()), (None, "node-1".to_owned()));
    /// ```
    pub fn cluster(name: &str) -> Self {
        Self::new(None, name)
    }

    /// Returns the key of the object with this metadata. A missing name counts as an empty one.
    #[cfg(feature = "k8s-openapi")]
    pub fn from_metadata(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default())
    }

    /// Returns the namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        match self.namespace {
            0 => None,
            length => Some(&self.text[..length as usize]),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self.namespace {
            0 => &self.text,
            length => &self.text[length as usize + 1..],
        }
    }

    /// Returns `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// This is client-go's `MetaNamespaceKeyFunc`. The text is stored: the call formats nothing.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Borrows the key.
    ///
    /// It allocates nothing. [`KeyRef::to_key`] goes the other way.
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
    /// Returns the key of the object with this metadata. A missing name counts as an empty one.
    #[cfg(feature = "k8s-openapi")]
    pub fn from_metadata(metadata: &'a ObjectMeta) -> Self {
        Self::from((
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        ))
    }

    /// Returns the namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&'a str> {
        self.namespace
    }

    /// Returns the name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the key with memory of its own.
    ///
    /// It allocates. Call it when the key is kept, not for a look-up.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::{KeyRef, ObjectKey};
    ///
    /// struct Pod;
    ///
    /// let borrowed = KeyRef::<Pod>::from(("shop", "web-1"));
    /// assert_eq!(borrowed.to_key(), ObjectKey::namespaced("shop", "web-1"));
    /// ```
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

/// Reads the text of an [`ObjectKey`]: `namespace/name`, or `name` for a cluster-scoped object. No
/// name of Kubernetes contains a slash.
impl<'a, Kind: ?Sized> From<&'a str> for KeyRef<'a, Kind> {
    fn from(text: &'a str) -> Self {
        Self::from(text.split_once('/').unwrap_or(("", text)))
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    struct Pod;

    type Key = ObjectKey<Pod>;

    #[test]
    fn key_has_the_text_that_other_tools_print() {
        let key = Key::namespaced("shop", "web-1");
        assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-1"));
        assert_eq!(key.to_string(), "shop/web-1");
        let node = Key::cluster("node-1");
        assert_eq!((node.namespace(), node.name()), (None, "node-1"));
        assert_eq!(node.to_string(), "node-1");
        assert_eq!(Key::new(Some(""), "x"), Key::cluster("x"));
    }

    #[test]
    fn key_survives_being_printed_and_parsed() {
        for key in [Key::namespaced("a", "b"), Key::cluster("b")] {
            assert_eq!(key.to_string().parse::<Key>(), Ok(key));
        }
        for bad in ["", "/", "a/", "/b", "a/b/c"] {
            assert_eq!(bad.parse::<Key>(), Err(ParseKeyError), "{bad:?}");
        }
    }

    #[test]
    fn keys_sort_by_namespace_then_name() {
        let mut keys = [Key::namespaced("a-b", "a"), Key::namespaced("a", "b"), Key::cluster("z")];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["z", "a/b", "a-b/a"]);
    }

    #[test]
    fn text_of_a_key_borrows_as_the_key() {
        for key in [Key::namespaced("a", "b"), Key::cluster("b")] {
            assert_eq!(KeyRef::from(key.as_str()), key.as_key_ref());
        }
        assert_eq!(KeyRef::<Pod>::from("/b"), Key::cluster("b").as_key_ref());
    }

    #[test]
    fn borrowed_key_hashes_as_the_owned_one() {
        let hasher = foldhash::fast::RandomState::default();
        let key = Key::namespaced("a", "b");
        let borrowed: KeyRef<'_, Pod> = ("a", "b").into();
        assert_eq!(hasher.hash_one(&key), hasher.hash_one(borrowed));
        assert_eq!(borrowed.to_key(), key);
    }
}
