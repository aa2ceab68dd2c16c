//! [`ControllerRefs`]: the decisions about the objects of one owner. Pure.

use homeostat_informer::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_client::Resource;

use super::{OwnerPatch, controller_of, controller_reference};

/// Decides for one owner which objects to claim, and builds the patches.
///
/// Use it if a selector decides which objects belong to an owner, as for a `ReplicaSet`. Use
/// [`controller_reference`] alone instead if the controller creates all of its objects with a
/// reference and adopts none.
///
/// It is a snapshot of the owner's metadata: make a new one for each reconcile.
#[doc(alias = "PodControllerRefManager")]
#[doc(alias = "BaseControllerRefManager")]
#[derive(Debug, Clone)]
pub struct ControllerRefs {
    /// The reference that this owner's objects carry.
    reference: OwnerReference,
    /// `None` for a cluster-scoped owner, which may own objects of every namespace.
    namespace: Option<String>,
    /// As of the cached owner: the caller checks the live one before the first adoption.
    is_being_deleted: bool,
    /// Added by an adoption and removed by a release.
    finalizer: Option<String>,
}

/// The decision about one object.
///
/// | Controller of the object | matches | does not match |
/// | --- | --- | --- |
/// | this owner | `Owned` | `Release`; `Ignore` while the owner is being deleted |
/// | none | `Adopt`, if neither is being deleted and the namespace fits | `Ignore` |
/// | another owner | `Ignore` | `Ignore` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The object belongs to the owner and matches: count it.
    Owned,
    /// The object matches and has no controller: send [`ControllerRefs::adopt`], and count the
    /// object if the patch succeeds.
    Adopt,
    /// The object belongs to the owner and no longer matches: send [`ControllerRefs::release`].
    Release,
    /// The object belongs to another owner, or is an orphan that must not be adopted.
    Ignore,
}

// === impl ControllerRefs ===

