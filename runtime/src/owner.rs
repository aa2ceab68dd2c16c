//! Who controls what: controller references, and what to do with an object that may be ours. Pure.
//!
//! At most one owner reference of an object says `controller: true`; that owner alone creates, deletes and counts it. A controller
//! *adopts* what matches its selector and has no controller, and *releases* what is its own and matches no longer. Two controllers
//! whose selectors overlap do not fight: the first to adopt has it.
//!
//! [`ControllerRefs`] decides, and builds the patch; the caller asks the server whether its owner still lives (before the first
//! adoption, with a live read), sends the patch, and takes *not found* as settled.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::Resource;
use serde::Serialize;

/// The reference by which `owner` controls an object: `controller` and `blockOwnerDeletion` are set.
///
/// `None` for an owner that did not come from a server: without a name and a UID there is nothing to refer to.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone()?,
        uid: owner.meta().uid.clone()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

/// The reference to the object's controller, if it has one.
pub fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    let references = object.owner_references.as_deref().unwrap_or_default();
    references.iter().find(|reference| reference.controller == Some(true))
}

/// One owner's view on objects that may be its own: which to claim, and the patches that do it.
#[derive(Debug, Clone)]
pub struct ControllerRefs {
    reference: OwnerReference,
    namespace: Option<String>,
    is_being_deleted: bool,
}

/// What an owner does about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is the owner's and matches: count it.
    Owned,
    /// It matches and nobody controls it: send [`ControllerRefs::adopt`], and count it once the server has agreed.
    Adopt,
    /// It is the owner's and matches no longer: send [`ControllerRefs::release`].
    Release,
    /// It is somebody else's, or nobody's and not wanted.
    Ignore,
}

/// The body of a strategic merge patch that adopts or releases one object. The server refuses it (422) when the object
/// is no longer the one with this UID.
#[derive(Debug, Clone, Serialize)]
#[must_use = "a patch does nothing until it is sent"]
pub struct OwnerPatch {
    metadata: PatchedMetadata,
}

/// The order of the fields is client-go's, byte for byte.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum PatchedMetadata {
    Adopt {
        #[serde(rename = "ownerReferences")]
        owner_references: [AddedReference; 1],
        uid: String,
    },
    Release {
        uid: String,
        #[serde(rename = "ownerReferences")]
        owner_references: [RemovedReference; 1],
    },
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct AddedReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: bool,
    block_owner_deletion: bool,
}

#[derive(Debug, Clone, Serialize)]
struct RemovedReference {
    #[serde(rename = "$patch")]
    patch: &'static str,
    uid: String,
}

// === impl ControllerRefs ===

impl ControllerRefs {
    /// The view of `owner`, as it was read last. `None` for an owner that did not come from a server.
    pub fn new<K: Resource<DynamicType = ()>>(owner: &K) -> Option<Self> {
        Some(Self {
            reference: controller_reference(owner)?,
            namespace: owner.meta().namespace.clone(),
            is_being_deleted: owner.meta().deletion_timestamp.is_some(),
        })
    }

    /// The reference that the owner's objects carry.
    pub fn reference(&self) -> &OwnerReference {
        &self.reference
    }

    /// Decides about `object`; `matches` (selector and filters) is asked only where it matters.
    pub fn claim(&self, object: &ObjectMeta, matches: impl Fn(&ObjectMeta) -> bool) -> Claim {
        match controller_of(object) {
            Some(controller) if controller.uid != self.reference.uid => Claim::Ignore,
            // Also while the owner or the object is being deleted: what is ours is counted until it is gone.
            Some(_) if matches(object) => Claim::Owned,
            // The garbage collector wants the references of a deleted owner's objects as they are.
            Some(_) if self.is_being_deleted => Claim::Ignore,
            Some(_) => Claim::Release,
            None if self.may_adopt(object) && matches(object) => Claim::Adopt,
            None => Claim::Ignore,
        }
    }

    fn may_adopt(&self, orphan: &ObjectMeta) -> bool {
        let within_reach = self.namespace.is_none() || self.namespace == orphan.namespace;
        !self.is_being_deleted && orphan.deletion_timestamp.is_none() && within_reach
    }

    /// Makes the owner the controller of `object`. A reference to it that does not say `controller` is upgraded in place.
    pub fn adopt(&self, object: &ObjectMeta) -> OwnerPatch {
        OwnerPatch {
            metadata: PatchedMetadata::Adopt {
                owner_references: [AddedReference {
                    api_version: self.reference.api_version.clone(),
                    kind: self.reference.kind.clone(),
                    name: self.reference.name.clone(),
                    uid: self.reference.uid.clone(),
                    controller: true,
                    block_owner_deletion: true,
                }],
                uid: object.uid.clone().unwrap_or_default(),
            },
        }
    }

