//! [`Metadata`]: an object of which only the metadata is requested.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer};

use super::{KeyRef, Object, ObjectMeta};

/// The metadata of an object of `K`'s kind. The informer requests only `PartialObjectMetadata` from
/// the server.
///
/// Use it to know which objects exist, who owns them and how they are labelled: in a garbage
/// collector, or for a quota. No byte of a Secret enters the process. A pod takes 3 KB, and a fifth
/// of the decoding time.
///
/// Use [`Lazy`](super::Lazy) instead when a few of the objects are read completely.
///
/// For a test, convert it from an [`ObjectMeta`]:
///
/// ```
/// use homeostat_informer::{Metadata, Object, ObjectMeta};
/// use k8s_openapi::api::core::v1::Secret;
///
/// let metadata = ObjectMeta { name: Some("token".into()), ..ObjectMeta::default() };
/// let secret = Metadata::<Secret>::from(metadata);
/// assert_eq!(secret.key().to_string(), "token");
/// ```
///
/// # Examples
///
/// ```
/// use homeostat_informer::{Metadata, Object, ObjectKey};
/// use k8s_openapi::api::core::v1::Secret;
///
/// let json = r#"{"metadata":{"name":"a","namespace":"b"}}"#;
/// let secret: Metadata<Secret> = serde_json::from_str(json)?;
/// let key: ObjectKey<Secret> = secret.key();
/// assert_eq!(key.to_string(), "b/a");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[doc(alias = "PartialObjectMetadata")]
pub struct Metadata<K> {
    metadata: ObjectMeta,
    object: PhantomData<fn() -> K>,
}

// === impl Metadata ===

impl<K: Object> Object for Metadata<K> {
    type Kind = K::Kind;

    const METADATA_ONLY: bool = true;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<K> From<ObjectMeta> for Metadata<K> {
    fn from(metadata: ObjectMeta) -> Self {
        Self { metadata, object: PhantomData }
    }
}

impl<K> Clone for Metadata<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), object: PhantomData }
    }
}

impl<'de, K> Deserialize<'de> for Metadata<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "Metadata")]
        struct Wire {
            metadata: ObjectMeta,
        }
        Ok(Wire::deserialize(deserializer)?.metadata.into())
    }
}

/// Prints the object's key, never its content.
impl<K> fmt::Debug for Metadata<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<K>::from_metadata(&self.metadata);
        f.debug_tuple("Metadata").field(&key).finish()
    }
}
