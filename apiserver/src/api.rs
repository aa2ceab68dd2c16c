//! The verbs.

mod list;
mod patched;
mod read;
mod scale;
mod token;
mod view;
mod watch;
mod write;

pub(crate) use write::populate;

use std::sync::Arc;

use http::Method;

use crate::core::Core;
use crate::http::{Answer, Call};
use crate::status::{Failure, Result};

/// Finds out which verb a call is, and carries it out.
pub(crate) async fn dispatch(core: &Arc<Core>, call: &Call) -> Result<Answer> {
    let target = &call.target;
    let name = target.name.as_deref();
    let subresource = target.subresource.as_deref();
    match (&call.method, name, subresource) {
        (&Method::GET, None, None) if call.params.flag("watch") => watch::start(core, call).await,
        (&Method::GET, None, None) => list::list(core, call).await,
        (method, Some(name), Some("scale")) => scale::serve(core, call, method, name).await,
        (&Method::GET, Some(name), None | Some("status" | "ephemeralcontainers")) => {
            read::get(core, call, name).await
        }
        // All namespaces can be read together, and not written.
        (&Method::POST | &Method::DELETE, None, None)
            if target.served.kind.namespaced && target.namespace.is_none() =>
        {
            Err(Failure::method_not_allowed(&target.served.kind, verb(&call.method, false)))
        }
        (&Method::POST, None, None) => write::create(core, call),
        // For custom resources the real server takes it for a create.
        (&Method::POST, Some(_), None) if target.served.kind.custom => write::create(core, call),
        (&Method::PUT, Some(name), None | Some("status" | "finalize" | "ephemeralcontainers")) => {
            write::update(core, call, name)
        }
        (&Method::PATCH, Some(name), None | Some("status" | "ephemeralcontainers")) => {
            write::patch(core, call, name)
        }
        (&Method::DELETE, Some(name), None) => write::delete(core, call, name),
        (&Method::DELETE, None, None) => write::delete_collection(core, call).await,
        (&Method::POST, Some(name), Some(action))
            if target.served.kind.action(action).is_some() =>
        {
            write::act(core, call, name, action)
        }
        (method, ..) => {
            Err(Failure::method_not_allowed(&target.served.kind, verb(method, name.is_some())))
        }
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
