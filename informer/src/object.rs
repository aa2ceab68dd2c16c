//! Cached objects: [`Object`], and the forms in which an informer can hold one.
//!
//! An object can be held as a full type, as [`Lazy`], [`Metadata`] or [`Dynamic`], or as a part
//! that an author describes.
//!
//! | Type | Holds | Use it when |
//! |---|---|---|
//! | `K`, such as `Pod` | every field | most objects are read at every change |
//! | a struct of the author's | the fields that it names | the fields are known |
//! | [`Lazy<K>`](Lazy) | metadata and JSON text | few of many objects are read |
//! | [`Metadata<K>`](Metadata) | metadata | owners, labels or existence are enough |
//! | [`Dynamic`] | metadata and JSON text | the kind is known only at run time |

mod dynamic;
mod lazy;
mod members;
mod metadata;

pub use homeostat_core::{KeyRef, ObjectKey, ParseKeyError, ResourceVersion, Uid};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use self::dynamic::Dynamic;
pub use self::lazy::Lazy;
pub use self::members::DecodeError;
pub use self::metadata::Metadata;

/// An object that an informer can cache: it has metadata, and it stands for objects of one kind.
///
/// Every type that implements [`kube_core::Resource`] without run-time type information is an
/// `Object` of its own kind: the types of `k8s_openapi`, and those of `#[derive(CustomResource)]`.
/// A type that holds only a part of an object implements the trait itself and names the kind; both
/// types then share keys.
///
/// # Examples
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
/// let json = r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"n"}}"#;
/// let pod: PodNode = serde_json::from_str(json)?;
/// let key: ObjectKey<Pod> = pod.key();
/// assert_eq!(key.to_string(), "b/a");
/// # Ok::<_, serde_json::Error>(())
/// ```
pub trait Object: Send + Sync + 'static {
    /// The kind that types the keys, and whose path is listed and watched.
    type Kind: 'static;

    /// True if only metadata is read: the informer then requests `PartialObjectMetadata`.
    ///
    /// Only [`Metadata`] sets it. A type that sets it must decode from an object without other
    /// members.
    const METADATA_ONLY: bool = false;

    /// Returns the object's metadata, which is a field of the object.
    ///
    /// This is called often, also while the cache is locked: the implementation must not use an
    /// informer, wait, or compute. An object whose metadata panics when it arrives is skipped and
    /// counted with the nameless ones.
    fn metadata(&self) -> &ObjectMeta;

    /// Returns the object's namespace and name.
    ///
    /// The cache and its handlers take both from [`metadata`](Self::metadata): overriding this
    /// method does not change the keys that they use.
    #[doc(alias = "MetaNamespaceKeyFunc")]
    fn key(&self) -> ObjectKey<Self::Kind> {
        ObjectKey::from_metadata(self.metadata())
    }

    /// Returns the object's uid. An object that was deleted and created again under its name has
    /// another one.
    ///
    /// An object without a uid has the empty one.
    fn uid(&self) -> Uid {
        Uid::from(self.metadata().uid.as_deref().unwrap_or_default())
    }
}

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

#[cfg(test)]
mod tests;
