//! The projection of a claim to storage.

use std::collections::BTreeSet;

use homeostat_quantity::ResourceList;
use serde::Deserialize;
use smol_str::SmolStr;

use super::Meta;
use crate::json;

/// A claim to storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PersistentVolumeClaim {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: ClaimSpec,
    /// Its status.
    #[serde(deserialize_with = "json::or_default")]
    pub status: ClaimStatus,
}

/// The specification of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ClaimSpec {
    /// The resources that are requested.
    #[serde(deserialize_with = "json::or_default")]
    pub resources: ClaimRequirements,
    /// The storage class.
    pub storage_class_name: Option<SmolStr>,
    /// The volume attributes class.
    pub volume_attributes_class_name: Option<SmolStr>,
}

/// The resources that a claim requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClaimRequirements {
    /// The requests.
    #[serde(deserialize_with = "json::or_default")]
    pub requests: ResourceList,
}

/// The status of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ClaimStatus {
    /// The resources that are allocated, also while an expansion has failed.
    #[serde(deserialize_with = "json::or_default")]
    pub allocated_resources: ResourceList,
    /// The volume attributes class that is in effect.
    pub current_volume_attributes_class_name: Option<SmolStr>,
    /// The change of class that is under way.
    #[serde(deserialize_with = "json::or_default")]
    pub modify_volume_status: ModifyVolumeStatus,
}

/// A change of the volume attributes class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModifyVolumeStatus {
    /// The class that the volume changes to.
    #[serde(deserialize_with = "json::or_default")]
    pub target_volume_attributes_class_name: SmolStr,
}

// === impl PersistentVolumeClaim ===

impl PersistentVolumeClaim {
    /// Returns the storage class: the annotation if it is present, even if empty, else the member.
    pub fn storage_class(&self) -> &str {
        let annotation = self.metadata.annotations.storage_class.as_ref();
        annotation.or(self.spec.storage_class_name.as_ref()).map_or("", SmolStr::as_str)
    }

    /// Returns the volume attributes classes that the claim names in its specification and its
    /// status.
    pub fn volume_attributes_classes(&self) -> BTreeSet<SmolStr> {
        let named = [
            self.spec.volume_attributes_class_name.as_ref(),
            self.status.current_volume_attributes_class_name.as_ref(),
            Some(&self.status.modify_volume_status.target_volume_attributes_class_name),
        ];
        named.into_iter().flatten().filter(|name| !name.is_empty()).cloned().collect()
    }
}
