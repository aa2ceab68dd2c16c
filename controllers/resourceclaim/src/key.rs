//! The keys of the controller's queue.

use std::fmt;

use homeostat::{ObjectKey, Target};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;

/// A pod or a claim to reconcile. Logs show upstream's form, `pod:ns/name` or `claim:ns/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A pod.
    Pod(ObjectKey<Pod>),
    /// A claim.
    Claim(ObjectKey<ResourceClaim>),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "pod:{key}"),
            Self::Claim(key) => write!(f, "claim:{key}"),
        }
    }
}

impl Target for Key {
    type Key = Self;
}
