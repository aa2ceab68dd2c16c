//! Authorization: the decision of the roles about what a user may do.

use std::sync::Arc;

use homeostat_faults::RequestInfo;
use homeostat_schema::aggregate;
use serde::de::DeserializeOwned;

use crate::access::{Attributes, Binding, PolicyRule, RBAC_GROUP, Role, RoleRef, User};
use crate::core::Core;
use crate::status::{Failure, Result};

/// The answer to the question whether a user may do something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The binding that allows it, or the reason why a binding could not be read; often empty.
    pub(crate) reason: String,
}

/// Fails with 403 if the user may not do this.
pub(super) fn check(core: &Core, user: &User, request: &Attributes) -> Result<()> {
    let Decision { allowed, reason } = decide(core, user, request);
    if allowed { Ok(()) } else { Err(Failure::access_denied(&user.name, request, &reason)) }
}

/// Fails with 403 if the user may not do with this verb what the request names.
pub(super) fn check_as(core: &Core, user: &User, info: &RequestInfo, verb: &str) -> Result<()> {
    check(core, user, &attributes_of(info, verb))
}

/// Decides whether the user may do with this verb what the request names.
pub(super) fn decide_as(core: &Core, user: &User, info: &RequestInfo, verb: &str) -> Decision {
    decide(core, user, &attributes_of(info, verb))
}

fn attributes_of(info: &RequestInfo, verb: &str) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        namespace: info.namespace.clone().unwrap_or_default(),
        group: info.group.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone().unwrap_or_default(),
        name: info.name.clone().unwrap_or_default(),
        path: None,
    }
}

/// Decides whether the user may do this.
pub(super) fn decide(core: &Core, user: &User, request: &Attributes) -> Decision {
    if user.is_master() || !core.access.is_enforced() {
        return Decision { allowed: true, reason: String::new() };
    }
    let mut errors = Vec::new();
    for binding in bindings(core, &request.namespace) {
        let Some(binding_of_user) = binding.reason_for(user) else { continue };
        match rules(core, &request.namespace, &binding.role_ref) {
            Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                let reason = format!("RBAC: allowed by {binding_of_user}");
                return Decision { allowed: true, reason };
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    let reason = match errors.as_slice() {
        [] => String::new(),
        _ => format!("rbac: RBAC: {}", aggregate(errors)),
    };
    Decision { allowed: false, reason }
}

/// Returns the rules that apply to a user in a namespace, and the errors of roles that are missing.
pub(super) fn rules_of(
    core: &Core,
    user: &User,
    namespace: &str,
) -> (Vec<PolicyRule>, Vec<String>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for binding in bindings(core, namespace) {
        if binding.reason_for(user).is_none() {
            continue;
        }
        match rules(core, namespace, &binding.role_ref) {
            Ok(rules) => found.extend(rules),
            Err(error) => errors.push(error),
        }
    }
    (found, errors)
}

/// Returns the bindings of the cluster, then those of the namespace.
fn bindings(core: &Core, namespace: &str) -> Vec<Binding> {
    let mut bindings = Vec::new();
    let of_kind = |plural: &str, prefix: String| -> Vec<Binding> {
        let Some(served) = core.kinds().find(RBAC_GROUP, "v1", plural) else { return Vec::new() };
        let objects = core.read(|storage| storage.objects(served.resource).clone());
        let from: Arc<str> = prefix.as_str().into();
        let found = objects.range(from..).take_while(|(key, _)| key.starts_with(&prefix));
        found.filter_map(|(_, stored)| decode(stored.bytes())).collect()
    };
    bindings.extend(of_kind("clusterrolebindings", String::new()));
    if !namespace.is_empty() {
        bindings.extend(of_kind("rolebindings", format!("{namespace}/")));
    }
    bindings
}

/// Returns the rules of the role that a binding names, or the real server's error.
pub(super) fn rules(
    core: &Core,
    namespace: &str,
    role: &RoleRef,
) -> std::result::Result<Vec<PolicyRule>, String> {
    let (plural, singular) = match role.kind.as_str() {
        "ClusterRole" => ("clusterroles", "clusterrole"),
        _ => ("roles", "role"),
    };
    let stored = core
        .kinds()
        .find(RBAC_GROUP, "v1", plural)
        .and_then(|served| core.get(served.resource, &served.kind.key(namespace, &role.name)));
    match stored {
        Some(stored) => {
            let role: Role = decode(stored.bytes()).unwrap_or_default();
            Ok(role.rules.unwrap_or_default())
        }
        None => Err(format!("{singular}.{RBAC_GROUP} \"{}\" not found", role.name)),
    }
}

/// Decodes a stored object. All stored objects have passed validation.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
