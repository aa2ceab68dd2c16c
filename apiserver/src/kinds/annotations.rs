//! The annotations that several modules read.

/// Marks the copy of a static pod.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
/// Names the `AppArmor` profile of the container whose name follows.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// Names the storage class of a claim, from before there was a field.
pub(super) const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Names the class of an ingress, from before there was a field.
pub(super) const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
