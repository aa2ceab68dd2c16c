//! Security contexts of pods and containers.

use serde_json::{Value, json};

use super::Test::{Between, By, Has, OneOf};
use super::{Check, internal, items, member, paths, sysctls, text, windows};
use crate::status::Cause;

/// The largest identifier of a user or a group.
const LARGEST_ID: i64 = 2_147_483_647;
const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

/// The security context of a pod (`validatePodSpecSecurityContext`), within its spec.
pub(super) const OF_POD: &[Check] = &[
    ("securityContext.fsGroup", Between(0, LARGEST_ID)),
    ("securityContext.runAsUser", Between(0, LARGEST_ID)),
    ("securityContext.runAsGroup", Between(0, LARGEST_ID)),
    ("securityContext.supplementalGroups", By(groups)),
    ("", By(sysctls::check)),
    ("securityContext.fsGroupChangePolicy", OneOf(&["Always", "OnRootMismatch"])),
    ("securityContext.seccompProfile", Has(SECCOMP)),
    ("securityContext.windowsOptions", Has(windows::OPTIONS)),
    ("securityContext.appArmorProfile", Has(APP_ARMOR)),
    ("securityContext.supplementalGroupsPolicy", OneOf(&["Merge", "Strict"])),
    ("securityContext.seLinuxChangePolicy", OneOf(&["MountOption", "Recursive"])),
    ("shareProcessNamespace", By(shared_processes)),
];

const USER: &[Check] =
    &[("runAsUser", Between(0, LARGEST_ID)), ("runAsGroup", Between(0, LARGEST_ID))];

const PROC_MOUNT: &[Check] = &[("procMount", OneOf(&["Default", "Unmasked"]))];

const PROFILES: &[Check] =
    &[("windowsOptions", Has(windows::OPTIONS)), ("appArmorProfile", Has(APP_ARMOR))];

const SECCOMP: &[Check] = &[("", By(seccomp))];

const APP_ARMOR: &[Check] = &[("", By(app_armor))];

fn groups(_: &Value, groups: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (place, group) in items(groups).iter().enumerate() {
        let one = &[("", Between(0, LARGEST_ID))];
        super::run(one, group, &format!("{at}[{place}]"), causes);
    }
}

fn shared_processes(spec: &Value, shared: &Value, at: &str, causes: &mut Vec<Cause>) {
    if *shared == true && member(spec, "hostPID") == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(Cause::invalid(at, shared, detail));
    }
}

/// Checks the security context of a container (`ValidateSecurityContext`).
pub(super) fn of_container(
    context: &Value,
    has_host_users: bool,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    if context.is_null() {
        return;
    }
    super::run(USER, context, at, causes);
    super::run(PROC_MOUNT, context, at, causes);
    let mount = member(context, "procMount");
    if has_host_users && mount == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        causes.push(Cause::invalid(format!("{at}.procMount"), mount, detail));
    }
    super::run(&[("seccompProfile", Has(SECCOMP))], context, at, causes);
    if member(context, "allowPrivilegeEscalation") == false {
        check_escalation(context, at, causes);
    }
    super::run(PROFILES, context, at, causes);
}

/// Checks a container that may not gain privileges: it has none that allow it.
fn check_escalation(context: &Value, at: &str, causes: &mut Vec<Cause>) {
    let shown = || internal("core.SecurityContext", context);
    if member(context, "privileged") == true {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.push(Cause::invalid(at, &shown(), detail));
    }
    let added = items(member(member(context, "capabilities"), "add"));
    for _ in added.iter().filter(|added| **added == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
            CAP_SYS_ADMIN";
        causes.push(Cause::invalid(at, &shown(), detail));
    }
}

fn seccomp(_: &Value, profile: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kind = text(profile, "type");
    let (local, local_at) = (member(profile, "localhostProfile"), format!("{at}.localhostProfile"));
    check_type(kind, "seccompProfile", at, causes);
    match local.as_str() {
        None if kind == "Localhost" => {
            let detail = "must be set when seccomp type is Localhost";
            causes.push(Cause::required(local_at, detail));
        }
        Some(path) if kind == "Localhost" => paths::descending(path, &local_at, causes),
        Some(_) => {
            let detail = "can only be set when seccomp type is Localhost";
            causes.push(Cause::invalid(
                local_at,
                &internal("core.SeccompProfile", profile),
                detail,
            ));
        }
        None => {}
    }
}

/// Checks the type of a profile, which the member `profile` holds.
fn check_type(kind: &str, profile: &str, at: &str, causes: &mut Vec<Cause>) {
    if kind.is_empty() {
        let detail = format!("type is required when {profile} is set");
        causes.push(Cause::required(format!("{at}.type"), &detail));
    } else if !PROFILE_TYPES.contains(&kind) {
        causes.push(Cause::unsupported(format!("{at}.type"), &json!(kind), PROFILE_TYPES));
    }
}

fn app_armor(_: &Value, profile: &Value, at: &str, causes: &mut Vec<Cause>) {
    /// The longest path on Linux.
    const LONGEST: usize = 4095;
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    let kind = text(profile, "type");
    let (local, local_at) = (member(profile, "localhostProfile"), format!("{at}.localhostProfile"));
    check_type(kind, "appArmorProfile", at, causes);
    match (kind, local.as_str()) {
        ("Localhost", None) => causes.push(Cause::required(local_at, NEEDED)),
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                let detail = "must not be padded with whitespace";
                causes.push(Cause::invalid(&*local_at, local, detail));
            } else if name.is_empty() {
                causes.push(Cause::required(&*local_at, NEEDED));
            }
            if name.len() > LONGEST {
                causes.push(Cause::too_long(local_at, LONGEST));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(_)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            causes.push(Cause::invalid(local_at, local, detail));
        }
        _ => {}
    }
}
