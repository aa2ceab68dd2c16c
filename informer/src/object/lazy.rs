//! [`Lazy`]: an object that is decoded when somebody looks at it.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::{DecodeError, KeyRef, Object, ObjectMeta, members::Members};

/// An object whose metadata is decoded, and whose other members stay the bytes that came until somebody asks.
///
/// For big objects of which few are looked at: a pod takes 9 KB instead of 35, and comes in at half the time. Keys,
/// versions, selectors, [indices by metadata](crate::SharedIndexInformer::index_by_metadata) and handlers that look
/// only at metadata never decode; [`decodes`](Self::decodes) shows it. An object whose spec does not fit `K` is
/// listed like any other, and says so when it is decoded.
///
/// Use `K` itself if you look at most objects at every change, a small type of your own that implements [`Object`] if
/// you know which fields you read, and [`Metadata`](super::Metadata) if you read nothing but metadata.
///
/// ```
/// use homeostat_informer::{Lazy, Object};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pod: Lazy<Pod> =
///     serde_json::from_str(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[]}}"#)?;
/// assert_eq!(pod.metadata().name.as_deref(), Some("a"));
/// assert_eq!(pod.decodes(), 0);
///
/// let decoded = pod.decode()?;
/// assert_eq!(decoded.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("n"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Lazy<K> {
    members: Members,
    memo: Mutex<Memo<K>>,
}

/// What came of the last decoding. Never runs an author's code under its lock: it owns no object.
struct Memo<K> {
    last: Weak<K>,
    decodes: u32,
}

// === impl Lazy ===

impl<K: DeserializeOwned> Lazy<K> {
    /// The whole object. As long as somebody holds what this returned, it is returned again; it is forgotten with its
    /// last holder. Decoding a pod takes some 25 µs.
    ///
    /// # Errors
    /// If it does not fit `K`. It is there all the same: whoever counts objects has to count it, or to stop counting.
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
            // Two at the same time: both get the same. Ours is dropped without the lock.
            drop(memo);
            return Ok(first);
        }
        memo.last = Arc::downgrade(&object);
        Ok(object)
    }
}

impl<K> Lazy<K> {
    /// The other members, without `metadata`: a JSON object, as the server wrote it.
    pub fn json(&self) -> &str {
        self.members.others()
    }

    /// How often this object was decoded.
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

/// Prints which object it is, never what is in it.
impl<K> fmt::Debug for Lazy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = KeyRef::<K>::from_metadata(&self.members.metadata);
        f.debug_tuple("Lazy").field(&key).finish()
    }
}
