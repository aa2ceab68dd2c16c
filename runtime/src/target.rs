//! [`Target`]: the type of what a controller reconciles.

use std::fmt;
use std::hash::Hash;

use homeostat_informer::{Object, ObjectKey};

/// The type that a controller reconciles: an object type, or a key type of the author's.
///
/// Every [`Object`] is a target, whose key is the object's namespace and name. Most controllers
/// need nothing else. Implement the trait for an enum if one queue holds keys of several kinds, as
/// in Kubernetes' `ResourceClaim` controller.
///
/// # Examples
///
/// A controller that reconciles pods and claims in one queue:
///
/// ```
/// use std::fmt;
///
/// use homeostat::{Controller, ObjectKey, SharedIndexInformer, Target};
/// # use homeostat::{Action, Reconciler, Request};
/// use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// enum ClaimKey {
///     Pod(ObjectKey<Pod>),
///     Claim(ObjectKey<PersistentVolumeClaim>),
/// }
///
/// impl fmt::Display for ClaimKey {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         match self {
///             Self::Pod(key) => write!(f, "pod:{key}"),
///             Self::Claim(key) => write!(f, "claim:{key}"),
///         }
///     }
/// }
///
/// impl Target for ClaimKey {
///     type Key = Self;
/// }
///
/// # fn doc(
/// #     pods: &SharedIndexInformer<Pod>,
/// #     claims: &SharedIndexInformer<PersistentVolumeClaim>,
/// #     reconciler: impl Reconciler<ClaimKey>,
/// # ) {
/// let controller = Controller::for_keys::<ClaimKey>("resource-claim")
///     .watches(pods, |event, enqueue| enqueue.add(ClaimKey::Pod(event.key())))
///     .watches(claims, |event, enqueue| enqueue.add(ClaimKey::Claim(event.key())))
///     .build(reconciler);
/// # }
/// ```
pub trait Target: Send + Sync + 'static {
    /// The key in the queue. Logs show it by its `Display`.
    type Key: Clone + Eq + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static;
}

impl<K: Object> Target for K {
    type Key = ObjectKey<K::Kind>;
}

#[cfg(test)]
impl Target for crate::text::Textless {
    type Key = Self;
}
