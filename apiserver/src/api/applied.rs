//! Server-side apply: PATCH with `application/apply-patch+yaml`.

use homeostat_schema::{Applied, ApplyError, Conflicts};
use serde_json::{Value, json};

use super::commit::{Replacement, commit};
use super::conversion::Converter;
use super::create::{admit, check_namespace, mutate};
use super::creation::{New, create_object};
use super::managers::{field_manager, target_of};
use super::patched::check_identity;
use super::renderer::Renderer;
use crate::admission::field_manager::FieldManager;
use crate::admission::meta_text;
use crate::admission::owners::{Ownership, object_text, type_text};
use crate::admission::target::Target;
use crate::admission::update::{self, Change};
use crate::core::Core;
use crate::fields::Fields;
use crate::go_json::{kind_of, whole_numbers};
use crate::kinds::Kind;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::options::{ApplyOptions, Validation};
use crate::status::{Failure, Result};
use crate::types::{may_repeat_members, repeated_keys, warnings_of, wrap_integers, yaml_value};

/// A configuration and the manager that applies it.
struct Apply<'a> {
    config: Fields,
    manager: FieldManager,
    options: ApplyOptions,
    kind: &'a Kind,
}

/// Carries out an apply: creates the object, or merges the configuration into it.
pub(super) fn apply(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    let options = call.params.apply_options()?;
    let served = &call.target.served;
    let (renderer, form) = Renderer::of_write(core, call);
    let config = configuration(call, options.write.validation)?;
    let apply = Apply { config, manager: field_manager(core, call), options, kind: &served.kind };
    let dry_run = options.write.dry_run;
    let target = target_of(call);
    let key = served.kind.key(call.namespace(), name);
    let converter = Converter::of(call);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            let of_status = target == Target::Status && served.kind.create_on_update;
            if target != Target::Object && !of_status {
                return Err(Failure::not_found(&served.kind, name));
            }
            match create(core, call, name, &apply)? {
                Some(reply) => return Ok(reply),
                None => continue,
            }
        };
        let old = converter.fields(core, &stored)?;
        let mut live = Fields::clone(&old);
        served.kind.rename_from_storage(&mut live);
        live.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
        let Applied { object, owners, .. } = apply.run(Some(&live))?;
        let mut new = object.unwrap_or(live);
        apply.set_defaults(&mut new);
        served.kind.rename_for_storage(&mut new);
        check_identity(&old, &new, name)?;
        update::check_version(&served.kind, &old, &new)?;
        (served.home.record_time)(&mut new, &old, &apply.manager.now);
        let owners = &Ownership::Known(owners);
        let change =
            Replacement { change: Change { old: &old, new, target, owners }, dry_run, call };
        if let Some(answer) = commit(core, &renderer, &key, &stored, change)? {
            return form.map(|()| Reply::ok(answer));
        }
    }
}

fn create(core: &Core, call: &ApiCall, name: &str, apply: &Apply<'_>) -> Result<Option<Reply>> {
    let Applied { object, owners, .. } = apply.run(None)?;
    let mut object = object.unwrap_or_default();
    apply.set_defaults(&mut object);
    let uid = meta_text(&object, "uid");
    if !uid.is_empty() {
        let detail = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was \
             found"
        );
        return Err(Failure::conflict(apply.kind, name, &detail));
    }
    let place = json!({"namespace": call.namespace()});
    check_identity(&Fields::from_iter([("metadata".to_owned(), place)]), &object, name)?;
    apply.kind.rename_for_storage(&mut object);
    check_namespace(core, call, &object)?;
    admit(core, call, &mut object)?;
    let dry_run = apply.options.write.dry_run;
    let owners = mutate(core, call, &mut object, (Ownership::Known(owners), dry_run))?;
    let new = New { owners, dry_run, name: name.to_owned(), is_upsert: true };
    create_object(core, call, &object, &new)
}

// === impl Apply ===

