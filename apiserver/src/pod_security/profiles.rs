//! Checks of the profiles that confine containers: `AppArmor`, seccomp, `SELinux`.

use std::collections::BTreeSet;

use homeostat_core::go_quote;
use serde_json::Value;

use super::Violation;
use super::pod::{PodView, joined, named, plural, sorted};
use crate::fields::text;

/// The annotations that named profiles before there were members, and their values.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const RUNTIME_DEFAULT: &str = "runtime/default";
const LOCALHOST: &str = "localhost/";

/// Types of `SELinux`, with the minor version that permits each.
const SELINUX_TYPES: [(&str, i64); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

pub(super) fn app_armor(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let setters = pod.setters("appArmorProfile", |profile| is_open(profile, &mut values)).text();
    let is_safe =
        |value: &str| value.is_empty() || value == RUNTIME_DEFAULT || value.starts_with(LOCALHOST);
    let annotations = pod.annotations().filter(|(name, _)| name.starts_with(APP_ARMOR));
    let annotations = annotations.filter(|(_, value)| !is_safe(value));
    let mut annotations: Vec<String> = annotations.map(annotation).collect();
    annotations.sort();
    let noun = plural(annotations.len(), "annotation", "annotations").to_owned();
    let by_annotations = (!annotations.is_empty()).then_some(noun);
    let setters: Vec<String> = setters.into_iter().chain(by_annotations).collect();
    let all: Vec<&str> = values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = plural(all.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let (setters, all) = (setters.join(" and "), joined(all));
    let detail = format!("{setters} must not set AppArmor profile type to {all}");
    (!setters.is_empty()).then_some(Violation { reason, detail })
}

/// The check of annotations, which versions before 1.19 have.
pub(super) fn seccomp_annotations(pod: PodView<'_>) -> Option<Violation> {
    let is_safe = |value: &str| {
        value == RUNTIME_DEFAULT || value == "docker/default" || value.starts_with(LOCALHOST)
    };
    let is_read = |name: &str| {
        let container = name.strip_prefix(SECCOMP_OF_CONTAINER);
        let is_known = |name| pod.containers().any(|one| text(one, "name") == name);
        name == SECCOMP_OF_POD || container.is_some_and(is_known)
    };
    let bad = pod.annotations().filter(|(name, value)| is_read(name) && !is_safe(value));
    let bad: BTreeSet<String> = bad.map(annotation).collect();
    let list: Vec<&str> = bad.iter().map(String::as_str).collect();
    let noun = plural(list.len(), "annotation", "annotations");
    let detail = format!("forbidden {noun} {}", list.join(", "));
    (!list.is_empty()).then_some(Violation { reason: "seccompProfile", detail })
}

pub(super) fn seccomp_baseline(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    if minor < 19 {
        return seccomp_annotations(pod);
    }
    let mut values = BTreeSet::new();
    let setters = pod.setters("seccompProfile", |profile| is_open(profile, &mut values)).text()?;
    let values = sorted(&values);
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {values}");
    Some(Violation { reason: "seccompProfile", detail })
}

pub(super) fn seccomp_restricted(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    // A pod on Windows may not set the member.
    if minor >= 25 && pod.runs_on_windows() {
        return None;
    }
    if let Some(violation) = seccomp_baseline(pod, minor) {
        return Some(violation);
    }
    let is_silent = |part: &Value| part["securityContext"]["seccompProfile"].is_null();
    if !is_silent(pod.spec) {
        return None;
    }
    let silent = pod.names_of(is_silent);
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\"",
        named("container", &silent)
    );
    (!silent.is_empty()).then_some(Violation { reason: "seccompProfile", detail })
}

pub(super) fn selinux(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    let is_safe =
        |name: &str| SELINUX_TYPES.iter().any(|(known, since)| *known == name && *since <= minor);
    let (mut types, mut sets_user, mut sets_role) = (BTreeSet::new(), false, false);
    let setters = pod.setters("seLinuxOptions", |options| {
        let [kind, user, role] = ["type", "user", "role"].map(|member| text(options, member));
        types.extend(Some(kind).filter(|kind| !is_safe(kind)));
        sets_user |= !user.is_empty();
        sets_role |= !role.is_empty();
        !is_safe(kind) || !user.is_empty() || !role.is_empty()
    });
    let setters = setters.text()?;
    let types: Vec<&str> = types.into_iter().collect();
    let problems = [
        (!types.is_empty()).then(|| named("type", &types)),
        sets_user.then(|| "user may not be set".to_owned()),
        sets_role.then(|| "role may not be set".to_owned()),
    ];
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    let problems = problems.join("; ");
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {problems}");
    Some(Violation { reason: "seLinuxOptions", detail })
}

/// Returns true if a profile confines nothing, and adds its type to `values` if so.
fn is_open<'a>(profile: &'a Value, values: &mut BTreeSet<&'a str>) -> bool {
    let kind = text(profile, "type");
    let is_open = !matches!(kind, "RuntimeDefault" | "Localhost");
    values.extend(is_open.then_some(kind));
    is_open
}

fn annotation((name, value): (&str, &str)) -> String {
    format!("{name}={}", go_quote(value))
}
