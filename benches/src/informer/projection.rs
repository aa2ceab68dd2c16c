//! A pod, as far as a controller that owns pods reads it.

use homeostat_informer::{Object, ObjectMeta};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

/// What a controller reads of a pod that it owns: whether it runs, is ready, and where.
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
    /// The node that it was bound to.
    #[serde(default)]
    pub node_name: Option<Box<str>>,
}

/// A part of a pod's status.
#[derive(Debug, Default, Deserialize)]
pub struct Status {
    /// How far it has come in its life.
    #[serde(default)]
    pub phase: Option<Box<str>>,
    /// What is true of it.
    #[serde(default)]
    pub conditions: Box<[Condition]>,
}

/// A condition of a pod.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// Whether it is true.
    pub status: Box<str>,
    /// Since when.
    #[serde(default)]
    pub last_transition_time: Option<Box<str>>,
}

impl Object for PodState {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}
