//! The projections of a claim to devices and of a device class (`resource.k8s.io/v1`).

use serde::Deserialize;
use smol_str::SmolStr;

use super::{Meta, OwnerReference};
use crate::json;

/// A claim to devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResourceClaim {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: ResourceClaimSpec,
}

/// The specification of a claim to devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResourceClaimSpec {
    /// The devices.
    #[serde(deserialize_with = "json::or_default")]
    pub devices: DeviceRequests,
}

/// The devices of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DeviceRequests {
    /// The requests.
    #[serde(deserialize_with = "json::or_default")]
    pub requests: Vec<DeviceRequest>,
}

/// A request for devices. One that has neither member is of a type that is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DeviceRequest {
    /// The only way to satisfy the request.
    pub exactly: Option<DeviceCount>,
    /// The ways to satisfy the request, in order of preference.
    #[serde(deserialize_with = "json::or_default")]
    pub first_available: Vec<DeviceCount>,
}

/// A number of devices of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DeviceCount {
    /// The class.
    #[serde(deserialize_with = "json::or_default")]
    pub device_class_name: SmolStr,
    /// `ExactCount` or `All`.
    #[serde(deserialize_with = "json::or_default")]
    pub allocation_mode: SmolStr,
    /// The number of devices in the mode `ExactCount`.
    #[serde(deserialize_with = "json::or_default")]
    pub count: i64,
}

/// A device class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DeviceClass {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: DeviceClassSpec,
}

/// The specification of a device class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DeviceClassSpec {
    /// The extended resource that the class provides.
    pub extended_resource_name: Option<SmolStr>,
}

// === impl ResourceClaim ===

impl ResourceClaim {
    /// Returns the pod for whose extended resources the scheduler made the claim.
    ///
    /// This is the condition of upstream's index `extendedResourceClaimPodUIDOwner`.
    pub fn extended_resource_owner(&self) -> Option<&OwnerReference> {
        if self.metadata.annotations.extended_resource_claim.as_deref() != Some("true") {
            return None;
        }
        let owner = self.metadata.controller()?;
        (owner.kind == "Pod" && owner.api_version == "v1").then_some(owner)
    }
}

// === impl DeviceCount ===

/// The most devices that a claim can get (`AllocationResultsMaxSize`).
const MOST_DEVICES: i64 = 32;

impl DeviceCount {
    /// Returns the most devices that the request can get. An unknown mode counts 0.
    pub fn most(&self) -> i64 {
        match self.allocation_mode.as_str() {
            "ExactCount" => self.count,
            "All" => MOST_DEVICES,
            _ => 0,
        }
    }
}
