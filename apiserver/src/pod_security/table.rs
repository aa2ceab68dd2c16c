//! The table of checks.

use super::levels::{Level, LevelVersion, NEWEST};
use super::pod::PodView;
use super::{Violation, capabilities, containers, host, profiles, users, volumes};

/// A check: pods of this level pass it.
struct Check {
    id: &'static str,
    level: Level,
    /// The first minor version that has the check.
    since: i64,
    /// The check of a lower level that this one contains.
    overrides: &'static str,
    /// Checks a pod by the rules of a minor version.
    run: Run,
}

/// The checks in the order of messages: by level, then by id.
const CHECKS: [Check; 19] = [
    baseline("appArmorProfile", 0, profiles::app_armor),
    baseline("capabilities_baseline", 0, capabilities::baseline),
    baseline("hostNamespaces", 0, host::namespaces),
    baseline("hostPathVolumes", 0, volumes::host_paths),
    baseline("hostPorts", 0, host::ports),
    baseline("hostProbesAndHostLifecycle", 34, host::probes),
    baseline("privileged", 0, containers::privileged),
    baseline("procMount", 0, containers::proc_mount_baseline),
    baseline("seLinuxOptions", 0, profiles::selinux),
    baseline("seccompProfile_baseline", 0, profiles::seccomp_baseline),
    baseline("sysctls", 0, host::sysctls),
    baseline("windowsHostProcess", 0, host::windows_process),
    restricted("allowPrivilegeEscalation", 8, "", containers::escalation),
    restricted("capabilities_restricted", 22, "capabilities_baseline", capabilities::restricted),
    restricted("procMount_restricted", 35, "procMount", containers::proc_mount),
    restricted("restrictedVolumes", 0, "hostPathVolumes", volumes::types),
    restricted("runAsNonRoot", 0, "", users::non_root),
    restricted("runAsUser", 23, "", users::root),
    restricted(
        "seccompProfile_restricted",
        19,
        "seccompProfile_baseline",
        profiles::seccomp_restricted,
    ),
];

type Run = fn(PodView<'_>, i64) -> Option<Violation>;

const fn baseline(id: &'static str, since: i64, run: Run) -> Check {
    Check { id, level: Level::Baseline, since, overrides: "", run }
}

const fn restricted(id: &'static str, since: i64, overrides: &'static str, run: Run) -> Check {
    Check { id, level: Level::Restricted, since, overrides, run }
}

/// Returns the checks of a level that a pod does not pass.
pub(crate) fn evaluate(policy: LevelVersion, pod: PodView<'_>) -> Vec<Violation> {
    if policy.level == Level::Privileged {
        return Vec::new();
    }
    let minor = policy.version.minor(NEWEST);
    let is_due = |check: &&Check| check.level <= policy.level && check.since <= minor;
    let is_overridden = |id: &str| CHECKS.iter().filter(is_due).any(|check| check.overrides == id);
    let due = CHECKS.iter().filter(is_due).filter(|check| !is_overridden(check.id));
    due.filter_map(|check| (check.run)(pod, minor)).collect()
}
