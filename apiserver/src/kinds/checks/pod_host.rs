//! The relation of a pod to its host: its users, and its name.

use serde_json::Value;

use super::{check_text, items, member, pod_containers};
use crate::names;
use crate::status::Cause;

/// Checks a pod whose users are not those of the host (`validateHostUsers`). The real server writes
/// two of the members in upper case.
pub(super) fn users(_: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    const SHARED: [(&str, &str); 3] =
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")];
    const DETAIL: &str = "when `hostUsers` is false";
    if member(spec, "hostUsers") != false {
        return;
    }
    for (_, shown) in SHARED.iter().filter(|(key, _)| member(spec, key) == true) {
        causes.push(Cause::forbidden(format!("{at}.{shown}"), DETAIL));
    }
    for one in pod_containers::all(spec) {
        if !items(member(one.container, "volumeDevices")).is_empty() {
            causes.push(Cause::forbidden(one.path(at, "volumeDevices"), DETAIL));
        }
    }
}

/// Checks the name that replaces the one of the pod (`validatePodHostName`).
pub(super) fn name(spec: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    const LONGEST: usize = 64;
    let Some(text) = name.as_str() else { return };
    for key in ["setHostnameAsFQDN", "hostNetwork"] {
        if member(spec, key) == true {
            let detail = format!("may not be specified when {key} is true");
            causes.push(Cause::forbidden(at, &detail));
        }
    }
    if text.len() > LONGEST {
        causes.push(Cause::too_long(at, LONGEST));
    }
    check_text(name, names::dns_subdomain, at, causes);
}
