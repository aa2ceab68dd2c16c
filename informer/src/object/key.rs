//! How an object is named: [`ObjectKey`], and [`KeyRef`] for look-ups.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
    sync::Arc,
};

use super::ObjectMeta;

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

/// Why a text is no [`ObjectKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key: expected `namespace/name` or `name`")]
pub struct ParseKeyError;

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
