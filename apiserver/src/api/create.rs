//! Creates: check the namespace, admit the object, and create it.

use serde_json::json;

use super::creation::{New, create_object};
use super::managers::field_manager;
use super::{limits, server_objects, service_accounts, webhooks};
use crate::admission::owners::Ownership;
use crate::admission::{create, meta_text, metadata};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Admission, AdmitError, admin_access};
use crate::plugin::{AdmissionPlugin, At};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{Failure, Result};

pub(super) fn create(core: &Core, call: &ApiCall) -> Result<Reply> {
    let options = call.params.write_options("CreateOptions")?;
    let mut object = call.object(&core.kinds(), options.validation)?;
    call.warnings.extend(metadata::drop_repeated_owners(&mut object, ""));
    check_namespace(core, call, &object)?;
    let manager = field_manager(core, call);
    let owners = if call.target.served.home.admissions.is_empty() {
        Ownership::Tracked(manager)
    } else {
        // The server, not the client, owns what admission adds.
        Ownership::Known(create::owners(&call.target.served, &manager, &object))
    };
    let name = meta_text(&object, "name").to_owned();
    admit(core, call, &mut object)?;
    let owners = mutate(core, call, &mut object, (owners, options.dry_run))?;
    let new = New { owners, dry_run: options.dry_run, name, is_upsert: false };
    let created = create_object(core, call, &object, &new)?;
    Ok(created.expect("only an upsert starts again"))
}

/// Applies the admission of webhooks that may change a new object. Returns the object's owners.
pub(super) fn mutate(
    core: &Core,
    call: &ApiCall,
    object: &mut Fields,
    owners: (Ownership, bool),
) -> Result<Ownership> {
    let again = |object: &mut Fields| admit(core, call, object);
    webhooks::mutate_new(core, call, object, owners, &again)
}

/// Fails if the namespace is missing or terminating, or if its labels do not permit the object.
pub(super) fn check_namespace(core: &Core, call: &ApiCall, object: &Fields) -> Result<()> {
    let kind = &call.target.served.kind;
    if !kind.namespaced {
        return Ok(());
    }
    let kinds = core.kinds();
    let is_checked = kinds.runs(AdmissionPlugin::NamespaceLifecycle);
    let (namespaces, namespace) = (kinds.namespaces(), call.namespace());
    if kinds.runs(AdmissionPlugin::NamespaceAutoProvision)
        && !call.params.write_options("CreateOptions")?.dry_run
    {
        let missing = json!({"metadata": {"name": namespace}});
        let name = meta_text(object, "name");
        server_objects::try_store(core, &namespaces, &missing, server_objects::SERVER)
            .map_err(|failure| Failure::forbidden(kind, name, &failure.message))?;
    }
    match core.get(namespaces.resource, namespace) {
        None if !is_checked => Ok(()),
        None => Err(Failure::not_found(&namespaces.kind, namespace)),
        Some(stored) if is_checked && stored.selectable.terminating => {
            let detail = format!(
                "unable to create new content in namespace {namespace} because it is being \
                 terminated"
            );
            let mut failure = Failure::forbidden(kind, meta_text(object, "name"), &detail);
            if let Some(details) = &mut failure.details {
                let message = format!("namespace {namespace} is being terminated");
                details["causes"] = json!([{"reason": "NamespaceTerminating", "message": message,
                    "field": "metadata.namespace"}]);
            }
            Err(failure)
        }
        Some(stored) => match admin_access(kind, object, &stored.selectable.labels) {
            Some(cause) => Err(Failure::invalid(kind, meta_text(object, "name"), &[cause])),
            None => Ok(()),
        },
    }
}

/// Applies the admission that depends on other objects.
pub(super) fn admit(core: &Core, call: &ApiCall, object: &mut Fields) -> Result<()> {
    let home = &call.target.served.home;
    limits::complete(core, &call.target.served, call.namespace(), object);
    service_accounts::complete(core, &call.target.served, call.namespace(), object)?;
    home.admissions.iter().try_for_each(|admission| {
        if admission.after_additions {
            home.add(At::Create, object, None);
        }
        admit_with(core, call, admission, object)
    })
}

/// Applies the admission of one plugin, which depends on the objects of another kind.
fn admit_with(
    core: &Core,
    call: &ApiCall,
    admission: &Admission,
    object: &mut Fields,
) -> Result<()> {
    let others = || core.kinds().find(admission.group, "v1", admission.plural);
    let find = |name: &str| core.get(others()?.resource, name).map(|stored| stored.fields());
    let all = || {
        let Some(others) = others() else { return Vec::new() };
        let objects = core.read(|storage| storage.objects(others.resource).clone());
        let made = objects.iter().filter(|(name, _)| !name.starts_with(admission.built_in));
        made.map(|(_, stored)| stored.fields()).collect()
    };
    (admission.apply)(object, &find, &all).map_err(|refusal| {
        let detail = match refusal {
            AdmitError::Forbidden(detail) => detail,
            AdmitError::Unreadable(detail) => return Failure::internal(detail),
        };
        let name = match meta_text(object, "name") {
            "" => meta_text(object, "generateName"),
            name => name,
        };
        Failure::forbidden(&call.target.served.kind, name, &detail)
    })
}
