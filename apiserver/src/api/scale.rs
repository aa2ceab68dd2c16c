//! `/scale`: the number of replicas, in the form that every kind with replicas shares.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::patched::Patch;
use super::read;
use super::view::View;
use super::write::{Replacement, commit};
use crate::admission::meta_text;
use crate::admission::update::{self, Target};
use crate::core::Core;
use crate::http::decode::Wanted;
use crate::http::options::Validation;
use crate::http::{Answer, Call};
use crate::kinds::Scale;
use crate::object::Fields;
use crate::patch::PatchKind;
use crate::status::{Failure, Result};
use crate::types::{Expected, Type, Types};

const API_VERSION: &str = "autoscaling/v1";
const KIND: &str = "Scale";

pub(super) async fn serve(
    core: &Arc<Core>,
    call: &Call,
    method: &Method,
    name: &str,
) -> Result<Answer> {
    let Some(scale) = call.target.served.kind.scale else {
        return Err(Failure::not_found(&call.target.served.kind, name));
    };
    match *method {
        Method::GET => {
            let served = &call.target.served;
            if let Some(revision) = read::parse_version(call.params.get("resourceVersion"))? {
                core.reach(revision, &call.sight).await?;
            }
            let key = served.kind.key(call.namespace(), name);
            let Some(stored) = core.get_in_sight(call, &key) else {
                return Err(Failure::not_found(&served.kind, name));
            };
            Ok(Answer::value(&Value::Object(scale.read(&stored.fields()))))
        }
        Method::PUT | Method::PATCH => write(core, call, &scale, name),
        _ => {
            let why = "the server does not allow this method on the requested resource";
            let mut failure = Failure::new(405, "MethodNotAllowed", why);
            failure.details = Some(json!({}));
            Err(failure)
        }
    }
}

fn write(core: &Core, call: &Call, scale: &Scale, name: &str) -> Result<Answer> {
    let is_put = call.method == Method::PUT;
    let options = if is_put { "UpdateOptions" } else { "PatchOptions" };
    let options = call.params.write_options(options)?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let key = served.kind.key(call.namespace(), name);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = stored.fields();
        let asked = if is_put {
            replaced(call, name, options.validation)?
        } else {
            patched(call, scale.read(&old), options.validation)?
        };
        check(call, &old, &asked, name)?;
        let mut new = old.clone();
        scale.write(&mut new, &asked);
        let change = Replacement { old: &old, new, target: Target::Object, dry_run };
        if let Some(bytes) =
            commit(core, &View::of_whole_objects(core, call), &key, &stored, change)?
        {
            let object: Fields = serde_json::from_slice(&bytes).map_err(|error| {
                Failure::internal(format!("the object cannot be read back: {error}"))
            })?;
            return Ok(Answer::value(&Value::Object(scale.read(&object))));
        }
    }
}

/// The scale that a PUT brings.
fn replaced(call: &Call, name: &str, validation: Validation) -> Result<Fields> {
    let expected = known().map_or(Expected::Any, Expected::Kind);
    let wanted = Wanted { kind: KIND, api_version: API_VERSION, expected };
    let scale = call.any_object(&wanted, validation)?;
    let own = meta_text(&scale, "name");
    if !own.is_empty() && own != name {
        let message =
            format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(Failure::bad_request(message));
    }
    Ok(scale)
}

fn patched(call: &Call, scale: Fields, validation: Validation) -> Result<Fields> {
    let Some(format) = PatchKind::from_content_type(call.content_type()) else {
        return Err(Failure::unknown_patch());
    };
    let (api_version, kind, known) = (API_VERSION, KIND, known());
    let patch = Patch { call, format, validation, api_version, kind, known };
    patch.apply(scale, |_| None)
}

/// The members of a scale.
fn known() -> Option<&'static Type> {
    Types::all().named("autoscaling.Scale")
}

fn check(call: &Call, old: &Fields, asked: &Fields, name: &str) -> Result<()> {
    let kind = &call.target.served.kind;
    let (uid, stored) = (meta_text(asked, "uid"), meta_text(old, "uid"));
    if !uid.is_empty() && uid != stored {
        let resource = format!("{}/scale", kind.plural);
        let kind = crate::kinds::Kind { plural: resource.into(), ..(**kind).clone() };
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        );
        return Err(Failure::conflict(&kind, name, &why));
    }
    update::check_version(kind, old, &versions(asked), false)?;
    match Scale::check(asked) {
        None => Ok(()),
        Some(cause) => Err(Failure::invalid_as("autoscaling", KIND, name, &[cause])),
    }
}

/// Only what says which version is meant.
fn versions(scale: &Fields) -> Fields {
    let version = meta_text(scale, "resourceVersion");
    match json!({"metadata": {"resourceVersion": version}}) {
        Value::Object(versions) => versions,
        _ => Fields::new(),
    }
}
