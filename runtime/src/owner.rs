//! Owner references: adopting orphans and releasing objects.
//!
//! At most one owner reference of an object has `controller: true`. That owner alone creates,
//! deletes and counts the object. A controller *adopts* an object that matches its selector and has
//! no controller, and *releases* its own object if it no longer matches. If the selectors of two
//! controllers overlap, the first to adopt an object keeps it.
//!
//! [`RefManager`] adopts and releases objects at the server (kube-controller-manager's
//! `PodControllerRefManager`). [`ControllerRefs`] is the part of it that needs no client: it makes
//! the decision and builds the patch. Its caller reads the live owner before the first adoption and
//! checks that it is not being deleted, sends the patch, and ignores a 404 of the patch.
//!
//! # Examples
//!
//! ```
//! use homeostat::owner::{Claim, ControllerRefs};
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//!
//! let mut owner = ConfigMap::default();
//! owner.metadata.name = Some("web".into());
//! owner.metadata.uid = Some("5f1b6a5e".into());
//! let refs = ControllerRefs::new(&owner).expect("it has a name and a UID");
//!
//! let orphan = Pod::default();
//! assert_eq!(refs.claim(&orphan.metadata, |_| true), Claim::Adopt);
//! let patch = serde_json::to_value(refs.adopt(&orphan.metadata))?;
//! assert_eq!(patch["metadata"]["ownerReferences"][0]["name"], "web");
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;

use homeostat_informer::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::Resource;

pub use self::claims::{ClaimError, ClaimErrors, RefManager};
pub use self::controller_refs::{Claim, ControllerRefs};
pub use self::patch::OwnerPatch;

mod claims;
mod controller_refs;
mod patch;

/// The kind and the group of an owner, without the version.
///
/// # Examples
///
/// ```
/// use homeostat::owner::OwnerKind;
/// use k8s_openapi::api::apps::v1::ReplicaSet;
///
/// assert_eq!(OwnerKind::of::<ReplicaSet>(), OwnerKind::new("apps", "ReplicaSet"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnerKind {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
}

// === impl OwnerKind ===

impl OwnerKind {
    /// Returns the kind with this group and name, for a kind that is known only at run time. The
    /// core group is empty.
    pub fn new(group: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Returns the kind of a Rust type.
    pub fn of<Kind: Resource<DynamicType = ()>>() -> Self {
        Self { group: Kind::group(&()), kind: Kind::kind(&()) }
    }

    /// Returns true if `reference` names an object of this kind, in any version.
    ///
    /// The version does not count: a reference of `apps/v1beta1` is one of `apps/v1`.
    pub fn is_kind_of(&self, reference: &OwnerReference) -> bool {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        reference.kind == self.kind && group == self.group
    }
}

/// Returns the reference by which `owner` controls an object, with `controller` and
/// `blockOwnerDeletion`.
///
/// Returns `None` if the owner has no name or no UID: no server has stored it.
///
/// # Examples
///
/// ```
/// use homeostat::owner::controller_reference;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// let mut owner = ConfigMap::default();
/// owner.metadata.name = Some("settings".into());
/// owner.metadata.uid = Some("5f1b6a5e".into());
///
/// let mut copy = Secret::default();
/// copy.metadata.owner_references = controller_reference(&owner).map(|reference| vec![reference]);
/// assert!(copy.metadata.owner_references.is_some());
/// ```
#[doc(alias = "NewControllerRef")]
#[doc(alias = "SetControllerReference")]
pub fn controller_reference<K: Object>(owner: &K) -> Option<OwnerReference>
where
    K::Kind: Resource<DynamicType = ()>,
{
    Some(OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..owner_reference(owner)?
    })
}

/// Returns a reference to `owner` without `controller` and without `blockOwnerDeletion`: the
/// garbage collector deletes the object after its last owner, and its owner's deletion does not
/// wait for it. An object may have several such owners.
///
/// Returns `None` if the owner has no name or no UID.
///
/// `blockOwnerDeletion` needs the permission to update the owner's finalizers where the server
/// checks that.
///
/// # Examples
///
/// A controller reference that does not block the owner's deletion:
///
/// ```
/// use homeostat::owner::owner_reference;
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
///
/// # let mut pod = Pod::default();
/// # pod.metadata.name = Some("web".into());
/// # pod.metadata.uid = Some("5f1b6a5e".into());
/// let reference = owner_reference(&pod).expect("the server has stored the pod");
/// let reference = OwnerReference { controller: Some(true), ..reference };
/// assert_eq!(reference.block_owner_deletion, None);
/// ```
#[doc(alias = "SetOwnerReference")]
pub fn owner_reference<K: Object>(owner: &K) -> Option<OwnerReference>
where
    K::Kind: Resource<DynamicType = ()>,
{
    Some(OwnerReference {
        api_version: K::Kind::api_version(&()).into_owned(),
        kind: K::Kind::kind(&()).into_owned(),
        name: owner.metadata().name.clone()?,
        uid: owner.metadata().uid.clone()?,
        controller: None,
        block_owner_deletion: None,
    })
}

/// Returns the reference to the object's controller, or `None`.
///
/// Other owners, which do not have `controller: true`, are not considered.
///
/// # Examples
///
/// ```
/// use homeostat::owner::controller_of;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
///
/// let owner = OwnerReference { name: "web".into(), ..OwnerReference::default() };
/// let mut object = ObjectMeta { owner_references: Some(vec![owner]), ..ObjectMeta::default() };
/// assert_eq!(controller_of(&object), None);
/// object.owner_references.as_mut().unwrap()[0].controller = Some(true);
/// assert_eq!(controller_of(&object).unwrap().name, "web");
/// ```
#[doc(alias = "GetControllerOf")]
pub fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    let references = object.owner_references.as_deref().unwrap_or_default();
    references.iter().find(|reference| reference.controller == Some(true))
}