    /// Removes the owner's reference from `object`. A server that finds no such reference answers 422: then it is settled too.
    pub fn release(&self, object: &ObjectMeta) -> OwnerPatch {
        OwnerPatch {
            metadata: PatchedMetadata::Release {
                uid: object.uid.clone().unwrap_or_default(),
                owner_references: [RemovedReference {
                    patch: "delete",
                    uid: self.reference.uid.clone(),
                }],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn owner() -> ConfigMap {
        ConfigMap { metadata: meta("owner", "456"), ..ConfigMap::default() }
    }

    fn meta(name: &str, uid: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some("ns".into()),
            uid: Some(uid.into()),
            ..ObjectMeta::default()
        }
    }

    fn deleted(mut meta: ObjectMeta) -> ObjectMeta {
        meta.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        meta
    }

    fn controlled_by(uid: &str) -> ObjectMeta {
        let mut reference = controller_reference(&owner()).unwrap();
        uid.clone_into(&mut reference.uid);
        let mut meta = meta("object", "123");
        meta.owner_references = Some(vec![reference]);
        meta
    }

    fn refs() -> ControllerRefs {
        ControllerRefs::new(&owner()).unwrap()
    }

    fn refs_of_deleted() -> ControllerRefs {
        let mut owner = owner();
        owner.metadata = deleted(owner.metadata);
        ControllerRefs::new(&owner).unwrap()
    }

    #[test]
    fn what_is_ours_is_counted_while_it_matches_and_released_when_not() {
        assert_eq!(refs().claim(&controlled_by("456"), |_| true), Claim::Owned);
        assert_eq!(refs().claim(&controlled_by("456"), |_| false), Claim::Release);
        let dying = deleted(controlled_by("456"));
        assert_eq!(refs().claim(&dying, |_| true), Claim::Owned);
        assert_eq!(refs().claim(&dying, |_| false), Claim::Release);
    }

    #[test]
    fn an_owner_that_is_being_deleted_counts_but_neither_releases_nor_adopts() {
        let refs = refs_of_deleted();
        assert_eq!(refs.claim(&controlled_by("456"), |_| true), Claim::Owned);
        assert_eq!(refs.claim(&controlled_by("456"), |_| false), Claim::Ignore);
        assert_eq!(refs.claim(&meta("orphan", "123"), |_| true), Claim::Ignore);
    }

    #[test]
    fn what_is_somebody_elses_is_ignored_without_asking_the_selector() {
        let claim = refs().claim(&controlled_by("457"), |_| panic!("asked"));
        assert_eq!(claim, Claim::Ignore);
    }

    #[test]
    fn an_orphan_is_adopted_if_it_matches_lives_and_is_in_reach() {
        let orphan = meta("orphan", "123");
        assert_eq!(refs().claim(&orphan, |_| true), Claim::Adopt);
        assert_eq!(refs().claim(&orphan, |_| false), Claim::Ignore);
        assert_eq!(refs().claim(&deleted(orphan.clone()), |_| true), Claim::Ignore);
        let mut elsewhere = orphan;
        elsewhere.namespace = Some("other".into());
        assert_eq!(refs().claim(&elsewhere, |_| true), Claim::Ignore);
        let cluster_scoped = Namespace {
            metadata: ObjectMeta { namespace: None, ..meta("owner", "456") },
            ..Namespace::default()
        };
        let refs = ControllerRefs::new(&cluster_scoped).unwrap();
        assert_eq!(refs.claim(&elsewhere, |_| true), Claim::Adopt);
    }

    #[test]
    fn a_reference_that_does_not_control_leaves_an_orphan() {
        let mut object = controlled_by("456");
        object.owner_references.as_mut().unwrap()[0].controller = None;
        assert_eq!(controller_of(&object), None);
        assert_eq!(refs().claim(&object, |_| true), Claim::Adopt);
    }

    #[test]
    fn patches_are_what_client_go_sends() {
        let object = meta("object", "123");
        assert_eq!(
            serde_json::to_string(&refs().adopt(&object)).unwrap(),
            concat!(
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"456","#,
                r#""controller":true,"blockOwnerDeletion":true}],"uid":"123"}}"#
            )
        );
        assert_eq!(
            serde_json::to_string(&refs().release(&object)).unwrap(),
            r#"{"metadata":{"uid":"123","ownerReferences":[{"$patch":"delete","uid":"456"}]}}"#
        );
    }

    #[test]
    fn an_owner_that_no_server_has_seen_cannot_be_referred_to() {
        assert_eq!(controller_reference(&ConfigMap::default()), None);
        assert!(ControllerRefs::new(&ConfigMap::default()).is_none());
    }
}
