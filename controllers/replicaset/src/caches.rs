//! The caches that the controller reads, and the keys of their indices.

use homeostat::owner::controller_of;
use homeostat::{Index, Lister, ObjectMeta, SharedIndexInformer};

use crate::kind::WorkloadKind;
use crate::pod::Pod;
use crate::workload::Workload;

/// The listers and indices of one controller.
pub(crate) struct Caches<K: WorkloadKind> {
    pub(crate) sets: Lister<Workload<K>>,
    pub(crate) pods: Lister<Pod>,
    /// Pods by the owner of this kind that their controller reference names, including pods that do
    /// not decode.
    pub(crate) owned: Index<Pod, OwnerName>,
    /// Pods without a controller, by namespace.
    pub(crate) orphans: Index<Pod, Box<str>>,
    /// Owners by the UID of their own controller.
    pub(crate) siblings: Index<Workload<K>, Box<str>>,
}

/// An owner as a pod's reference names it: namespace, name and UID.
pub(crate) type OwnerName = Box<str>;

// === impl Caches ===

impl<K: WorkloadKind> Caches<K> {
    pub(crate) fn new(
        sets: &SharedIndexInformer<Workload<K>>,
        pods: &SharedIndexInformer<Pod>,
    ) -> Self {
        Self {
            sets: sets.lister(),
            pods: pods.lister(),
            owned: pods.index_by_metadata(owner_of::<K>),
            orphans: pods.index_by_metadata(orphan_in),
            siblings: sets.index_by_metadata(controller_uid),
        }
    }
}

/// Returns the index key of an owner. The namespace is a part of it, because a reference names an
/// owner in the object's namespace only.
pub(crate) fn owner_name(namespace: Option<&str>, name: &str, uid: &str) -> OwnerName {
    [namespace.unwrap_or_default(), "/", name, "/", uid].concat().into_boxed_str()
}

/// Returns the UID of an owner's own controller.
pub(crate) fn controller_uid(set: &ObjectMeta) -> Option<Box<str>> {
    controller_of(set).map(|owner| owner.uid.as_str().into())
}

/// Returns the owner of the kind `K` that a pod names as its controller. The kind alone is
/// compared, as upstream: old pods name `extensions/v1beta1`. The UID is unique.
pub(crate) fn owner_of<K: WorkloadKind>(pod: &ObjectMeta) -> Option<OwnerName> {
    let owner = controller_of(pod).filter(|owner| owner.kind == K::KIND)?;
    Some(owner_name(pod.namespace.as_deref(), &owner.name, &owner.uid))
}

/// Returns the namespace of a pod without a controller.
pub(crate) fn orphan_in(pod: &ObjectMeta) -> Option<Box<str>> {
    let namespace = || pod.namespace.as_deref().unwrap_or_default().into();
    controller_of(pod).is_none().then(namespace)
}
