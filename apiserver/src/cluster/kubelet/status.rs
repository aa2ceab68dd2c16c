//! The status a kubelet writes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::{Value, json};

use super::pod::Pod;

/// The patch that says how the containers of a pod are, provided that the pod is still what was looked at.
///
/// A strategic merge: conditions are merged by type, so that others' conditions stay; containers are not merged.
pub(super) fn report(
    pod: &Pod,
    phase: &str,
    containers: &[ContainerStatus],
    now: Timestamp,
) -> Value {
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
    let ready = ["Ready", "ContainersReady"]
        .map(|name| condition(pod, name, (reason.is_none(), reason, message.as_deref()), now));
    let initialized = condition(pod, "Initialized", (true, None, None), now);
    let conditions: Vec<Value> = ready.into_iter().chain([initialized]).flatten().collect();
    let mut status = json!({ "phase": phase, "containerStatuses": containers });
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    if pod.status.start_time.is_none() {
        status["startTime"] = json!(now);
    }
    let metadata =
        json!({ "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version });
    json!({ "metadata": metadata, "status": status })
}

/// What is to be said of a condition, if that is news. It is as old as its status.
fn condition(
    pod: &Pod,
    name: &str,
    (holds, reason, message): (bool, Option<&str>, Option<&str>),
    now: Timestamp,
) -> Option<Value> {
    let status = if holds { "True" } else { "False" };
    let mut said = json!({ "type": name, "status": status, "reason": reason, "message": message });
    let known = pod.status.conditions.iter().find(|condition| condition.type_ == name);
    match known {
        Some(known) if known.status == status => {
            let is_news = (known.reason.as_deref(), known.message.as_deref()) != (reason, message);
            return is_news.then_some(said);
        }
        _ => {}
    }
    said["lastProbeTime"] = Value::Null;
    said["lastTransitionTime"] = json!(now);
    Some(said)
}
