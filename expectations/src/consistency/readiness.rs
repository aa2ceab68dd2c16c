//! [`Readiness`]: the permission of an owner to act on its caches.

use std::fmt;

use homeostat_core::GroupResource;
use tokio::time::Instant;

/// The result of [`ConsistencyStore::ready`] and [`ConsistencyStore::unseen`].
///
/// [`ConsistencyStore::ready`]: super::ConsistencyStore::ready
/// [`ConsistencyStore::unseen`]: super::ConsistencyStore::unseen
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_expectations::{ConsistencyStore, Readiness};
/// use tokio::time::Instant;
///
/// let store = ConsistencyStore::<&str, u8>::new("my_controller", []);
/// let (key, uid) = ("default/web", 1);
///
/// let wait: Option<Duration> = match store.ready(&key, &uid) {
///     Readiness::Ready => None,
///     Readiness::Waiting { until, .. } => Some(until - Instant::now()),
///     Readiness::Overdue { .. } => Some(store.still_late(&key, &uid)),
/// };
/// assert_eq!(wait, None, "the owner may act");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The caches show every write of the owner.
    Ready,
    /// A cache does not show a write yet. Do nothing; check again at `until`, unless the key is
    /// queued earlier.
    Waiting {
        /// The first resource whose cache is late; `None` if the owner waits for a write without a
        /// version ([`unseen`](super::ConsistencyStore::unseen)).
        missing: Option<Missing>,
        /// The deadline of the wait. After it the result is `Overdue`.
        until: Instant,
    },
    /// A cache does not show a write, and the deadline has passed. List the objects from the API
    /// server. If the caches show the same objects, call [`clear`](super::ConsistencyStore::clear)
    /// and act; if not, call [`still_late`](super::ConsistencyStore::still_late).
    Overdue {
        /// The first resource whose cache is late; `None` if the owner waits for a write without a
        /// version ([`unseen`](super::ConsistencyStore::unseen)).
        missing: Option<Missing>,
    },
}

/// A cache whose version is lower than that of a write.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
///
/// let pods = GroupResource::new("", "pods");
/// let store = ConsistencyStore::<&str, u8>::new("my_controller", [pods.clone()]);
/// assert!(store.reached(&pods, "41").is_empty());
/// store.wrote_at(&"default/web", &1, &pods, "42");
/// if let Readiness::Waiting { missing: Some(missing), .. } = store.ready(&"default/web", &1) {
///     assert_eq!(missing.to_string(), "the cache of pods is at 41 and has yet to reach 42");
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The resource of the write.
    pub resource: GroupResource,
    /// The highest version of the owner's writes.
    pub written: String,
    /// The version that the cache has reached.
    pub read: String,
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, written, read } = self;
        write!(f, "the cache of {resource} is at {read} and has yet to reach {written}")
    }
}
