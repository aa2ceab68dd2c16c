//! Deletes, of one object and of collections.

use std::sync::Arc;

use super::policies::{self, Admit};
use super::renderer::Renderer;
use super::{addresses, list, webhooks};
use crate::admission::delete::{self, DeleteOptions};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::object::Stored;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{self, Failure, Result};

pub(super) fn delete(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    let options = call.delete_options()?;
    let served = &call.target.served;
    let protected = served.kind.protected.filter(|protected| protected.names.contains(&name));
    if let Some(protected) = protected {
        return Err(Failure::forbidden(&served.kind, name, protected.detail));
    }
    let renderer = Renderer::of_object(core, call)?;
    call.warnings.extend(options.warning(&served.home));
    let key = served.kind.key(call.namespace(), name);
    let admit = |old: &Fields| policies::check_delete(core, call, old, (name, &options));
    let deleted = delete_object(core, served, (&key, name), &options, &admit)?;
    Ok(deleted.answer(&renderer, name, &options))
}

/// The result of a delete.
pub(super) enum Deleted {
    Gone(Arc<Stored>),
    Waiting(Arc<Stored>),
}

impl Deleted {
    fn answer(&self, renderer: &Renderer, name: &str, options: &DeleteOptions) -> Reply {
        match self {
            Self::Gone(last) if renderer.served().kind.returns_deleted => {
                Reply::ok(renderer.object(last))
            }
            Self::Gone(last) => {
                Reply::value(&status::deleted(&renderer.served().kind, name, &last.selectable.uid))
            }
            Self::Waiting(stored) => {
                let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
                Reply::Json { code, body: renderer.object(stored) }
            }
        }
    }
}

/// Deletes an object that `admit` accepts.
pub(super) fn delete_object(
    core: &Core,
    served: &Served,
    (key, name): (&str, &str),
    options: &DeleteOptions,
    admit: Admit<'_>,
) -> Result<Deleted> {
    let dry_run = options.is_dry_run();
    let resource = served.resource;
    loop {
        let Some(stored) = core.get(resource, key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = core.fields(served, &stored);
        delete::check_preconditions(&served.kind, &old, options)?;
        let revision = stored.revision;
        let outcome = delete::prepare(&served.home, &old, options, core.clock.now());
        // A graceful deletion that goes on already is not asked for again.
        let goes_on = matches!(outcome, delete::Outcome::Pending) && served.home.grace.is_some();
        if !goes_on {
            admit(&old)?;
        }
        match outcome {
            delete::Outcome::Pending => return Ok(Deleted::Waiting(stored)),
            delete::Outcome::Delete if dry_run => return Ok(Deleted::Gone(stored)),
            delete::Outcome::Delete => {
                if let Ok(last) = core.delete(resource, key, revision) {
                    addresses::reserve(core, served, Some(&old), None).keep();
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) if !dry_run => {
                // Two writes, and two events. If the second one conflicts, the next round sees the
                // mark.
                let marked = core.put(resource, key, Some(revision), served.encode(new));
                let Ok(marked) = marked else { continue };
                if let Ok(last) = core.delete(resource, key, marked.revision) {
                    addresses::reserve(core, served, Some(&old), None).keep();
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) => {
                let marked = served.encode(new).at(revision);
                return Ok(Deleted::Gone(Arc::new(marked)));
            }
            delete::Outcome::Store(new) => {
                let encoded = served.encode(new);
                if dry_run {
                    return Ok(Deleted::Waiting(Arc::new(encoded.at(revision))));
                }
                if let Ok(stored) = core.put(resource, key, Some(revision), encoded) {
                    return Ok(Deleted::Waiting(stored));
                }
            }
        }
    }
}

pub(super) async fn delete_collection(core: &Core, call: &ApiCall) -> Result<Reply> {
    let served = &call.target.served;
    if !served.kind.deletes_collections {
        return Err(Failure::method_not_allowed(&served.kind, "deletecollection"));
    }
    let renderer = Renderer::of_list(core, call)?;
    let options = call.delete_options()?;
    let (metadata, items) = list::select(core, call).await?;
    for item in &items {
        let selectable = &item.selectable;
        let key = served.kind.key(&selectable.namespace, &selectable.name);
        // The request names no object.
        let admit = |old: &Fields| policies::check_delete(core, call, old, ("", &options));
        let names = (&*key, &*selectable.name);
        let delete = || delete_object(core, served, names, &options, &admit);
        let deleted = webhooks::replay(core, (&call.conversation, &call.params), delete).await;
        call.conversation.forget();
        match deleted {
            Ok(_) => {}
            // A concurrent delete was faster: the object is gone, as requested.
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Reply::ok(renderer.list(&metadata, items.iter())))
}
