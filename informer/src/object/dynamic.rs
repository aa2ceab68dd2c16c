//! [`Dynamic`]: an object of a kind that is known only at run time.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};

use super::{DecodeError, KeyRef, Object, ObjectMeta, members::Members};
use crate::json::{Key, describe, guarded};

/// An object of any kind: its metadata is decoded, its other members stay the bytes that came.
///
/// Which kind it is, is said once, where it is listed
/// ([`KubeListWatch::of_resource`](crate::KubeListWatch::of_resource)), so all resources share the key type
/// `ObjectKey<Dynamic>`: keep them apart yourself, one informer for each. [`Metadata<Dynamic>`](super::Metadata) asks
/// for nothing but metadata; a type of your own with `type Kind = Dynamic` decodes what it likes.
///
/// ```
/// use homeostat_informer::{Dynamic, Object};
///
/// let set: Dynamic = serde_json::from_str(r#"{"metadata":{"name":"a"},"spec":{"replicas":3}}"#)?;
/// assert_eq!(set.get::<u32>(&["spec", "replicas"])?, Some(3));
/// assert_eq!(set.get::<u32>(&["status", "replicas"])?, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Dynamic {
    members: Members,
}

/// The value at a path.
struct At<'p, T>(&'p [&'p str], PhantomData<fn() -> T>);

// === impl Dynamic ===

impl Dynamic {
    /// The value that these names lead to, one inside the other; `None` if one of them is missing or null. The rest
    /// of the object is skipped, not decoded.
    ///
    /// Starts below the object, beside its metadata: `["spec", "replicas"]`. For the metadata there is
    /// [`metadata`](Object::metadata).
    ///
    /// # Errors
    /// If the value does not fit `T`, or something on the way is no object.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, DecodeError> {
        guarded(|| {
            let mut json = serde_json::Deserializer::from_str(self.members.others());
            At(path, PhantomData).deserialize(&mut json).map_err(describe)
        })
        .map_err(|reason| self.members.misfit(reason))
    }

    /// The whole object as a `T`.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        self.members.decode()
    }

    /// The other members, without `metadata`: a JSON object, as the server wrote it. `kind` and `apiVersion` are
    /// missing where a list says them once for all of its items.
    pub fn json(&self) -> &str {
        self.members.others()
    }
}

impl Object for Dynamic {
    type Kind = Self;

    fn metadata(&self) -> &ObjectMeta {
        &self.members.metadata
    }
}

/// Needs a deserializer that lends its text, as `serde_json::from_str` does.
impl<'de> Deserialize<'de> for Dynamic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { members: Members::deserialize(deserializer)? })
    }
}

/// Prints which object it is, never what is in it.
impl fmt::Debug for Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<Self>::from_metadata(&self.members.metadata);
        f.debug_tuple("Dynamic").field(&key).finish()
    }
}

// === impl At ===

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for At<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        if self.0.is_empty() {
            Option::deserialize(deserializer)
        } else {
            deserializer.deserialize_option(self)
        }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for At<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_none<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(Key(name)) = map.next_key()? {
            match self.0.split_first() {
                Some((first, rest)) if *first == name => {
                    found = map.next_value_seed(At(rest, PhantomData))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}
