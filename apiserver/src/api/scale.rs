//! `/scale`: the replicas of an object, in the form that all kinds with replicas share.

use std::sync::Arc;

use homeostat_core::go_quote;
use http::Method;
use serde_json::{Value, json};

use super::commit::{Replacement, commit};
use super::conversion::Converter;
use super::managers::field_manager;
use super::patched::{self, Patch, check_identity};
use super::renderer::Renderer;
use super::{applied, read, shown, webhooks};
use crate::admission::field_manager::{FieldManager, Scaled};
use crate::admission::owners::{Ownership, object_text, type_text};
use crate::admission::target::Target;
use crate::admission::update::{self, Change};
use crate::admission::{meta_text, metadata_mut};
use crate::core::Core;
use crate::fields::{Fields, read_path, set_or_remove};
use crate::kinds::Scale;
use crate::patch::PatchKind;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::decode::{Wanted, not_registered};
use crate::request::options::{Validation, WriteOptions};
use crate::status::{Failure, Result};
use crate::types::{Expected, Type, Types, wrap_integers, wrong_member};
use crate::{media, table};

const API_VERSION: &str = "autoscaling/v1";
const KIND: &str = "Scale";
/// Versions of a scale that the real server decodes and then rejects.
const OLDER_VERSIONS: &[&str] = &["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

/// The replicas of a custom object that states none, as a patch sees them.
const UNSTATED: i64 = i32::MIN as i64;

/// The body of a write.
enum Body {
    /// The new scale, of a PUT.
    Scale(Fields),
    Patch(PatchKind),
}

pub(super) async fn serve(
    core: &Arc<Core>,
    call: &ApiCall,
    method: &Method,
    name: &str,
) -> Result<Reply> {
    let Some(scale) = &call.target.served.kind.scale else {
        return Err(Failure::not_found(&call.target.served.kind, name));
    };
    let kind = &call.target.served.kind;
    let of = if kind.custom { "*v1.Scale" } else { "*autoscaling.Scale" };
    let (renderer, form) = Renderer::of_unstored(core, call, of);
    let answered = match *method {
        Method::GET => get(core, call, (scale, name), &renderer).await,
        Method::PATCH if call.content_type() == media::APPLY => {
            let apply = || apply(core, call, (scale, name), &renderer);
            webhooks::replay(core, (&call.conversation, &call.params), apply).await
        }
        Method::PUT | Method::PATCH => {
            let write = || write(core, call, (scale, name), &renderer);
            webhooks::replay(core, (&call.conversation, &call.params), write).await
        }
        _ => Err(Failure::method_not_allowed(kind, super::verb(method, true))),
    };
    // The real server looks at the form of the reply once it has the scale.
    let reply = answered?;
    form.map(|()| reply)
}

async fn get(
    core: &Core,
    call: &ApiCall,
    (scale, name): (&Scale, &str),
    renderer: &Renderer,
) -> Result<Reply> {
    let served = &call.target.served;
    let version = match call.params.get("resourceVersion") {
        "" => None,
        text => Some(read::revision(text).map_err(Failure::internal)?),
    };
    if let Some(revision) = version {
        core.wait_for_revision(revision, &call.client_view).await?;
    }
    let key = served.kind.key(call.namespace(), name);
    let stored = core.get_visible(served.resource, &key, &call.client_view, version.is_some());
    let Some(stored) = stored else {
        return Err(Failure::not_found(&served.kind, name));
    };
    let stored = shown::object(core, call, stored).await?;
    let object = served.read(&stored);
    check_readable(call, scale, &object)?;
    if served.kind.definition.is_some() && !scale.is_stated(&object) {
        let path = go_quote(&format!(".{}", scale.wanted));
        let detail = format!("the spec replicas field {path} does not exist");
        return Err(Failure::internal_error(&detail));
    }
    Ok(reply(renderer, scale, &object))
}

/// Fails if a custom object has something else than a count or a text where its scale is read.
fn check_readable(call: &ApiCall, scale: &Scale, object: &Fields) -> Result<()> {
    if call.target.served.kind.definition.is_none() {
        return Ok(());
    }
    scale.unreadable(object).map_or(Ok(()), |detail| Err(Failure::internal(detail)))
}

fn write(
    core: &Core,
    call: &ApiCall,
    (scale, name): (&Scale, &str),
    renderer: &Renderer,
) -> Result<Reply> {
    // The real server looks at the format of a patch first.
    let format = if call.method == Method::PUT { None } else { Some(patched::format(call)?) };
    let options = if format.is_none() { "UpdateOptions" } else { "PatchOptions" };
    let options = call.params.write_options(options)?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let key = served.kind.key(call.namespace(), name);
    let manager = field_manager(core, call);
    let converter = Converter::of(call);
    let body = match format {
        None => Body::Scale(replaced(call, name, options.validation)?),
        Some(format) => Body::Patch(format),
    };
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = converter.fields(core, &stored)?;
        let live = live(served.kind.definition.is_some(), scale, &old);
        let scaled = Scaled { kind: &served.kind, object: &old, live: &live };
        let requested = requested(call, (scale, &scaled), (&body, name), options)?;
        let mut new = Fields::clone(&old);
        scale.write(&mut new, &requested);
        let owners = manager.update_scale(&scaled, &scale.read(&new));
        let owners = &owners.map_or(Ownership::Kept, Ownership::Known);
        let change = Change { old: &old, new, target: Target::Object, owners };
        let change = Replacement { change, dry_run, call };
        if let Some(bytes) =
            commit(core, &Renderer::of_whole_objects(core, call), &key, &stored, change)?
        {
            return reply_to_write(renderer, scale, &bytes);
        }
    }
}

