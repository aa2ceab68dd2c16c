//! The check that the author of an admission policy or of its binding may read its parameters.

use serde_json::Value;

use super::roles;
use crate::access::{Attributes, User};
use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::{Fields, read_path, text};
use crate::request::ApiCall;
use crate::status::{Cause, Failure, Result};

const GROUP: &str = "admissionregistration.k8s.io";
const ANY: &str = "*";

/// Fails with 422 if the write of a valid policy or binding names parameters that the user may not
/// read.
pub(super) fn check(core: &Core, call: &ApiCall, new: &Fields, old: Option<&Fields>) -> Result<()> {
    let kind = &call.target.served.kind;
    let is_checked = kind.group == GROUP
        && call.target.info.subresource.is_none()
        && core.access.is_enforced()
        && !call.user.is_master();
    if !is_checked {
        return Ok(());
    }
    let refusal = match kind.plural.as_ref() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            of_policy(core, call, new, old)
        }
        "validatingadmissionpolicybindings" => {
            of_binding(core, call, new, "validatingadmissionpolicies")
        }
        "mutatingadmissionpolicybindings" => {
            of_binding(core, call, new, "mutatingadmissionpolicies")
        }
        _ => None,
    };
    let Some(cause) = refusal else { return Ok(()) };
    Err(Failure::invalid(&**kind, meta_text(new, "name"), &[cause]))
}

/// Checks the right to read all objects of the kind of a policy's parameters, if the kind is new.
fn of_policy(core: &Core, call: &ApiCall, new: &Fields, old: Option<&Fields>) -> Option<Cause> {
    let kind = param_kind(new)?;
    if old.and_then(param_kind) == Some(kind) {
        return None;
    }
    if may_read(core, call, "get", resource_of(core, kind), (ANY, ANY)) {
        return None;
    }
    let detail = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, \
         apiVersion={})",
        go_text(&call.user),
        text(kind, "kind"),
        text(kind, "apiVersion")
    );
    Some(Cause::forbidden("spec.paramKind", &detail))
}

/// Checks the right to read the parameters that a binding names. As on the real server, it is
/// checked also if they have not changed.
fn of_binding(core: &Core, call: &ApiCall, new: &Fields, policies: &str) -> Option<Cause> {
    let reference = read_path(new, "spec.paramRef").filter(|reference| !reference.is_null())?;
    let policy = read_path(new, "spec.policyName").and_then(Value::as_str).unwrap_or_default();
    let stored = core
        .kinds()
        .find(GROUP, "v1", policies)
        .and_then(|policies| core.get(policies.resource, policy))
        .map(|stored| stored.fields());
    let kind = stored.as_ref().and_then(param_kind);
    let resource = kind.map_or_else(|| (ANY.to_owned(), None), |kind| resource_of(core, kind));
    let is_resolved = kind.is_none() || resource.1.is_some();
    let place @ (_, name) = (text(reference, "namespace"), text(reference, "name"));
    let verb = if name.is_empty() { "list" } else { "get" };
    if may_read(core, call, verb, resource, place) {
        return None;
    }
    let user = go_text(&call.user);
    let everything = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" \
         permission for all groups, versions and resources"
    );
    let detail = match kind {
        _ if stored.is_none() => format!("unable to get policy {policy} {everything}"),
        Some(kind) if !is_resolved => {
            let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
            format!("unable to resolve paramKind &{{{version} {kind}}} {everything}")
        }
        _ => {
            // The real server exchanges the two for policies that mutate.
            let is_mutating = policies.starts_with("mutating");
            let (who, what) = if is_mutating { (verb, &*user) } else { (&*user, verb) };
            format!(
                "user {who} does not have \"{what}\" permission on the object referenced by \
                 paramRef"
            )
        }
    };
    Some(Cause::forbidden("spec.paramRef", &detail))
}

/// Returns true if the user may read the objects of a resource at a place: a namespace and a name.
fn may_read(
    core: &Core,
    call: &ApiCall,
    verb: &str,
    (group, resource): (String, Option<String>),
    (namespace, name): (&str, &str),
) -> bool {
    let permission = Attributes {
        verb: verb.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        group,
        resource: resource.unwrap_or_else(|| ANY.to_owned()),
        ..Attributes::default()
    };
    roles::decide(core, &call.user, &permission).allowed
}

fn param_kind(policy: &Fields) -> Option<&Value> {
    read_path(policy, "spec.paramKind").filter(|kind| !kind.is_null())
}

/// Returns the group of a kind, and its resource if the server has it.
fn resource_of(core: &Core, kind: &Value) -> (String, Option<String>) {
    let (group, version) =
        text(kind, "apiVersion").split_once('/').unwrap_or_else(|| ("", text(kind, "apiVersion")));
    let kinds = core.kinds();
    let mut rows = kinds.rows_of_group(group);
    let found = rows.find(|row| row.version == version && row.kind == text(kind, "kind"));
    (group.to_owned(), found.map(|row| row.plural.to_string()))
}

/// Returns a user as Go's `%v` shows it.
fn go_text(user: &User) -> String {
    let User { name, uid, groups, extra } = user;
    let extra = extra.iter().map(|(name, values)| format!("{name}:[{}]", values.join(" ")));
    let extra: Vec<String> = extra.collect();
    format!("&{{{name} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
}
