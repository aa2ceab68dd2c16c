//! The API verbs.

mod access;
mod addresses;
mod api_services;
mod applied;
mod bearer;
mod bootstrap;
mod commit;
mod conversion;
mod create;
mod creation;
mod definitions;
mod delete;
mod escalation;
mod eviction;
mod flow_schemas;
mod guards;
mod impersonation;
mod kept_objects;
mod kubelet;
mod limits;
mod list;
mod list_options;
mod managers;
mod owner_rights;
mod parameters;
mod patched;
mod pod_security;
mod policies;
mod proxies;
mod published_authorities;
mod quota;
mod quota_devices;
mod read;
mod removal;
mod renderer;
mod resize;
mod review;
mod review_selectors;
mod roles;
mod scale;
mod server_objects;
mod service_accounts;
mod shown;
mod size;
mod subresource;
mod token;
mod token_request;
mod update;
mod warnings;
mod watch;
mod webhooks;
mod write;

pub(crate) use access::{Admitted, admit};
pub(crate) use bootstrap::{populate, recreate, resume};
pub(crate) use definitions::{
    install as install_definition, reinstall as reinstall_definitions, serve_changed_definitions,
    settle,
};
pub(crate) use kubelet::answer as answer_without_kubelet;
#[cfg(feature = "tls")]
pub(crate) use published_authorities::publish as publish_authorities;

use std::sync::Arc;

use http::Method;

use self::api_services::REGISTRATION_GROUP;
use crate::core::Core;
use crate::flow_control::FLOW_CONTROL_GROUP;
use crate::kinds::{Kind, Operations, Served};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::target::Target;
use crate::status::{Failure, Result};

/// Follows a write of a client, which may have failed: what other objects show of it.
pub(crate) fn after_write(core: &Core, served: &Served) {
    definitions::relabel_after_write(core, served);
    match &*served.home.group {
        FLOW_CONTROL_GROUP => flow_schemas::report(core),
        REGISTRATION_GROUP => api_services::repair(core),
        _ => {}
    }
}

/// Finds the verb of a request, and carries it out.
pub(crate) async fn dispatch(core: &Arc<Core>, call: &ApiCall) -> Result<Reply> {
    let target = &call.target;
    let name = target.info.name.as_deref();
    let subresource = target.info.subresource.as_deref();
    match target.served.kind.operations {
        Operations::All => {}
        Operations::Create => return replayed(core, call, create_only).await,
        Operations::Read => check_read(call)?,
    }
    match (&call.method, name, subresource) {
        (&Method::GET, None, None) if call.params.flag("watch") => watch::start(core, call).await,
        (&Method::GET, None, None) => list::list(core, call).await,
        (method, Some(name), Some("scale")) => scale::serve(core, call, method, name).await,
        (&Method::GET, Some(name), part) if is_readable(target, part) => {
            read::get(core, call, name).await
        }
        // A request for all namespaces may only read.
        (&Method::POST | &Method::DELETE, None, None)
            if target.served.kind.namespaced && target.info.namespace.is_none() =>
        {
            Err(Failure::method_not_allowed(&target.served.kind, verb(&call.method, false)))
        }
        (&Method::POST, None, None) => {
            service_accounts::wait_for_default(core, call).await;
            replayed(core, call, create::create).await
        }
        // For custom resources the real server treats this as a create.
        (&Method::POST, Some(_), None) if target.served.kind.custom => {
            replayed(core, call, create::create).await
        }
        (&Method::PUT, Some(name), part)
            if part == Some("finalize") || is_readable(target, part) =>
        {
            replayed(core, call, |core, call| update::update(core, call, name)).await
        }
        (&Method::PATCH, Some(name), part) if is_readable(target, part) => {
            replayed(core, call, |core, call| update::patch(core, call, name)).await
        }
        (&Method::DELETE, Some(name), None) => {
            replayed(core, call, |core, call| delete::delete(core, call, name)).await
        }
        (&Method::DELETE, None, None) => delete::delete_collection(core, call).await,
        (&Method::POST, Some(name), Some(action))
            if target.served.kind.action(action).is_some() =>
        {
            replayed(core, call, |core, call| subresource::post(core, call, name, action)).await
        }
        (method, ..) => {
            Err(Failure::method_not_allowed(&target.served.kind, verb(method, name.is_some())))
        }
    }
}

/// Fails unless the call lists objects: a kind whose objects are only read has no others.
fn check_read(call: &ApiCall) -> Result<()> {
    let target = &call.target;
    let reads = call.method == Method::GET && !call.params.flag("watch");
    match target.info.name.as_deref() {
        None if reads => Ok(()),
        Some(name) if reads => Err(no_component(&target.served.kind, name)),
        Some(_) => Err(Failure::no_resource()),
        None => Err(Failure::method_unknown()),
    }
}

/// Carries out a verb, and again after each call of a webhook at which it stops.
async fn replayed(
    core: &Core,
    call: &ApiCall,
    verb: impl Fn(&Core, &ApiCall) -> Result<Reply>,
) -> Result<Reply> {
    webhooks::replay(core, (&call.conversation, &call.params), || verb(core, call)).await
}

/// Returns the error for an object of a kind that the server has none of, which names the kind in
/// the singular.
fn no_component(kind: &Kind, name: &str) -> Failure {
    let plural = kind.singular().into();
    Failure::not_found(&Kind { plural, ..kind.clone() }, name)
}

/// Returns true if a path names an object, or a view of it: a subresource that shows the object and
/// writes a part of it.
fn is_readable(target: &Target, subresource: Option<&str>) -> bool {
    subresource.is_none_or(|name| {
        matches!(name, "status" | "resize") || target.served.kind.part(name).is_some()
    })
}

/// Carries out a request for a kind that stores nothing.
fn create_only(core: &Core, call: &ApiCall) -> Result<Reply> {
    let (target, kind) = (&call.target, &call.target.served.kind);
    let is_create = call.method == Method::POST && target.info.name.is_none();
    let is_placed = !kind.namespaced || target.info.namespace.is_some();
    match (kind.review, kind.relay) {
        (Some(review), _) if is_create && is_placed => review::create(core, call, review),
        (_, Some(relay)) if is_create && is_placed => subresource::relay(core, call, relay),
        _ if target.info.name.is_some() => Err(Failure::no_resource()),
        _ => Err(Failure::method_unknown()),
    }
}

fn verb(method: &Method, named: bool) -> &'static str {
    match (method.as_str(), named) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        (_, true) => "get",
        (_, false) => "list",
    }
}