impl Apply<'_> {
    /// Fills in the defaults of a custom object. Its nulls stay, and must be valid.
    fn set_defaults(&self, object: &mut Fields) {
        if let Some(definition) = &self.kind.definition {
            definition.set_defaults(object);
        }
    }

    fn run(&self, live: Option<&Fields>) -> Result<Applied> {
        check_configuration(&self.config, &self.kind.api_version(), &self.kind.kind)?;
        let applied = self.manager.apply(self.kind, live, &self.config, self.options.force);
        let mut applied = applied.map_err(|error| failure(&error, live, &self.config))?;
        if let (Some(known), Some(new)) = (self.kind.known_type(), &mut applied.object) {
            wrap_integers(known, new);
        }
        if let Some(wrong) = applied.object.as_ref().and_then(|new| self.kind.wrong_member(new)) {
            let known = type_text(&self.kind.api_version(), &self.kind.kind);
            return Err(unconvertible(&self.config, &known, &wrong.restored));
        }
        Ok(applied)
    }
}

/// Returns the failure of an apply whose result does not fit the type `known`.
pub(super) fn unconvertible(config: &Fields, known: &str, why: &str) -> Failure {
    let of = object_text(config);
    Failure::internal(format!(
        "failed to convert new object ({of}) to proper version: unable to convert unstructured \
         object to {known}: {why}"
    ))
}

/// Checks that a configuration is of the wanted type, and leaves the owners to the server.
pub(super) fn check_configuration(config: &Fields, api_version: &str, kind: &str) -> Result<()> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != api_version || text("kind") != kind {
        let found = type_text(text("apiVersion"), text("kind"));
        return Err(Failure::bad_request(format!("invalid object type: {found}")));
    }
    let owners = config.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if owners.is_some_and(|owners| !owners.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// Returns the reply for an apply that fails.
pub(super) fn failure(error: &ApplyError, live: Option<&Fields>, config: &Fields) -> Failure {
    let of = |object: Option<&Fields>| object.map(object_text).unwrap_or_default();
    match error {
        ApplyError::Conflicts(conflicts) => conflict(conflicts),
        ApplyError::Config(errors) => {
            let of = of(Some(config));
            Failure::internal(format!("failed to create typed patch object ({of}): {errors}"))
        }
        ApplyError::Live(errors) => {
            let of = of(live);
            Failure::internal(format!("failed to create typed live object ({of}): {errors}"))
        }
        ApplyError::Merge(_) | ApplyError::Version(_) => Failure::internal(error.to_string()),
    }
}

/// Parses the body, which is JSON or YAML, and reports its duplicate keys.
pub(super) fn configuration(call: &ApiCall, validation: Validation) -> Result<Fields> {
    let config = parse_configuration(&call.body)?;
    if validation == Validation::Ignore || !may_repeat_members(&call.body) {
        return Ok(config);
    }
    let Some(repeats) = repeated_keys(&call.body) else { return Ok(config) };
    if validation == Validation::Strict {
        let detail = format!("error converting YAML to JSON: {repeats}");
        return Err(Failure::bad_request(format!("error strict decoding patch: {detail}")));
    }
    call.warnings.extend(warnings_of(repeats));
    Ok(config)
}

fn parse_configuration(body: &[u8]) -> Result<Fields> {
    let decoded = match serde_json::from_slice(body) {
        Ok(value) => Ok(value),
        Err(_) => yaml_value(body),
    };
    let detail = match decoded {
        Ok(Value::Object(mut config)) => {
            config.values_mut().for_each(whole_numbers);
            return Ok(config);
        }
        Ok(Value::Null) => return Ok(Fields::new()),
        Ok(other) => format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            kind_of(&other)
        ),
        Err(error) => format!("error converting YAML to JSON: yaml: {error}"),
    };
    Err(Failure::bad_request(format!("error decoding patch: {detail}")))
}

fn conflict(conflicts: &Conflicts) -> Failure {
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|conflict| {
            json!({
                "reason": "FieldManagerConflict",
                "message": conflict.message(),
                "field": conflict.field(),
            })
        })
        .collect();
    let failure = Failure::new(409, "Conflict", conflicts.to_string());
    failure.with_details(json!({"causes": causes}))
}
