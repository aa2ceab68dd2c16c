//! The status patches of the kubelet.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::{Value, json};

use super::pod::Pod;

/// The state of a pod that a status patch reports.
#[derive(Debug)]
pub(super) struct PodState<'a> {
    pub(super) phase: &'a str,
    pub(super) inits: &'a [ContainerStatus],
    /// The init containers that are not done.
    pub(super) uninitialized: Vec<&'a str>,
    pub(super) containers: &'a [ContainerStatus],
    /// The addresses of the pod and of its node, unless they are reported already.
    pub(super) addresses: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// Returns the patch of a pod's status, on condition that UID and resource version are unchanged.
///
/// It is a strategic merge patch: conditions are merged by type, so that conditions of other
/// writers stay; container statuses are replaced.
pub(super) fn report(pod: &Pod, state: &PodState<'_>, now: Timestamp) -> Value {
    let PodState { phase, containers, .. } = *state;
    let unready = containers.iter().filter(|container| !container.ready);
    let unready: Vec<&str> = unready.map(|container| container.name.as_str()).collect();
    let (reason, message) = match phase {
        "Succeeded" => (Some("PodCompleted"), None),
        "Failed" => (Some("PodFailed"), None),
        _ if unready.is_empty() => (None, None),
        _ => {
            let message = format!("containers with unready status: [{}]", unready.join(" "));
            (Some("ContainersNotReady"), Some(message))
        }
    };
    let of_containers = (reason.is_none(), reason, message.as_deref());
    let gates = closed_gates(pod).filter(|_| reason.is_none());
    let of_pod = match &gates {
        Some(message) => (false, Some("ReadinessGatesNotReady"), Some(message.as_str())),
        None => of_containers,
    };
    let ready = condition(pod, "Ready", of_pod, now);
    let containers_ready = condition(pod, "ContainersReady", of_containers, now);
    let conditions = [ready, containers_ready, initialized(pod, state, now)];
    let conditions: Vec<Value> = conditions.into_iter().flatten().collect();
    let mut status = json!({ "phase": phase, "containerStatuses": containers });
    if !state.inits.is_empty() {
        status["initContainerStatuses"] = json!(state.inits);
    }
    if let Some((address, host)) = state.addresses {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{ "ip": address }]);
        status["hostIP"] = json!(host);
        status["hostIPs"] = json!([{ "ip": host }]);
    }
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    if pod.status.start_time.is_none() {
        status["startTime"] = json!(now);
    }
    let (uid, version) = (&pod.metadata.uid, &pod.metadata.resource_version);
    let mut patch = json!({ "metadata": { "uid": uid, "resourceVersion": version } });
    // `json!` would copy it.
    patch["status"] = status;
    patch
}

/// Returns true if a readiness gate of the pod has opened or closed since its last status.
pub(super) fn awaits_readiness(pod: &Pod) -> bool {
    let has_gates = !pod.spec.readiness_gates.is_empty();
    let is_open = || closed_gates(pod).is_none();
    has_gates && pod.holds("ContainersReady") && pod.is_ready() != is_open()
}

/// Describes the readiness gates of a pod that are not open; `None` if all are.
fn closed_gates(pod: &Pod) -> Option<String> {
    let gates = pod.spec.readiness_gates.iter().map(|gate| gate.condition_type.as_str());
    let closed = gates.filter_map(|gate| match pod.condition(gate) {
        None => Some(format!(
            "corresponding condition of pod readiness gate \"{gate}\" does not exist."
        )),
        Some(known) if known.status == "True" => None,
        Some(known) => Some(format!(
            "the status of pod readiness gate \"{gate}\" is not \"True\", but {}",
            known.status
        )),
    });
    let closed: Vec<String> = closed.collect();
    (!closed.is_empty()).then(|| closed.join(", "))
}

fn initialized(pod: &Pod, state: &PodState<'_>, now: Timestamp) -> Option<Value> {
    if state.uninitialized.is_empty() {
        return condition(pod, "Initialized", (true, None, None), now);
    }
    let names = state.uninitialized.join(" ");
    let message = format!("containers with incomplete status: [{names}]");
    let reason = Some("ContainersNotInitialized");
    condition(pod, "Initialized", (false, reason, Some(&message)), now)
}

/// Returns a condition if it differs from the present one. The transition time changes only with
/// the status.
fn condition(
    pod: &Pod,
    name: &str,
    (holds, reason, message): (bool, Option<&str>, Option<&str>),
    now: Timestamp,
) -> Option<Value> {
    let status = if holds { "True" } else { "False" };
    let mut condition =
        json!({ "type": name, "status": status, "reason": reason, "message": message });
    let known = pod.status.conditions.iter().find(|known| known.type_ == name);
    match known {
        Some(known) if known.status == status => {
            let has_changed =
                (known.reason.as_deref(), known.message.as_deref()) != (reason, message);
            return has_changed.then_some(condition);
        }
        _ => {}
    }
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = json!(now);
    Some(condition)
}