/// Returns the scale that a write asks for.
fn requested(
    call: &ApiCall,
    (scale, scaled): (&Scale, &Scaled<'_>),
    (body, name): (&Body, &str),
    options: WriteOptions,
) -> Result<Fields> {
    let old = scaled.object;
    let requested = match body {
        Body::Scale(requested) => {
            update::check_uid(scaled.kind, old, requested, options.dry_run)?;
            check_readable(call, scale, old)?;
            requested.clone()
        }
        Body::Patch(format) => {
            check_readable(call, scale, old)?;
            patched_scale(call, scaled, (*format, options.validation))?
        }
    };
    if scaled.kind.definition.is_some() {
        check_stated(scale, &requested)?;
    }
    check_identity(old, &requested, name)?;
    check(call, old, &requested, name)?;
    Ok(requested)
}

/// Returns the scale of an object, to be patched.
fn live(is_custom: bool, scale: &Scale, object: &Fields) -> Fields {
    let mut live = scale.read(object);
    if is_custom && !scale.is_stated(object) {
        live.insert("spec".to_owned(), json!({"replicas": UNSTATED}));
    }
    live
}

/// Fails if a patch leaves a custom object without replicas.
fn check_stated(scale: &Scale, requested: &Fields) -> Result<()> {
    if read_path(requested, "spec.replicas") != Some(&json!(UNSTATED)) {
        return Ok(());
    }
    let path = go_quote(&format!(".{}", scale.wanted));
    Err(Failure::bad_request(format!("the spec replicas field {path} cannot be empty")))
}

/// Carries out a server-side apply of a scale: the owners of the replicas are those of the object.
fn apply(
    core: &Core,
    call: &ApiCall,
    (scale, name): (&Scale, &str),
    renderer: &Renderer,
) -> Result<Reply> {
    let options = call.params.apply_options()?;
    let served = &call.target.served;
    let key = served.kind.key(call.namespace(), name);
    let config = applied::configuration(call, options.write.validation)?;
    let manager = field_manager(core, call);
    let converter = Converter::of(call);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        applied::check_configuration(&config, API_VERSION, KIND)?;
        let old = converter.fields(core, &stored)?;
        check_readable(call, scale, &old)?;
        let live = scale.read(&old);
        let kind = &*served.kind;
        let scaled = Scaled { kind, object: &old, live: &live };
        let mut applied = manager
            .apply_scale(&scaled, &config, options.force)
            .map_err(|error| applied::failure(&error, Some(&live), &config))?;
        if kind.definition.is_some() && applied.object.is_some() {
            return Err(no_conversion(&config));
        }
        if let (Some(known), Some(new)) = (known(), &mut applied.object) {
            wrap_integers(known, new);
            if let Some(wrong) = wrong_member(known, new) {
                let known = type_text(API_VERSION, KIND);
                return Err(applied::unconvertible(&config, &known, &wrong.restored));
            }
        }
        let requested = applied.object.unwrap_or(live);
        check_identity(&old, &requested, name)?;
        check(call, &old, &requested, name)?;
        let mut new = Fields::clone(&old);
        scale.write(&mut new, &requested);
        let owners = &Ownership::Known(applied.owners);
        let change = Change { old: &old, new, target: Target::Object, owners };
        let change = Replacement { change, dry_run: options.write.dry_run, call };
        let whole = Renderer::of_whole_objects(core, call);
        if let Some(bytes) = commit(core, &whole, &key, &stored, change)? {
            return reply_to_write(renderer, scale, &bytes);
        }
    }
}

