//! [`OwnerPatch`]: the patch that adopts or releases an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;

/// The body of a strategic merge patch that adopts or releases one object. The server answers 422
/// if an object with another UID has the name by then.
///
/// Send it with `kube_client::api::Patch::Strategic`.
#[derive(Debug, Clone, Serialize)]
#[must_use = "a patch does nothing until it is sent"]
pub struct OwnerPatch {
    metadata: PatchedMetadata,
}

/// The order of the fields is client-go's, so that the patches are equal byte for byte.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum PatchedMetadata {
    Adopt {
        #[serde(rename = "ownerReferences")]
        owner_references: [AddedReference; 1],
        uid: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        finalizers: Option<[String; 1]>,
    },
    Release {
        uid: String,
        #[serde(rename = "ownerReferences")]
        owner_references: [RemovedReference; 1],
        #[serde(rename = "$deleteFromPrimitiveList/finalizers")]
        #[serde(skip_serializing_if = "Option::is_none")]
        removed_finalizers: Option<[String; 1]>,
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

// === impl OwnerPatch ===

impl OwnerPatch {
    /// Returns the patch that makes the owner of `reference` the controller of `object`.
    pub(super) fn adopt(
        object: &ObjectMeta,
        reference: &OwnerReference,
        finalizer: Option<String>,
    ) -> Self {
        let added = AddedReference {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
            controller: true,
            block_owner_deletion: true,
        };
        let metadata = PatchedMetadata::Adopt {
            owner_references: [added],
            uid: object.uid.clone().unwrap_or_default(),
            finalizers: finalizer.map(|name| [name]),
        };
        Self { metadata }
    }

    /// Returns the patch that removes `reference` from `object`.
    pub(super) fn release(
        object: &ObjectMeta,
        reference: &OwnerReference,
        finalizer: Option<String>,
    ) -> Self {
        let removed = RemovedReference { patch: "delete", uid: reference.uid.clone() };
        let metadata = PatchedMetadata::Release {
            uid: object.uid.clone().unwrap_or_default(),
            owner_references: [removed],
            removed_finalizers: finalizer.map(|name| [name]),
        };
        Self { metadata }
    }
}
