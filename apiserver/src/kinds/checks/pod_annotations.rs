//! Annotations of pods that the server reads (`ValidatePodSpecificAnnotations`).

use serde_json::{Value, json};

use super::pod_profiles::{SECCOMP_OF_CONTAINER, SECCOMP_OF_POD};
use super::{is_empty, member, paths, pod_containers, text};
use crate::kinds::annotations::{APP_ARMOR, MIRROR};
use crate::status::Cause;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Checks the annotations of a pod with this spec, at the path `at`.
pub(crate) fn check(metadata: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let annotations = member(metadata, "annotations");
    let mirror = member(annotations, MIRROR);
    if !mirror.is_null() && is_empty(member(spec, "nodeName")) {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        causes.push(Cause::invalid(format!("{at}[{MIRROR}]"), mirror, detail));
    }
    let cost = member(annotations, DELETION_COST);
    if cost.as_str().is_some_and(|cost| !is_cost(cost)) {
        let detail = "must be a 32bit integer";
        causes.push(Cause::invalid(format!("{at}[{DELETION_COST}]"), cost, detail));
    }
    let all = || annotations.as_object().into_iter().flatten();
    for (key, profile) in all() {
        if key == SECCOMP_OF_POD || key.starts_with(SECCOMP_OF_CONTAINER) {
            check_seccomp(profile, &format!("{at}.{key}"), causes);
        }
    }
    for (key, profile) in all() {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            check_app_armor(profile, (container, spec), &format!("{at}[{key}]"), causes);
        }
    }
}

/// Returns true if a text is a number of 32 bits without a plus and without leading zeros.
fn is_cost(cost: &str) -> bool {
    let is_plain = !cost.starts_with('+') && (cost == "0" || !cost.starts_with('0'));
    is_plain && cost.parse::<i32>().is_ok()
}

fn check_seccomp(profile: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = profile.as_str().unwrap_or_default();
    match name.strip_prefix("localhost/") {
        Some(path) => paths::descending(path, at, causes),
        None if matches!(name, "runtime/default" | "docker/default" | "unconfined") => {}
        None => causes.push(Cause::invalid(at, profile, "must be a valid seccomp profile")),
    }
}

fn check_app_armor(
    profile: &Value,
    (name, spec): (&str, &Value),
    at: &str,
    causes: &mut Vec<Cause>,
) {
    if pod_containers::all(spec).all(|one| text(one.container, "name") != name) {
        causes.push(Cause::invalid(at, &json!(name), "container not found"));
    }
    let text = profile.as_str().unwrap_or_default();
    let is_known = matches!(text, "" | "runtime/default" | "unconfined");
    if !is_known && !text.starts_with("localhost/") {
        let detail = format!("invalid AppArmor profile name: {profile}");
        causes.push(Cause::invalid(at, profile, &detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_a_plain_number() {
        for cost in ["0", "10", "-10", "-2147483648"] {
            assert!(is_cost(cost), "{cost}");
        }
        for cost in ["", "+1", "008", "a", "2147483648"] {
            assert!(!is_cost(cost), "{cost}");
        }
    }
}