/// Returns the scale of a written object.
fn reply_to_write(renderer: &Renderer, scale: &Scale, bytes: &[u8]) -> Result<Reply> {
    let object: Fields = serde_json::from_slice(bytes)
        .map_err(|error| Failure::internal(format!("the object cannot be read back: {error}")))?;
    Ok(reply(renderer, scale, &object))
}

/// Returns the scale of an object in the form that the client accepts.
fn reply(renderer: &Renderer, scale: &Scale, object: &Fields) -> Reply {
    let columns = table::scale_columns(&renderer.served().kind);
    Reply::value(&renderer.unstored(columns, scale.read(object)))
}

/// Returns the scale in the body of a PUT.
fn replaced(call: &ApiCall, name: &str, validation: Validation) -> Result<Fields> {
    let expected = known().map_or(Expected::Any, Expected::Kind);
    // Those of custom objects are not known there.
    let older = if call.target.served.kind.custom { &[] } else { OLDER_VERSIONS };
    let wanted = Wanted { kind: KIND, api_version: API_VERSION, older, expected };
    let scale = call.any_object(&wanted, validation)?;
    let version = scale.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if older.contains(&version) {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({API_VERSION})"
        )));
    }
    check_identity(&Fields::new(), &scale, name)?;
    Ok(scale)
}

/// Returns the error of the real server for an apply that changes the scale of a custom resource:
/// it cannot convert the scale.
fn no_conversion(config: &Fields) -> Failure {
    let of = object_text(config);
    Failure::internal(format!(
        "failed to convert new object ({of}) to proper version: request to convert CR to an \
         invalid group/version: {API_VERSION}"
    ))
}

fn patched_scale(
    call: &ApiCall,
    scaled: &Scaled<'_>,
    (format, validation): (PatchKind, Validation),
) -> Result<Fields> {
    let mut scale = scaled.live.clone();
    let owners = FieldManager::owners_of_scale(scaled);
    set_or_remove(metadata_mut(&mut scale), "managedFields", owners);
    let (api_version, kind, known) = (API_VERSION, KIND, known());
    Patch { call, format, validation, api_version, kind, known, before: None }
        .apply(scale, other_type)
}

/// Returns the error for a patched scale that states another type.
fn other_type(scale: &Fields) -> Option<String> {
    let text = |key: &str| scale.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (kind, version) = (text("kind").unwrap_or(KIND), text("apiVersion").unwrap_or(API_VERSION));
    (kind != KIND || version != API_VERSION).then(|| not_registered(kind, version))
}

/// Returns the type of a scale.
fn known() -> Option<&'static Type> {
    Types::all().named("autoscaling.Scale")
}

fn check(call: &ApiCall, old: &Fields, requested: &Fields, name: &str) -> Result<()> {
    let kind = &call.target.served.kind;
    // The check of a custom object rejects its number.
    if let Some(cause) = Scale::check(requested).filter(|_| kind.definition.is_none()) {
        return Err(Failure::invalid_as("autoscaling", KIND, name, &[cause]));
    }
    let (uid, stored) = (meta_text(requested, "uid"), meta_text(old, "uid"));
    if !uid.is_empty() && uid != stored {
        let resource = format!("{}/scale", kind.plural);
        let kind = crate::kinds::Kind { plural: resource.into(), ..(**kind).clone() };
        let detail = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        );
        return Err(Failure::conflict(&kind, name, &detail));
    }
    let versions = versions(requested);
    // A scale without a version writes the object at any.
    if !meta_text(&versions, "resourceVersion").is_empty() {
        update::check_version(kind, old, &versions)?;
    }
    Ok(())
}

/// Returns only the members that name the expected version.
fn versions(scale: &Fields) -> Fields {
    let version = meta_text(scale, "resourceVersion");
    match json!({"metadata": {"resourceVersion": version}}) {
        Value::Object(versions) => versions,
        _ => Fields::new(),
    }
}
