//! The projection of a pod.

use homeostat_quantity::ResourceList;
use serde::Deserialize;
use serde::de::IgnoredAny;
use smol_str::SmolStr;

use super::Meta;
use crate::json;

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Pod {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: PodSpec,
    /// Its status.
    #[serde(deserialize_with = "json::or_default")]
    pub status: PodStatus,
}

/// The specification of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PodSpec {
    /// The containers.
    #[serde(deserialize_with = "json::or_default")]
    pub containers: Vec<Container>,
    /// The init containers, restartable ones (sidecars) among them.
    #[serde(deserialize_with = "json::or_default")]
    pub init_containers: Vec<Container>,
    /// The resources of the pod as a whole.
    pub resources: Option<Requirements>,
    /// The resources that the sandbox takes.
    #[serde(deserialize_with = "json::or_default")]
    pub overhead: ResourceList,
    /// The time that the pod may be active.
    pub active_deadline_seconds: Option<i64>,
    /// The priority class.
    #[serde(deserialize_with = "json::or_default")]
    pub priority_class_name: SmolStr,
    /// The affinity.
    #[serde(deserialize_with = "json::or_default")]
    pub affinity: Affinity,
}

/// A container, or an init container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Container {
    /// The name.
    #[serde(deserialize_with = "json::or_default")]
    pub name: SmolStr,
    /// The resources.
    #[serde(deserialize_with = "json::or_default")]
    pub resources: Requirements,
    /// `Always` on an init container makes it a sidecar.
    #[serde(deserialize_with = "json::or_default")]
    pub restart_policy: SmolStr,
}

/// Requests and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Requirements {
    /// The requests.
    #[serde(deserialize_with = "json::or_default")]
    pub requests: ResourceList,
    /// The limits.
    #[serde(deserialize_with = "json::or_default")]
    pub limits: ResourceList,
}

/// Affinity and anti-affinity to other pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Affinity {
    /// Affinity to pods.
    #[serde(deserialize_with = "json::or_default")]
    pub pod_affinity: AffinityTerms,
    /// Anti-affinity to pods.
    #[serde(deserialize_with = "json::or_default")]
    pub pod_anti_affinity: AffinityTerms,
}

/// The terms of an affinity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AffinityTerms {
    /// The required terms.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    #[serde(deserialize_with = "json::or_default")]
    pub required: Vec<AffinityTerm>,
    /// The preferred terms.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[serde(deserialize_with = "json::or_default")]
    pub preferred: Vec<WeightedAffinityTerm>,
}

/// A preferred term.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WeightedAffinityTerm {
    /// The term.
    #[serde(deserialize_with = "json::or_default")]
    pub pod_affinity_term: AffinityTerm,
}

/// A term: only the namespaces that it reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AffinityTerm {
    /// The names of other namespaces.
    #[serde(deserialize_with = "json::or_default")]
    pub namespaces: Vec<SmolStr>,
    /// A selector of namespaces. Its presence is all that matters.
    pub namespace_selector: Option<Present>,
}

/// A member whose presence is all that matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Present;

/// The status of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PodStatus {
    /// The phase.
    #[serde(deserialize_with = "json::or_default")]
    pub phase: SmolStr,
    /// The quality of service that the API server has computed.
    #[serde(deserialize_with = "json::or_default")]
    pub qos_class: SmolStr,
    /// The conditions.
    #[serde(deserialize_with = "json::or_default")]
    pub conditions: Vec<Condition>,
    /// The status of each container.
    #[serde(deserialize_with = "json::or_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The status of each init container.
    #[serde(deserialize_with = "json::or_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The claim that the scheduler made for extended resources.
    pub extended_resource_claim_status: Option<ExtendedResourceClaimStatus>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Condition {
    /// The type.
    #[serde(rename = "type", deserialize_with = "json::or_default")]
    pub kind: SmolStr,
    /// The reason.
    #[serde(deserialize_with = "json::or_default")]
    pub reason: SmolStr,
}

/// The status of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ContainerStatus {
    /// The name of the container.
    #[serde(deserialize_with = "json::or_default")]
    pub name: SmolStr,
    /// The resources that the node has allocated.
    pub allocated_resources: Option<ResourceList>,
    /// The resources that are in effect.
    pub resources: Option<ActualRequirements>,
}

/// Requests and limits that are in effect. Absent and empty differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ActualRequirements {
    /// The requests.
    pub requests: Option<ResourceList>,
    /// The limits.
    pub limits: Option<ResourceList>,
}

/// The claim that the scheduler made for a pod's extended resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ExtendedResourceClaimStatus {
    /// The name of the claim.
    #[serde(deserialize_with = "json::or_default")]
    pub resource_claim_name: SmolStr,
}

// === impl Container ===

impl Container {
    /// Returns true for an init container that keeps running (a sidecar).
    pub fn is_restartable(&self) -> bool {
        self.restart_policy == "Always"
    }
}

// === impl AffinityTerm ===

impl AffinityTerm {
    fn crosses_namespaces(&self) -> bool {
        !self.namespaces.is_empty() || self.namespace_selector.is_some()
    }
}

// === impl Affinity ===

impl Affinity {
    /// Returns true if a term reaches other namespaces.
    pub fn crosses_namespaces(&self) -> bool {
        [&self.pod_affinity, &self.pod_anti_affinity].into_iter().any(|terms| {
            terms.required.iter().any(AffinityTerm::crosses_namespaces)
                || terms.preferred.iter().any(|term| term.pod_affinity_term.crosses_namespaces())
        })
    }
}

// === impl Present ===

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
