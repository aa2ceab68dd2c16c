//! A projection of a `ResourceClaimTemplate`, and the body of the request that creates a claim from
//! it. Pure.

use std::collections::BTreeMap;

use homeostat::{ObjectMeta, Projection};
use k8s_openapi::api::resource::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::claim::{DeviceRequest, POD_CLAIM_NAME};
use crate::gates::FeatureGates;

/// The members of a `ResourceClaimTemplate` that the controller reads.
#[derive(Debug, Default, Projection)]
#[projection(kind = v1::ResourceClaimTemplate)]
pub struct Template {
    /// The metadata, as the server sent it.
    pub metadata: ObjectMeta,
    /// The labels of the claims.
    #[projection(path = "spec.metadata.labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// The annotations of the claims.
    #[projection(path = "spec.metadata.annotations")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// The spec of the claims as JSON, with the members that this program does not know.
    #[projection(path = "spec.spec", with = raw_json)]
    pub spec: Box<str>,
}

/// The error of a template that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The gate `DRAAdminAccess` is off.
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccess,
    /// The gate `DRAPrioritizedList` is off.
    #[error("template includes a prioritized list of subrequests, but the feature is disabled")]
    PrioritizedList,
    /// The template's spec does not decode.
    #[error("the template's spec does not decode: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    devices: Option<Devices>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Devices {
    requests: Option<Vec<DeviceRequest>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewClaim<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: NewMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<String, String>>,
    annotations: BTreeMap<&'a str, &'a str>,
    owner_references: [&'a OwnerReference; 1],
}

// === impl Template ===

impl Template {
    /// Checks the template against the gates, and returns true if it asks for admin access.
    ///
    /// # Errors
    ///
    /// Returns an error if a gate forbids the template, or if its spec does not decode.
    pub fn check(&self, gates: &FeatureGates) -> Result<bool, TemplateError> {
        let spec: Option<Spec> = serde_json::from_str(self.json())?;
        let requests = spec.and_then(|spec| spec.devices?.requests).unwrap_or_default();
        let admin_access = requests.iter().any(DeviceRequest::wants_admin_access);
        if admin_access && !gates.admin_access {
            return Err(TemplateError::AdminAccess);
        }
        if !gates.prioritized_list && requests.iter().any(DeviceRequest::is_prioritized_list) {
            return Err(TemplateError::PrioritizedList);
        }
        Ok(admin_access)
    }

    /// Returns the body of the request that creates the claim `name` for `entry` of the pod that
    /// `owner` names.
    ///
    /// # Errors
    ///
    /// Returns an error if the template's spec is no JSON.
    pub fn claim(
        &self,
        name: &str,
        entry: &str,
        owner: &OwnerReference,
    ) -> Result<Vec<u8>, TemplateError> {
        let annotations = self.annotations.iter().flatten();
        let mut annotations: BTreeMap<_, _> =
            annotations.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        annotations.insert(POD_CLAIM_NAME, entry);
        let claim = NewClaim {
            api_version: "resource.k8s.io/v1",
            kind: "ResourceClaim",
            metadata: NewMetadata {
                name,
                labels: self.labels.as_ref(),
                annotations,
                owner_references: [owner],
            },
            spec: serde_json::from_str(self.json())?,
        };
        Ok(serde_json::to_vec(&claim)?)
    }

    fn json(&self) -> &str {
        if self.spec.is_empty() { "null" } else { &self.spec }
    }
}

fn raw_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let raw: Box<RawValue> = Deserialize::deserialize(deserializer)?;
    Ok(raw.get().into())
}

#[cfg(test)]
mod tests;
