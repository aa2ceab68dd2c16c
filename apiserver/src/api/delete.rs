//! Deletes, of one object and of collections.

use serde_json::json;

use super::conversion::Converter;
use super::list_options::ListOptions;
use super::policies::{self, Admit};
use super::removal::{Deleted, remove};
use super::renderer::Renderer;
use super::{addresses, list, roles, webhooks};
use crate::admission::delete::{DeleteOptions, IGNORE_READ_ERRORS};
use crate::core::Core;
use crate::fields::Fields;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{self, Cause, Failure, Result};

pub(super) fn delete(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    let options = call.delete_options()?;
    let served = &call.target.served;
    if options.ignores_read_errors == Some(true) {
        return Err(refuse_unsafe(core, call, name));
    }
    let protected = served.kind.protected.filter(|protected| protected.names.contains(&name));
    if let Some(protected) = protected {
        return Err(Failure::forbidden(&served.kind, name, protected.detail));
    }
    call.warnings.extend(options.warning(&served.home));
    let key = served.kind.key(call.namespace(), name);
    let admit = |old: &Fields| policies::check_delete(core, call, old, (name, &options));
    let converter = Converter::of(call);
    let deleted = delete_object(core, &converter, (&key, name), &options, &admit)?;
    answer(core, call, &deleted, (name, &options))
}

/// Returns the error for the delete of an object that the storage could not decode: it decodes all.
fn refuse_unsafe(core: &Core, call: &ApiCall, name: &str) -> Failure {
    const VERB: &str = "unsafe-delete-ignore-read-errors";
    let served = &call.target.served;
    let kind = &served.kind;
    // The storage of these kinds has no such delete.
    if &*kind.kind == "Namespace" || &*kind.group == "rbac.authorization.k8s.io" {
        return Failure::internal_error(&format!(
            "no unsafe deleter provided, can not honor {IGNORE_READ_ERRORS}"
        ));
    }
    let decision = roles::decide_as(core, &call.user, &call.target.info, VERB);
    if !decision.allowed {
        let detail = format!("not permitted to do \"{VERB}\", reason: {}", decision.reason);
        return Failure::forbidden(kind, name, &detail);
    }
    if core.get(served.resource, &kind.key(call.namespace(), name)).is_none() {
        return Failure::not_found(kind, name);
    }
    let key = served.home.storage_key(call.namespace(), name);
    let detail = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from \
         storage"
    );
    Failure::conflict(kind, name, &detail)
}

/// Returns the reply. As on the real server, a form that it cannot have is an error only now.
fn answer(
    core: &Core,
    call: &ApiCall,
    deleted: &Deleted,
    (name, options): (&str, &DeleteOptions),
) -> Result<Reply> {
    let kind = &call.target.served.kind;
    match deleted {
        Deleted::Gone(last) if kind.returns_deleted => {
            Ok(Reply::ok(Renderer::of_object(core, call)?.object(last)))
        }
        Deleted::Gone(last) => {
            // A status has any form.
            Renderer::of(core, call)?;
            Ok(Reply::value(&status::deleted(kind, name, &last.selectable.uid)))
        }
        Deleted::Waiting(stored) => {
            let body = Renderer::of_object(core, call)?.object(stored);
            let is_accepted = options.orphan_dependents == Some(false);
            Ok(Reply::Json { code: if is_accepted { 202 } else { 200 }, body })
        }
    }
}

/// Deletes an object that `admit` accepts, and releases its addresses.
pub(super) fn delete_object(
    core: &Core,
    converter: &Converter,
    named: (&str, &str),
    options: &DeleteOptions,
    admit: Admit<'_>,
) -> Result<Deleted> {
    let deleted = remove(core, converter, named, options, admit)?;
    if let Deleted::Gone(last) = &deleted
        && !options.is_dry_run()
    {
        addresses::release(core, converter.served(), last);
    }
    Ok(deleted)
}

pub(super) async fn delete_collection(core: &Core, call: &ApiCall) -> Result<Reply> {
    let served = &call.target.served;
    if !served.kind.deletes_collections {
        return Err(Failure::method_not_allowed(&served.kind, "deletecollection"));
    }
    let listed = ListOptions::of(call)?;
    let options = call.delete_options()?;
    if options.ignores_read_errors == Some(true) {
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let cause = Cause::invalid(IGNORE_READ_ERRORS, &json!(true), detail);
        return Err(Failure::invalid_options("DeleteOptions", &[cause]));
    }
    call.warnings.extend(options.warning(&served.home));
    let (metadata, items) = list::select(core, call, listed).await?;
    let converter = Converter::of(call);
    for item in &items {
        let selectable = &item.selectable;
        let key = served.kind.key(&selectable.namespace, &selectable.name);
        // The request names no object.
        let admit = |old: &Fields| policies::check_delete(core, call, old, ("", &options));
        let names = (&*key, &*selectable.name);
        let delete = || delete_object(core, &converter, names, &options, &admit);
        let deleted = webhooks::replay(core, (&call.conversation, &call.params), delete).await;
        call.conversation.forget();
        match deleted {
            Ok(_) => {}
            // A concurrent delete was faster: the object is gone, as requested.
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    // The real server deletes the objects before it looks at the form of the reply.
    let renderer = Renderer::of_list(core, call)?;
    Ok(Reply::ok(renderer.list(&metadata, items.iter())))
}
