//! The quality of service of a pod (`pkg/apis/core/v1/helper/qos/qos.go`, 1.37).

use homeostat_quantity::Quantity;

use crate::gates::Gates;
use crate::object::pod::{Pod, Requirements};
use crate::pod_resources::is_pod_level_set;

/// The quality of service of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QosClass {
    /// Each container has equal requests and limits for cpu and memory.
    Guaranteed,
    /// Neither of the others.
    Burstable,
    /// No container has a request or a limit for cpu or memory that is not zero.
    BestEffort,
}

/// Computes the class from the specification (`ComputePodQOS`).
///
/// # Examples
///
/// ```
/// use homeostat_quota::object::pod::Pod;
/// use homeostat_quota::{Gates, QosClass, compute_qos_class};
/// use serde_json::json;
///
/// let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [
///     {"resources": {"requests": {"cpu": "100m"}}},
/// ]}}))?;
/// assert_eq!(compute_qos_class(&pod, Gates::default()), QosClass::Burstable);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn compute_qos_class(pod: &Pod, gates: Gates) -> QosClass {
    let is_set = |resources: &Requirements| {
        !gates.pod_level_resources_fix_kubelet_qos_class || is_pod_level_set(resources)
    };
    if gates.pod_level_resources
        && let Some(resources) = pod.spec.resources.as_ref().filter(|resources| is_set(resources))
    {
        return class_of(resources);
    }
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    common(containers.map(|container| class_of(&container.resources)))
}

/// Returns true for a pod of the class `BestEffort`. The class in the status precedes the computed
/// one.
pub(crate) fn is_best_effort(pod: &Pod, gates: Gates) -> bool {
    match pod.status.qos_class.as_str() {
        "" => compute_qos_class(pod, gates) == QosClass::BestEffort,
        class => class == "BestEffort",
    }
}

fn class_of(resources: &Requirements) -> QosClass {
    common(["cpu", "memory"].map(|name| {
        let request = resources.requests.get(name).unwrap_or(&Quantity::ZERO);
        let limit = resources.limits.get(name).unwrap_or(&Quantity::ZERO);
        match (request == limit, request.is_zero()) {
            (false, _) => QosClass::Burstable,
            (true, true) => QosClass::BestEffort,
            (true, false) => QosClass::Guaranteed,
        }
    }))
}

/// The class that all have in common, else `Burstable`.
fn common(classes: impl IntoIterator<Item = QosClass>) -> QosClass {
    let common = classes.into_iter().reduce(
        |left, right| {
            if left == right { left } else { QosClass::Burstable }
        },
    );
    common.unwrap_or(QosClass::BestEffort)
}
