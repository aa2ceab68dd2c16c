//! Checks of containers: privileges, and the mount of `/proc`.

use std::collections::BTreeSet;

use super::Violation;
use super::pod::{PodView, named, sorted};

pub(super) fn privileged(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let bad = pod.names_of(|container| container["securityContext"]["privileged"] == true);
    let detail =
        format!("{} must not set securityContext.privileged=true", named("container", &bad));
    (!bad.is_empty()).then_some(Violation { reason: "privileged", detail })
}

pub(super) fn escalation(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    const MEMBER: &str = "allowPrivilegeEscalation";
    // A pod on Windows may not set the member.
    if minor >= 25 && pod.runs_on_windows() {
        return None;
    }
    let bad = pod.names_of(|container| container["securityContext"][MEMBER] != false);
    let detail = format!("{} must set securityContext.{MEMBER}=false", named("container", &bad));
    (!bad.is_empty()).then_some(Violation { reason: "allowPrivilegeEscalation != false", detail })
}

pub(super) fn proc_mount_baseline(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    if minor >= 35 && pod.has_own_users() { None } else { proc_mount(pod, minor) }
}

pub(super) fn proc_mount(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let value = container["securityContext"]["procMount"].as_str();
        let value = value.filter(|value| *value != "Default");
        values.extend(value);
        value.is_some()
    });
    let containers = named("container", &bad);
    let values = sorted(&values);
    let detail = format!("{containers} must not set securityContext.procMount to {values}");
    (!bad.is_empty()).then_some(Violation { reason: "procMount", detail })
}
