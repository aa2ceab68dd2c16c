//! [`Dynamic`]: an object of a kind that is known only at run time.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::members::Members;
use super::{DecodeError, KeyRef, Object, ObjectMeta};
use crate::json::{Key, describe, guarded};

/// An object of any kind: its metadata is decoded, its other members stay JSON text.
///
/// The kind is given where objects are listed
/// ([`KubeListWatch::of_resource`](crate::list_watch::KubeListWatch::of_resource)). All resources
/// share the key type `ObjectKey<Dynamic>`, so use one informer for each and keep their keys apart.
/// [`Metadata<Dynamic>`](super::Metadata) requests only metadata; a type of your own with `type
/// Kind = Dynamic` decodes the fields that it names.
///
/// # Examples
///
/// ```
/// use homeostat_informer::{Dynamic, Object};
///
/// let set: Dynamic = serde_json::from_str(r#"{"metadata":{"name":"a"},"spec":{"replicas":3}}"#)?;
/// assert_eq!(set.get::<u32>(&["spec", "replicas"])?, Some(3));
/// assert_eq!(set.get::<u32>(&["status", "replicas"])?, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Unstructured")]
pub struct Dynamic {
    members: Members,
}

/// The value at a path.
struct At<'p, T>(&'p [&'p str], PhantomData<fn() -> T>);

// === impl Dynamic ===

impl Dynamic {
    /// Returns the value at `path`, a list of member names from the outside in, or `None` if a
    /// member is missing or null.
    ///
    /// The path starts below the object, beside its metadata: `["spec", "replicas"]`. The rest of
    /// the object is skipped, not decoded. For metadata use [`metadata`](Object::metadata).
    ///
    /// It parses the text on each call and keeps nothing: read a value once and keep it, or use a
    /// typed object for a hot path. A path through an array is an error; decode the array as a
    /// `Vec`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value does not fit `T`, or if a member on the path is not an object.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, DecodeError> {
        guarded(|| {
            let mut json = serde_json::Deserializer::from_str(self.members.others());
            At(path, PhantomData).deserialize(&mut json).map_err(describe)
        })
        .map_err(|reason| self.members.misfit(reason))
    }

    /// Decodes the object as a `T`.
    ///
    /// Each call writes the metadata as JSON and parses the complete object.
    ///
    /// # Errors
    ///
    /// Returns an error if the object does not fit `T`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::Dynamic;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let json = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    /// let object: Dynamic = serde_json::from_str(json)?;
    /// let map: ConfigMap = object.decode()?;
    /// assert_eq!(map.data.unwrap()["k"], "v");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        self.members.decode()
    }

    /// Returns the members other than `metadata` as a JSON object, as the server wrote them. `kind`
    /// and `apiVersion` are missing where a list gives them once for all of its items.
    ///
    /// It costs nothing: the text is stored in this form.
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

/// Prints the object's key, never its content.
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
