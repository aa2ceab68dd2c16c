//! The status a kubelet writes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::plan::Running;

/// The patch that says that every container of a pod runs, since `now` unless it ran before.
///
/// A strategic merge: conditions are merged by type, so that others' conditions stay.
pub(super) fn running(pod: &Running, ready: bool, now: Timestamp) -> Value {
    let flag = if ready { "True" } else { "False" };
    let condition = |name: &str, status: &str| {
        let mut condition = json!({
            "type": name, "status": status, "lastProbeTime": null, "lastTransitionTime": now,
        });
        if status == "False" {
            condition["reason"] = json!("ContainersNotReady");
        }
        condition
    };
    let mut conditions = vec![condition("Ready", flag), condition("ContainersReady", flag)];
    let mut status = json!({ "phase": "Running" });
    // Times of what was true before are kept: the second patch only turns the two flags.
    if !pod.runs {
        conditions.push(condition("Initialized", "True"));
        status["startTime"] = json!(now);
    }
    let started = pod.started.unwrap_or(now);
    let containers = pod.containers.iter().map(|container| {
        json!({
            "name": container.name, "image": container.image, "imageID": "",
            "ready": ready, "started": true, "restartCount": 0,
            "state": { "running": { "startedAt": started } },
        })
    });
    status["containerStatuses"] = containers.collect();
    status["conditions"] = conditions.into();
    json!({ "metadata": { "uid": pod.uid }, "status": status })
}