impl ControllerRefs {
    /// Returns the decisions for `owner`, or `None` if it has no name or no UID.
    pub fn new<K: Object>(owner: &K) -> Option<Self>
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        Some(Self {
            reference: controller_reference(owner)?,
            namespace: owner.metadata().namespace.clone(),
            is_being_deleted: owner.metadata().deletion_timestamp.is_some(),
            finalizer: None,
        })
    }

    /// Adds a finalizer with each adoption, and removes it with each release.
    #[must_use]
    pub fn with_finalizer(mut self, name: impl Into<String>) -> Self {
        self.finalizer = Some(name.into());
        self
    }

    /// Returns the controller reference of the owner's objects.
    pub fn reference(&self) -> &OwnerReference {
        &self.reference
    }

    /// Decides about `object`. `matches` (the owner's selector) is called only if the decision
    /// depends on it.
    pub fn claim(&self, object: &ObjectMeta, matches: impl Fn(&ObjectMeta) -> bool) -> Claim {
        match controller_of(object) {
            Some(controller) if controller.uid != self.reference.uid => Claim::Ignore,
            // Also while the owner or the object is being deleted: it is counted until it is gone.
            Some(_) if matches(object) => Claim::Owned,
            // The garbage collector needs the references to an owner that is being deleted.
            Some(_) if self.is_being_deleted => Claim::Ignore,
            Some(_) => Claim::Release,
            None if self.may_adopt(object) && matches(object) => Claim::Adopt,
            None => Claim::Ignore,
        }
    }

    /// Returns true if neither the owner nor the orphan is being deleted, and the owner may own
    /// objects of the orphan's namespace.
    fn may_adopt(&self, orphan: &ObjectMeta) -> bool {
        let in_reach = self.namespace.is_none() || self.namespace == orphan.namespace;
        !self.is_being_deleted && orphan.deletion_timestamp.is_none() && in_reach
    }

    /// Returns the patch that makes the owner the controller of `object`. An existing reference to
    /// the owner without `controller` is changed in place.
    ///
    /// The patch carries the object's UID as a precondition. A 404 means that the object is gone,
    /// and a 422 that another object has its name: in both cases there is nothing to adopt.
    pub fn adopt(&self, object: &ObjectMeta) -> OwnerPatch {
        OwnerPatch::adopt(object, &self.reference, self.finalizer.clone())
    }

    /// Returns the patch that removes the owner's reference from `object`. The server answers 422
    /// if there is no such reference; treat that as success.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::owner::{Claim, ControllerRefs};
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    ///
    /// let mut owner = ConfigMap::default();
    /// owner.metadata.name = Some("web".into());
    /// owner.metadata.uid = Some("5f1b6a5e".into());
    /// let refs = ControllerRefs::new(&owner).expect("it has a name and a UID");
    ///
    /// let mut pod = Pod::default();
    /// pod.metadata.owner_references = Some(vec![refs.reference().clone()]);
    /// assert_eq!(refs.claim(&pod.metadata, |_| false), Claim::Release);
    /// let patch = serde_json::to_value(refs.release(&pod.metadata))?;
    /// assert_eq!(patch["metadata"]["ownerReferences"][0]["$patch"], "delete");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn release(&self, object: &ObjectMeta) -> OwnerPatch {
        OwnerPatch::release(object, &self.reference, self.finalizer.clone())
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
    fn owned_object_is_counted_while_it_matches_and_released_afterwards() {
        assert_eq!(refs().claim(&controlled_by("456"), |_| true), Claim::Owned);
        assert_eq!(refs().claim(&controlled_by("456"), |_| false), Claim::Release);
        let dying = deleted(controlled_by("456"));
        assert_eq!(refs().claim(&dying, |_| true), Claim::Owned);
        assert_eq!(refs().claim(&dying, |_| false), Claim::Release);
    }

    #[test]
    fn owner_that_is_being_deleted_counts_but_neither_releases_nor_adopts() {
        let refs = refs_of_deleted();
        assert_eq!(refs.claim(&controlled_by("456"), |_| true), Claim::Owned);
        assert_eq!(refs.claim(&controlled_by("456"), |_| false), Claim::Ignore);
        assert_eq!(refs.claim(&meta("orphan", "123"), |_| true), Claim::Ignore);
    }

    #[test]
    fn object_of_another_owner_is_ignored_without_calling_the_selector() {
        let claim = refs().claim(&controlled_by("457"), |_| panic!("called"));
        assert_eq!(claim, Claim::Ignore);
    }

    #[test]
    fn orphan_is_adopted_if_it_matches_is_not_deleted_and_in_the_namespace() {
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
    fn object_with_a_reference_that_does_not_control_is_an_orphan() {
        let mut object = controlled_by("456");
        object.owner_references.as_mut().unwrap()[0].controller = None;
        assert_eq!(controller_of(&object), None);
        assert_eq!(refs().claim(&object, |_| true), Claim::Adopt);
    }

    #[test]
    fn patches_equal_those_of_client_go() {
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

    /// Upstream's `TestGeneratePatchBytesForDelete`.
    #[test]
    fn uids_are_escaped_in_patches() {
        let mut owner = owner();
        owner.metadata.uid = Some("ss1\"hello".into());
        let refs = ControllerRefs::new(&owner).unwrap();
        assert_eq!(
            serde_json::to_string(&refs.release(&meta("object", "ss2\"hello"))).unwrap(),
            concat!(
                r#"{"metadata":{"uid":"ss2\"hello","#,
                r#""ownerReferences":[{"$patch":"delete","uid":"ss1\"hello"}]}}"#
            )
        );
    }

    #[test]
    fn finalizer_comes_with_the_reference_and_leaves_with_it() {
        let (refs, object) = (refs().with_finalizer("example.com/f"), meta("object", "123"));
        let adopt = serde_json::to_value(refs.adopt(&object)).unwrap();
        assert_eq!(adopt["metadata"]["finalizers"], serde_json::json!(["example.com/f"]));
        assert_eq!(
            serde_json::to_string(&refs.release(&object)).unwrap(),
            concat!(
                r#"{"metadata":{"uid":"123","ownerReferences":[{"$patch":"delete","uid":"456"}],"#,
                r#""$deleteFromPrimitiveList/finalizers":["example.com/f"]}}"#
            )
        );
    }

    #[test]
    fn owner_without_name_and_uid_has_no_reference() {
        assert_eq!(controller_reference(&ConfigMap::default()), None);
        assert!(ControllerRefs::new(&ConfigMap::default()).is_none());
    }
}
