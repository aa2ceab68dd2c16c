//! Authorization: the decision of the roles about what a user may do.

use homeostat_faults::RequestInfo;
use homeostat_schema::aggregate;

use crate::access::{Attributes, PolicyRule, RoleRef, User};
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
    let (grants, mut errors) = (core.grants(), Vec::new());
    for binding in grants.bindings_in(&request.namespace) {
        let Some(subject) = binding.subject_of(user) else { continue };
        match grants.rules(&request.namespace, &binding.role_ref) {
            Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                let reason = format!("RBAC: allowed by {}", binding.reason_for(subject));
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
    let (grants, mut found, mut errors) = (core.grants(), Vec::new(), Vec::new());
    let own = grants.bindings_in(namespace).filter(|binding| binding.subject_of(user).is_some());
    for binding in own {
        match grants.rules(namespace, &binding.role_ref) {
            Ok(rules) => found.extend_from_slice(rules),
            Err(error) => errors.push(error),
        }
    }
    (found, errors)
}

/// Returns the rules of the role that a binding names, or the real server's error.
pub(super) fn rules(
    core: &Core,
    namespace: &str,
    role: &RoleRef,
) -> std::result::Result<Vec<PolicyRule>, String> {
    core.grants().rules(namespace, role).map(<[PolicyRule]>::to_vec)
}
