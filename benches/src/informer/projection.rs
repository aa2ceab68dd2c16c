//! A projection of a pod: the fields that a controller of pods reads.

use homeostat_informer::{Object, ObjectMeta};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

/// The fields that a controller reads of its pods: phase, readiness and node.
#[derive(Debug, Deserialize)]
pub struct PodState {
    metadata: ObjectMeta,
    /// The spec.
    #[serde(default)]
    pub spec: Spec,
    /// The status.
    #[serde(default)]
    pub status: Status,
}

/// A part of a pod's spec.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The node that the pod is bound to.
    #[serde(default)]
    pub node_name: Option<Box<str>>,
}

/// A part of a pod's status.
#[derive(Debug, Default, Deserialize)]
pub struct Status {
    /// The phase.
    #[serde(default)]
    pub phase: Option<Box<str>>,
    /// The conditions.
    #[serde(default)]
    pub conditions: Box<[Condition]>,
}

/// A condition of a pod.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// The time of the last transition.
    #[serde(default)]
    pub last_transition_time: Option<Box<str>>,
}

impl Object for PodState {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}
