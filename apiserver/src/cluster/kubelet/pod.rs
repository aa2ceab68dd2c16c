//! A pod, reduced to the fields that the kubelet uses.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{ContainerStatus, PodReadinessGate, PodSchedulingGate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube_core::{NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

use crate::cluster::metadata;

/// A pod; other fields are not parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pod {
    #[serde(default, deserialize_with = "metadata::deserialize")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) scheduling_gates: Vec<PodSchedulingGate>,
    /// Only their number counts.
    #[serde(default)]
    pub(super) resource_claims: Vec<serde_json::Value>,
    pub(super) restart_policy: Option<String>,
    #[serde(default)]
    pub(super) host_network: bool,
    #[serde(default)]
    pub(super) readiness_gates: Vec<PodReadinessGate>,
    #[serde(default)]
    pub(super) init_containers: Vec<Container>,
    #[serde(default)]
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Container {
    pub(super) name: String,
    #[serde(default)]
    pub(super) image: String,
    /// `Always` for an init container that goes on beside the others.
    #[serde(default, rename = "restartPolicy", skip_serializing_if = "Option::is_none")]
    pub(super) restart_policy: Option<String>,
    #[serde(default, rename = "readinessProbe", skip_serializing_if = "Option::is_none")]
    pub(super) readiness_probe: Option<Probe>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    #[serde(default)]
    pub(super) initial_delay_seconds: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: Option<String>,
    pub(super) start_time: Option<Time>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    #[serde(default)]
    pub(super) conditions: Vec<Condition>,
    #[serde(default)]
    pub(super) init_container_statuses: Vec<ContainerStatus>,
    #[serde(default)]
    pub(super) container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

// === impl Pod ===

impl Pod {
    pub(super) fn is_ready(&self) -> bool {
        self.holds("Ready")
    }

    /// Returns true if the pod has this condition, and it is true.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.condition(name).is_some_and(|condition| condition.status == "True")
    }

    pub(super) fn condition(&self, name: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == name)
    }
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
