//! The check that a user grants only rights of its own, by roles and by bindings.

use serde::Deserialize;
use serde_json::Value;

use super::roles;
use crate::access::{Attributes, PolicyRule, RBAC_GROUP, RoleRef, User, missing_rights, quoted};
use crate::core::Core;
use crate::fields::{Fields, is_clean_up};
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// The part of a role or a binding that grants rights.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Grant {
    rules: Option<Vec<PolicyRule>>,
    aggregation_rule: Option<AggregationRule>,
    role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    cluster_role_selectors: Option<Vec<Value>>,
}

/// Fails with 403 if the write of a role or a binding grants rights that the user does not have. A
/// user with the verb `escalate` on the role, or `bind` on the role of a binding, may grant them.
pub(super) fn check(core: &Core, call: &ApiCall, new: &Fields, old: Option<&Fields>) -> Result<()> {
    let kind = &call.target.served.kind;
    let user = &call.user;
    if kind.group != RBAC_GROUP || !core.access.is_enforced() || user.is_master() {
        return Ok(());
    }
    if old.is_some_and(|old| is_clean_up(new, old)) {
        return Ok(());
    }
    // A malformed object fails validation.
    let Ok(grant) = Grant::deserialize(&Value::Object(new.clone())) else { return Ok(()) };
    let name = call.target.info.name.as_deref().unwrap_or_default();
    let is_role = matches!(kind.plural.as_ref(), "roles" | "clusterroles");
    let (verb, resource, object) = if is_role {
        ("escalate", kind.plural.as_ref(), name)
    } else {
        ("bind", plural_of(&grant.role_ref), grant.role_ref.name.as_str())
    };
    let permission = Attributes {
        verb: verb.to_owned(),
        namespace: call.namespace().to_owned(),
        group: RBAC_GROUP.to_owned(),
        resource: resource.to_owned(),
        name: object.to_owned(),
        ..Attributes::default()
    };
    if roles::decide(core, user, &permission).allowed {
        return Ok(());
    }
    let wanted = if is_role {
        grant.rules.unwrap_or_default()
    } else {
        rules_to_bind(core, call, &grant.role_ref)?
    };
    let own = new.get("metadata").and_then(|metadata| metadata.get("name"));
    let own = own.and_then(Value::as_str).unwrap_or_default();
    let forbidden = |detail: &str| Failure::forbidden(&**kind, own, detail);
    confirm(core, user, call.namespace(), &wanted).map_err(|detail| forbidden(&detail))?;
    let selectors = grant.aggregation_rule.and_then(|rule| rule.cluster_role_selectors);
    let aggregates = selectors.is_some_and(|selectors| !selectors.is_empty());
    if aggregates && confirm(core, user, "", &PolicyRule::everything()).is_err() {
        return Err(forbidden("must have cluster-admin privileges to use the aggregationRule"));
    }
    Ok(())
}

fn plural_of(role: &RoleRef) -> &'static str {
    if role.kind == "ClusterRole" { "clusterroles" } else { "roles" }
}

/// Returns the rules of the role that a binding names. As on the real server, the error about a
/// missing role names the kind of the binding.
fn rules_to_bind(core: &Core, call: &ApiCall, role: &RoleRef) -> Result<Vec<PolicyRule>> {
    let rules = roles::rules(core, call.namespace(), role);
    rules.map_err(|_| Failure::not_found(&*call.target.served.kind, &role.name))
}

/// Checks that the user has all rights of these rules.
fn confirm(
    core: &Core,
    user: &User,
    namespace: &str,
    wanted: &[PolicyRule],
) -> std::result::Result<(), String> {
    let (held, errors) = roles::rules_of(core, user, namespace);
    let missing = missing_rights(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let (name, groups) = (homeostat_core::go_quote(&user.name), quoted(&user.groups));
    let mut detail = format!(
        "user {name} (groups={groups}) is attempting to grant RBAC permissions not currently \
         held:\n{}",
        missing.join("\n")
    );
    if !errors.is_empty() {
        detail.push_str("; resolution errors: [");
        detail.push_str(&errors.join(", "));
        detail.push(']');
    }
    Err(detail)
}
