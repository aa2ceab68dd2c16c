//! Checks of the users that containers run as. Since 1.35 a pod with users of its own may be root.

use super::Violation;
use super::pod::{PodView, named};

pub(super) fn non_root(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    const MEMBER: &str = "runAsNonRoot";
    const REASON: &str = "runAsNonRoot != true";
    if minor >= 35 && pod.has_own_users() {
        return None;
    }
    if let Some(setters) = pod.setters(MEMBER, |value| *value == false).text() {
        let detail = format!("{setters} must not set securityContext.{MEMBER}=false");
        return Some(Violation { reason: REASON, detail });
    }
    if pod.spec["securityContext"][MEMBER] == true {
        return None;
    }
    let silent = pod.names_of(|container| container["securityContext"][MEMBER].is_null());
    let containers = named("container", &silent);
    let detail = format!("pod or {containers} must set securityContext.{MEMBER}=true");
    (!silent.is_empty()).then_some(Violation { reason: REASON, detail })
}

pub(super) fn root(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    if minor >= 35 && pod.has_own_users() {
        return None;
    }
    let setters = pod.setters("runAsUser", |user| user.as_i64() == Some(0)).text()?;
    Some(Violation { reason: "runAsUser=0", detail: format!("{setters} must not set runAsUser=0") })
}
