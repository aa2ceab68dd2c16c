//! The operating system of a pod, and the members that it does not have.

use serde_json::{Value, json};

use super::{member, pod_containers, text};
use crate::status::Cause;

const SYSTEMS: &[&str] = &["linux", "windows"];

const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

/// Members of a pod's security context that a pod on Windows does not have.
const OF_LINUX_POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

/// Members of a container's security context that a container on Windows does not have.
const OF_LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Checks the operating system of the pod with this spec.
pub(super) fn check(_: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let os = member(spec, "os");
    if os.is_null() {
        return;
    }
    match text(os, "name") {
        "" => causes.push(Cause::required(format!("{at}.os.name"), "")),
        "linux" => {
            let refused = (&["windowsOptions"][..], NOT_ON_LINUX);
            check_contexts(spec, (refused, refused), at, causes);
        }
        "windows" => check_windows(spec, at, causes),
        other => causes.push(Cause::unsupported(format!("{at}.os"), &json!(other), SYSTEMS)),
    }
}

/// Members that are refused, and the detail of the causes.
type Refused<'a> = (&'a [&'a str], &'a str);

/// Refuses members of the security contexts of the pod, and of its containers.
fn check_contexts(
    spec: &Value,
    (of_pod, of_container): (Refused<'_>, Refused<'_>),
    at: &str,
    causes: &mut Vec<Cause>,
) {
    refuse(member(spec, "securityContext"), of_pod, &format!("{at}.securityContext"), causes);
    for one in pod_containers::all(spec) {
        let context = member(one.container, "securityContext");
        refuse(context, of_container, &one.path(at, "securityContext"), causes);
    }
}

fn refuse(object: &Value, (refused, detail): Refused<'_>, at: &str, causes: &mut Vec<Cause>) {
    for key in refused.iter().filter(|key| !member(object, key).is_null()) {
        causes.push(Cause::forbidden(format!("{at}.{key}"), detail));
    }
}

fn check_windows(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let context_at = format!("{at}.securityContext");
    refuse(member(spec, "securityContext"), (&OF_LINUX_POD, NOT_ON_WINDOWS), &context_at, causes);
    // Of these two, false is as good as missing.
    let is_set = |key: &str| match key {
        "hostPID" | "hostIPC" => member(spec, key) == true,
        other => !member(spec, other).is_null(),
    };
    let refused = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
    for key in refused.iter().filter(|key| is_set(key)) {
        causes.push(Cause::forbidden(format!("{at}.{key}"), NOT_ON_WINDOWS));
    }
    check_contexts(spec, ((&[], ""), (&OF_LINUX_CONTAINER, NOT_ON_WINDOWS)), at, causes);
}
