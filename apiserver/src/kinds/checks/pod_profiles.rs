//! Security profiles that an annotation of a pod and a member of its spec both name.

use serde_json::Value;

use super::{member, pod_containers, text};
use crate::kinds::annotations::APP_ARMOR;
use crate::status::Cause;

pub(crate) const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(crate) const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Checks that both name the same profile (`validateSeccompAnnotationsAndFields`,
/// `validateAppArmorAnnotationsAndFieldsMatchOnCreate`).
pub(super) fn check(metadata: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let annotations = member(metadata, "annotations");
    if annotations.is_null() {
        return;
    }
    let of_pod = |profile| member(member(spec, "securityContext"), profile);
    let seccomp_at = format!("{at}.securityContext.seccompProfile");
    let annotation = member(annotations, SECCOMP_OF_POD);
    check_match(annotation, of_pod("seccompProfile"), &seccomp_at, causes);
    for one in pod_containers::all(spec) {
        let profile = member(member(one.container, "securityContext"), "seccompProfile");
        let key = format!("{SECCOMP_OF_CONTAINER}{}", text(one.container, "name"));
        let at = one.path(at, "securityContext.seccompProfile");
        check_match(member(annotations, &key), profile, &at, causes);
    }
    if text(member(spec, "os"), "name") == "windows" {
        return;
    }
    for one in pod_containers::all(spec) {
        let own = member(member(one.container, "securityContext"), "appArmorProfile");
        let profile = if own.is_null() { of_pod("appArmorProfile") } else { own };
        let key = format!("{APP_ARMOR}{}", text(one.container, "name"));
        let at = one.path(at, "securityContext.appArmorProfile");
        check_match(member(annotations, &key), profile, &at, causes);
    }
}

/// Checks the annotation for the profile at this place.
fn check_match(annotation: &Value, profile: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(annotation) = annotation.as_str() else { return };
    let is_seccomp = at.ends_with("seccompProfile");
    let local = annotation.strip_prefix("localhost/");
    let has_type = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (is_seccomp && annotation == "docker/default")
        }
        "Localhost" => local.is_some(),
        _ => return,
    };
    let sort = if is_seccomp { "seccomp" } else { "apparmor" };
    if !has_type {
        let detail = format!("{sort} type in annotation and field must match");
        causes.push(Cause::forbidden(format!("{at}.type"), &detail));
    } else if text(profile, "type") == "Localhost"
        && local != member(profile, "localhostProfile").as_str()
    {
        let detail = format!("{sort} profile in annotation and field must match");
        causes.push(Cause::forbidden(format!("{at}.localhostProfile"), &detail));
    }
}
