//! [`Lazy`]: an object that is decoded on first use.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::members::Members;
use super::{DecodeError, KeyRef, Object, ObjectMeta};

/// An object whose metadata is decoded, and whose other members stay JSON text until
/// [`decode`](Self::decode).
///
/// Use it for big objects of which few are read: a pod takes 9 KB instead of 35, and half of the
/// decoding time. Keys, versions, selectors, [indices by
/// metadata](crate::SharedIndexInformer::index_by_metadata) and handlers that read only metadata
/// never decode; [`decodes`](Self::decodes) shows it. An object whose spec does not fit `K` is
/// listed like any other; `decode` reports the error.
///
/// Use `K` itself if you read most objects at every change, a small type that implements [`Object`]
/// if you know which fields you read, and [`Metadata`](super::Metadata) if you read only metadata.
///
/// # Examples
///
/// ```
/// use homeostat_informer::{Lazy, Object};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let json = r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[]}}"#;
/// let pod: Lazy<Pod> = serde_json::from_str(json)?;
/// assert_eq!(pod.metadata().name.as_deref(), Some("a"));
/// assert_eq!(pod.decodes(), 0);
///
/// let decoded = pod.decode()?;
/// assert_eq!(decoded.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("n"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Lazy<K> {
    members: Members,
    /// Guards only the memo; no decoding and no drop of an object happens under it.
    memo: Mutex<Memo<K>>,
}

/// The result of the last decoding. It owns no object, so that no author's code runs under its
/// lock.
struct Memo<K> {
    last: Weak<K>,
    decodes: u32,
}

// === impl Lazy ===

impl<K: DeserializeOwned> Lazy<K> {
    /// Returns the decoded object. Decoding a pod takes about 25 µs.
    ///
    /// The result is shared as long as a caller holds it, and forgotten with its last holder.
    ///
    /// Two callers at the same time may both decode; both get the result of the first. The lock is
    /// not held while decoding.
    ///
    /// # Errors
    ///
    /// Returns an error if the object does not fit `K`. The object still exists: a caller that
    /// counts objects must count it, or stop counting.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        {
            let mut memo = self.memo.lock();
            if let Some(object) = memo.last.upgrade() {
                return Ok(object);
            }
            memo.decodes = memo.decodes.saturating_add(1);
        }
        let object = Arc::new(self.members.decode::<K>()?);
        let mut memo = self.memo.lock();
        if let Some(first) = memo.last.upgrade() {
            // Another call was faster: both return its object. The lock is free for the drop.
            drop(memo);
            return Ok(first);
        }
        memo.last = Arc::downgrade(&object);
        Ok(object)
    }
}

impl<K> Lazy<K> {
    /// Returns the members other than `metadata` as a JSON object, as the server wrote them.
    pub fn json(&self) -> &str {
        self.members.others()
    }

    /// Returns the number of times that this object was decoded.
    ///
    /// Use it in a test to prove that a code path reads only metadata. A failed decoding counts
    /// too.
    pub fn decodes(&self) -> u32 {
        self.memo.lock().decodes
    }
}

impl<K: Object> Object for Lazy<K> {
    type Kind = K::Kind;

    fn metadata(&self) -> &ObjectMeta {
        &self.members.metadata
    }
}

/// Needs a deserializer that lends its text, as `serde_json::from_str` does.
impl<'de, K> Deserialize<'de> for Lazy<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(deserializer)?;
        Ok(Self { members, memo: Mutex::new(Memo { last: Weak::new(), decodes: 0 }) })
    }
}

/// Prints the object's key, never its content.
impl<K> fmt::Debug for Lazy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<K>::from_metadata(&self.members.metadata);
        f.debug_tuple("Lazy").field(&key).finish()
    }
}
