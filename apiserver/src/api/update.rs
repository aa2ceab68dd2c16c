//! Updates and patches: read the stored object, decide in pure code, commit if the object is
//! unchanged, else repeat.

use serde_json::json;

use super::applied;
use super::commit::{Replacement, commit};
use super::conversion::Converter;
use super::create::{check_namespace, mutate};
use super::creation::{New, create_object};
use super::managers::{field_manager, target_of};
use super::patched::{self, check_identity};
use super::renderer::Renderer;
use crate::admission::metadata;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::update::{self, Change};
use crate::core::Core;
use crate::fields::Fields;
use crate::media;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::decode::check_custom_kind;
use crate::status::{Failure, Result};

pub(super) fn update(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    let options = call.params.write_options("UpdateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let (renderer, form) = Renderer::of_write(core, call);
    let target = target_of(call);
    let owners = &Ownership::Tracked(field_manager(core, call));
    let key = served.kind.key(call.namespace(), name);
    let converter = Converter::of(call);
    loop {
        // Decoded again after a conflict, which is rare: a copy would cost every request.
        let mut body = call.object(&core.kinds(), options.validation)?;
        call.warnings.extend(metadata::drop_repeated_owners(&mut body, ""));
        let Some(stored) = core.get(served.resource, &key) else {
            // A write to a status creates the object, too.
            let may_create = matches!(target, Target::Object | Target::Status);
            if !served.kind.create_on_update || !may_create {
                return Err(Failure::not_found(&served.kind, name));
            }
            match create(core, call, (name, dry_run), body)? {
                Some(reply) => return Ok(reply),
                None => continue,
            }
        };
        let old = converter.fields(core, &stored)?;
        update::check_uid(&served.kind, &old, &body, dry_run)?;
        update::check_version(&served.kind, &old, &body)?;
        check_custom_kind(&served.kind, &body)?;
        let change = Change { old: &old, new: body, target, owners };
        let change = Replacement { change, dry_run, call };
        if let Some(answer) = commit(core, &renderer, &key, &stored, change)? {
            return form.map(|()| Reply::ok(answer));
        }
    }
}

/// Creates the object of an update. Returns `None` if another request has created it in the
/// meantime.
fn create(
    core: &Core,
    call: &ApiCall,
    (name, dry_run): (&str, bool),
    mut object: Fields,
) -> Result<Option<Reply>> {
    check_namespace(core, call, &object)?;
    let place = (call.namespace(), name);
    update::check_may_create(&call.target.served.kind, place, &object, dry_run)?;
    let owners = Ownership::Tracked(field_manager(core, call));
    let owners = mutate(core, call, &mut object, (owners, dry_run))?;
    let new = New { owners, dry_run, name: name.to_owned(), is_upsert: true };
    create_object(core, call, &object, &new)
}

pub(super) fn patch(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    if call.content_type() == media::APPLY {
        return applied::apply(core, call, name);
    }
    // The real server looks at the format first.
    let format = patched::format(call)?;
    let options = call.params.write_options("PatchOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let (renderer, form) = Renderer::of_write(core, call);
    let format = (format, options.validation);
    let target = target_of(call);
    let owners = &Ownership::Tracked(field_manager(core, call));
    let key = served.kind.key(call.namespace(), name);
    let converter = Converter::of(call);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = converter.fields(core, &stored)?;
        let seen = || {
            let mut seen = Fields::clone(&old);
            patched::ready_owners(call, format.0, &mut seen);
            served.kind.rename_from_storage(&mut seen);
            seen.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
            seen
        };
        let mut new = patched::apply(&core.kinds(), call, format, (&old, &seen))?;
        let when = " after mutating admission happens";
        call.warnings.extend(metadata::drop_repeated_owners(&mut new, when));
        served.kind.rename_for_storage(&mut new);
        check_identity(&old, &new, name)?;
        update::check_version(&served.kind, &old, &new)?;
        let change =
            Replacement { change: Change { old: &old, new, target, owners }, dry_run, call };
        if let Some(answer) = commit(core, &renderer, &key, &stored, change)? {
            return form.map(|()| Reply::ok(answer));
        }
    }
}
