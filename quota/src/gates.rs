//! The feature gates that decide about a charge.

/// The feature gates that decide about a charge and can be switched in Kubernetes 1.37. Both are on
/// by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gates {
    /// `PodLevelResources`: the resources of a pod as a whole replace those of its containers.
    pub pod_level_resources: bool,
    /// `PodLevelResourcesFixKubeletQOSClass`: empty resources of a pod as a whole do not make it
    /// `BestEffort`.
    pub pod_level_resources_fix_kubelet_qos_class: bool,
}

// === impl Gates ===

impl Default for Gates {
    fn default() -> Self {
        Self { pod_level_resources: true, pod_level_resources_fix_kubelet_qos_class: true }
    }
}
