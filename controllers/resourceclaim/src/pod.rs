//! A projection of a pod: the members that the controller reads.

use std::collections::HashMap;

use homeostat::{Object as _, ObjectMeta, Projection};
use k8s_openapi::api::core::v1;
use serde::{Deserialize, Deserializer};

/// The members of a pod that the controller reads.
#[derive(Debug, Default, Projection)]
#[projection(kind = v1::Pod)]
pub struct Pod {
    /// The metadata, as the server sent it.
    pub metadata: ObjectMeta,
    /// The node that the pod is bound to; empty while it is unscheduled.
    #[projection(path = "spec.nodeName")]
    pub node_name: Box<str>,
    /// The entries of `spec.resourceClaims`.
    #[projection(path = "spec.resourceClaims")]
    pub claims: Box<[PodClaim]>,
    /// The pod's `PodGroup`, if it is a member of one.
    #[projection(path = "spec.schedulingGroup.podGroupName")]
    pub pod_group: Option<Box<str>>,
    /// True if the pod has succeeded or failed.
    #[projection(path = "status.phase", with = is_terminal_phase)]
    pub is_terminal: bool,
    /// The names of the generated claims, as the controller recorded them.
    #[projection(path = "status.resourceClaimStatuses")]
    pub claim_statuses: Box<[ClaimStatus]>,
    /// The claim that the scheduler created for extended resources.
    #[projection(path = "status.extendedResourceClaimStatus")]
    pub extended_claim: Option<ExtendedClaim>,
}

/// An entry of `spec.resourceClaims`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodClaim {
    /// The name of the entry in the pod.
    pub name: Box<str>,
    /// The name of a claim that the user created.
    pub resource_claim_name: Option<Box<str>>,
    /// The name of the template that a claim is created from.
    pub resource_claim_template_name: Option<Box<str>>,
}

/// An entry of `status.resourceClaimStatuses`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimStatus {
    /// The name of the entry in the pod's spec.
    pub name: Box<str>,
    /// The name of the claim; `None` if the entry needs none.
    pub resource_claim_name: Option<Box<str>>,
}

/// `status.extendedResourceClaimStatus`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtendedClaim {
    /// The name of the claim.
    pub resource_claim_name: Box<str>,
}

/// The claim of one entry, as the pod's spec and status name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution<'a> {
    /// The user chose this claim. Any pod may use it.
    Chosen(&'a str),
    /// The controller created this claim for the pod and recorded it.
    Generated(&'a str),
    /// The status says that the entry needs no claim.
    NotNeeded,
    /// No claim of the entry's template is recorded yet.
    NotCreated,
    /// The entry has neither a name nor a template that this program knows.
    Unsupported,
}

// === impl Pod ===

impl Pod {
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

    /// Returns true if the pod is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if the pod does not need its claims any more (upstream's `isPodDone`): it has
    /// ended, or it is being deleted and never reached a node.
    pub fn is_done(&self) -> bool {
        self.is_terminal || self.is_being_deleted() && self.node_name.is_empty()
    }

    /// Returns true if the pod uses or used claims.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty() || self.extended_claim.is_some()
    }

    /// Returns each entry of the spec with its claim.
    ///
    /// The costs are linear: a hostile pod may have 100,000 entries.
    pub fn resolutions(&self) -> impl Iterator<Item = (&PodClaim, Resolution<'_>)> {
        let recorded = self.recorded_claims();
        self.claims.iter().map(move |entry| {
            let resolution = match entry {
                PodClaim { resource_claim_name: Some(name), .. } => Resolution::Chosen(name),
                PodClaim { resource_claim_template_name: None, .. } => Resolution::Unsupported,
                PodClaim { name, .. } => match recorded.get(&**name) {
                    Some(Some(name)) => Resolution::Generated(name),
                    Some(None) => Resolution::NotNeeded,
                    None => Resolution::NotCreated,
                },
            };
            (entry, resolution)
        })
    }

    /// Returns the claims that the status records, by the name of their entry.
    fn recorded_claims(&self) -> HashMap<&str, Option<&str>> {
        let mut recorded = HashMap::new();
        for status in &self.claim_statuses {
            recorded.entry(&*status.name).or_insert(status.resource_claim_name.as_deref());
        }
        recorded
    }

    /// Returns the names of all claims that the pod is known to use, without duplicates.
    pub fn known_claims(&self) -> Vec<&str> {
        let mut names: Vec<_> =
            self.resolutions().filter_map(|(_, resolution)| resolution.name()).collect();
        names.extend(self.extended_claim.as_ref().map(|claim| &*claim.resource_claim_name));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns `namespace/name`, as error texts name the pod.
    pub(crate) fn full_name(&self) -> String {
        self.key().to_string()
    }
}

// === impl Resolution ===

impl<'a> Resolution<'a> {
    /// Returns the name of the claim if it is known.
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::Chosen(name) | Self::Generated(name) => Some(name),
            Self::NotNeeded | Self::NotCreated | Self::Unsupported => None,
        }
    }

    /// Returns upstream's error text for an entry whose claim is not known.
    pub fn error(self, pod: &Pod, entry: &PodClaim) -> Option<String> {
        let (pod, entry) = (pod.full_name(), &entry.name);
        match self {
            Self::Chosen(_) | Self::Generated(_) | Self::NotNeeded => None,
            Self::NotCreated => Some(format!("pod {pod:?}: ResourceClaim not created yet")),
            Self::Unsupported => Some(format!(
                "pod {pod:?}, spec.resourceClaim {entry:?}: none of the supported fields are set"
            )),
        }
    }
}

fn is_terminal_phase<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let phase: Option<Box<str>> = Option::deserialize(deserializer)?;
    Ok(phase.as_deref().is_some_and(is_terminal))
}

/// Returns true for the phase of a pod that has ended.
pub(crate) fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
