//! The rights that a user needs to change the owners of an object (the plugin
//! `OwnerReferencesPermissionEnforcement`).

use homeostat_core::go_quote;
use serde_json::Value;

use super::roles::{self, Decision};
use super::write::Write;
use crate::access::Attributes;
use crate::core::Core;
use crate::fields::{Fields, read_path, text};
use crate::plugin::AdmissionPlugin;
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// Fails with 403 if the user of a write lacks a right.
pub(super) fn check(core: &Core, call: &ApiCall, write: Write<'_>) -> Result<()> {
    if !core.kinds().runs(AdmissionPlugin::OwnerReferencesPermissionEnforcement) {
        return Ok(());
    }
    let info = &call.target.info;
    let (new, old) = (owners(write.new), write.old.map(owners).unwrap_or_default());
    if new == old {
        return Ok(());
    }
    let refused =
        |detail: String| Failure::forbidden(&call.target.served.kind, write.name, &detail);
    if write.old.is_some() {
        let right = Attributes {
            verb: "delete".to_owned(),
            namespace: call.namespace().to_owned(),
            group: info.group.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone().unwrap_or_default(),
            name: info.name.clone().unwrap_or_default(),
            path: None,
        };
        decide(core, call, &right).map_err(|reason| {
            let why = "cannot set an ownerRef on a resource you can't delete";
            refused(format!("{why}: {reason}, <nil>"))
        })?;
    }
    let blocking: Vec<&Value> =
        new.iter().filter(|owner| blocks(owner) && !blocked_before(&old, owner)).collect();
    let any = finalizers("", "*", "*", "*");
    if blocking.is_empty() || decide(core, call, &any).is_ok() {
        return Ok(());
    }
    blocking.into_iter().try_for_each(|owner| check_finalizers(core, call, owner).map_err(refused))
}

/// Fails if the user may not set the finalizers of an owner.
fn check_finalizers(core: &Core, call: &ApiCall, owner: &Value) -> std::result::Result<(), String> {
    let (api_version, kind, name) =
        (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = core.kinds();
    let mut rows = kinds.rows_of_group(group);
    let Some(row) = rows.find(|row| row.version == version && row.kind == kind) else {
        return Err(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion {api_version} Kind {kind}: no matches for kind {} in version {}",
            go_quote(kind),
            go_quote(api_version)
        ));
    };
    // An owner is in the namespace of the object.
    let namespace = if row.namespaced { call.namespace() } else { "" };
    let right = finalizers(namespace, group, &row.plural, name);
    decide(core, call, &right).map_err(|reason| {
        format!(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
             finalizers on: {reason}, <nil>"
        )
    })
}

/// Returns the right to set the finalizers of an object.
fn finalizers(namespace: &str, group: &str, resource: &str, name: &str) -> Attributes {
    Attributes {
        verb: "update".to_owned(),
        namespace: namespace.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: "finalizers".to_owned(),
        name: name.to_owned(),
        path: None,
    }
}

/// Fails with the reason of the roles if the user lacks a right.
fn decide(core: &Core, call: &ApiCall, right: &Attributes) -> std::result::Result<(), String> {
    let Decision { allowed, reason } = roles::decide(core, &call.user, right);
    if allowed { Ok(()) } else { Err(reason) }
}

fn owners(object: &Fields) -> Vec<Value> {
    let list = read_path(object, "metadata.ownerReferences").and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn blocks(owner: &Value) -> bool {
    owner["blockOwnerDeletion"] == true
}

fn blocked_before(old: &[Value], owner: &Value) -> bool {
    old.iter().any(|known| known["uid"] == owner["uid"] && blocks(known))
}
