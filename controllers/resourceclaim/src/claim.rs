//! A projection of a `ResourceClaim`: the members that the controller reads.
//!
//! Writes are patches that name what they change. So members that this projection lacks, such as
//! the drivers' `status.devices`, stay as they are at the server.

use std::cmp::Ordering;
use std::collections::HashMap;

use homeostat::owner::controller_of;
use homeostat::{Object as _, ObjectMeta, Projection};
use k8s_openapi::api::resource::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::pod::Pod;

/// The annotation with the name of the pod's entry for which a claim was created.
pub(crate) const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// The annotation of a claim that the scheduler created for extended resources.
pub(crate) const EXTENDED_RESOURCE: &str = "resource.kubernetes.io/extended-resource-claim";
/// The finalizer that the scheduler sets before it allocates a claim.
pub(crate) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The members of a `ResourceClaim` that the controller reads.
#[derive(Debug, Default, Projection)]
#[projection(kind = v1::ResourceClaim)]
pub struct Claim {
    /// The metadata, as the server sent it.
    pub metadata: ObjectMeta,
    /// True if one of the requests asks for admin access.
    #[projection(path = "spec.devices.requests", with = any_admin_access)]
    pub admin_access: bool,
    /// True if the scheduler has allocated devices.
    #[projection(path = "status.allocation", with = is_present)]
    pub is_allocated: bool,
    /// The consumers that may use the allocated devices.
    #[projection(path = "status.reservedFor")]
    pub reserved_for: Box<[Consumer]>,
}

/// An entry of `status.reservedFor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Consumer {
    /// The API group, empty for pods.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub api_group: Box<str>,
    /// The resource, `pods` for pods.
    pub resource: Box<str>,
    /// The name of the consumer.
    pub name: Box<str>,
    /// The UID of the consumer.
    pub uid: Box<str>,
}

/// The error of a claim that was created for another pod. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The claim and the pod are in two namespaces.
    #[error("ResourceClaim {claim} is not in the same namespace as Pod {pod}")]
    Namespace {
        /// Namespace and name of the claim.
        claim: String,
        /// Namespace and name of the pod.
        pod: String,
    },
    /// The pod is not the claim's controller.
    #[error("ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)")]
    NotOwner {
        /// Namespace and name of the claim.
        claim: String,
        /// Namespace and name of the pod.
        pod: String,
    },
}

// === impl Claim ===

impl Claim {
    /// Returns the namespace, empty if the server sent none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the name, empty if the server sent none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the UID, empty if the server sent none.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns true if the claim is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if the scheduler's finalizer protects the claim.
    pub fn is_protected(&self) -> bool {
        self.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
    }

    /// Returns true if the consumer with this UID has reserved the claim.
    pub fn is_reserved_for(&self, uid: &str) -> bool {
        self.reserved_for.iter().any(|consumer| &*consumer.uid == uid)
    }

    /// Checks that the claim was created for `pod`.
    ///
    /// # Errors
    ///
    /// Returns an error if the pod is not the claim's controller.
    pub fn check_owner(&self, pod: &Pod) -> Result<(), OwnerError> {
        let names = || (self.key().to_string(), pod.full_name());
        if self.namespace() != pod.namespace() {
            let (claim, pod) = names();
            return Err(OwnerError::Namespace { claim, pod });
        }
        if !is_controlled_by(&self.metadata, pod.uid()) {
            let (claim, pod) = names();
            return Err(OwnerError::NotOwner { claim, pod });
        }
        Ok(())
    }

    /// Returns the pod that the claim was created for, as the claim's controller reference names
    /// it.
    pub fn owner(&self) -> Option<&OwnerReference> {
        controller_of(&self.metadata).filter(|owner| is_pod(owner))
    }

    /// Returns the value of the label `source` in metrics.
    pub(crate) fn source(&self) -> &'static str {
        let annotation = |name| annotation(&self.metadata, name).unwrap_or_default();
        if annotation(EXTENDED_RESOURCE) == "true" {
            "extended_resource"
        } else if annotation(POD_CLAIM_NAME).is_empty() {
            ""
        } else {
            "resource_claim_template"
        }
    }
}

// === impl Consumer ===

impl Consumer {
    /// Returns the consumer that stands for `pod`.
    pub fn of(pod: &Pod) -> Self {
        Self {
            api_group: Box::default(),
            resource: "pods".into(),
            name: pod.name().into(),
            uid: pod.uid().into(),
        }
    }

    /// Returns true if the consumer is a pod.
    pub fn is_pod(&self) -> bool {
        self.api_group.is_empty() && &*self.resource == "pods"
    }
}

/// Returns true if the owner with this UID is the object's controller.
pub(crate) fn is_controlled_by(object: &ObjectMeta, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == uid)
}

/// Returns the UID of the pod that controls a claim.
pub(crate) fn owner_uid(claim: &ObjectMeta) -> Option<&str> {
    controller_of(claim).filter(|owner| is_pod(owner)).map(|owner| owner.uid.as_str())
}

/// Returns true if a claim was created for the pod with this UID and for its entry `entry`.
pub(crate) fn is_for_entry(claim: &ObjectMeta, uid: &str, entry: &str) -> bool {
    is_controlled_by(claim, uid) && annotation(claim, POD_CLAIM_NAME) == Some(entry)
}

/// Returns the oldest claim for each entry of the pod with this UID. Of two claims of the same
/// second the one with the lower name is older.
///
/// The costs are linear in the number of claims: a hostile pod may have 100,000 entries.
pub(crate) fn oldest_by_entry(
    claims: impl IntoIterator<Item = ObjectMeta>,
    uid: &str,
) -> HashMap<String, ObjectMeta> {
    let mut oldest: HashMap<String, ObjectMeta> = HashMap::new();
    for claim in claims.into_iter().filter(|claim| is_controlled_by(claim, uid)) {
        let Some(entry) = annotation(&claim, POD_CLAIM_NAME) else { continue };
        let is_oldest = oldest.get(entry).is_none_or(|known| by_age(&claim, known).is_lt());
        if is_oldest {
            oldest.insert(entry.to_owned(), claim);
        }
    }
    oldest
}

fn by_age(a: &ObjectMeta, b: &ObjectMeta) -> Ordering {
    let created = |claim: &ObjectMeta| claim.creation_timestamp.as_ref().map(|time| time.0);
    created(a).cmp(&created(b)).then_with(|| a.name.cmp(&b.name))
}

fn is_pod(owner: &OwnerReference) -> bool {
    owner.api_version == "v1" && owner.kind == "Pod"
}

fn annotation<'a>(object: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    object.annotations.as_ref()?.get(name).map(String::as_str)
}

// === decoding ===

fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// The part of a device request that the controller reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeviceRequest {
    exactly: Option<ExactRequest>,
    first_available: Option<Vec<IgnoredAny>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExactRequest {
    admin_access: Option<bool>,
}

impl DeviceRequest {
    pub(crate) fn wants_admin_access(&self) -> bool {
        self.exactly.as_ref().and_then(|exactly| exactly.admin_access).unwrap_or_default()
    }

    pub(crate) fn is_prioritized_list(&self) -> bool {
        self.first_available.as_ref().is_some_and(|list| !list.is_empty())
    }
}

fn any_admin_access<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let requests: Option<Vec<DeviceRequest>> = Option::deserialize(deserializer)?;
    Ok(requests.iter().flatten().any(DeviceRequest::wants_admin_access))
}

#[cfg(test)]
mod tests;
