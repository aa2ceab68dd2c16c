//! Writes: read what is stored, decide purely, commit if nobody was faster, else again.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::view::View;
use super::{list, patched};
use crate::admission::create::{self, Birth};
use crate::admission::delete::{self, DeleteOptions};
use crate::admission::meta_text;
use crate::admission::update::{self, Target};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::http::decode::Wanted;
use crate::http::{Answer, Call};
use crate::kinds::{ALWAYS_THERE, Effect, Kind, Served, Trouble};
use crate::object::{Encoded, Fields, Stored};
use crate::status::{self, Failure, Result};
use crate::types::{Expected, Types};

/// So many generated names are tried before the client is told to come back.
const NAME_ATTEMPTS: usize = 8;

// === create ===

pub(super) fn create(core: &Core, call: &Call) -> Result<Answer> {
    let options = call.params.write_options("CreateOptions")?;
    let mut object = call.object(&core.kinds, options.validation)?;
    check_namespace(core, call, &object)?;
    admit(core, call, &mut object)?;
    create_object(core, call, &object, options.dry_run)
}

fn create_object(core: &Core, call: &Call, object: &Fields, dry_run: bool) -> Result<Answer> {
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let home = &served.home;
    let generated = meta_text(object, "name").is_empty();
    let mut name = String::new();
    for _ in 0..NAME_ATTEMPTS {
        let birth = Birth {
            now: core.clock.now(),
            uid: core.chance.uid(),
            suffix: core.chance.name_suffix(),
        };
        let new = create::prepare(home, &served.kind, call.namespace(), object.clone(), &birth)?;
        meta_text(&new, "name").clone_into(&mut name);
        let key = home.key(call.namespace(), &name);
        let encoded = Encoded::new(home, new);
        if dry_run {
            if core.get(served.resource, &key).is_none() {
                return Ok(Answer::Json { code: 201, body: view.tried(encoded) });
            }
        } else if let Ok(stored) = core.put(served.resource, &key, None, encoded) {
            return Ok(Answer::Json { code: 201, body: view.object(&stored) });
        }
        if !generated {
            let terminating =
                core.get(served.resource, &key).is_some_and(|known| known.selectable.terminating);
            return Err(Failure::already_exists(&served.kind, &name, terminating));
        }
    }
    Err(Failure::generated_name_taken(&served.kind, &name))
}

/// Nothing is created in a namespace that is not there, or on its way out.
fn check_namespace(core: &Core, call: &Call, object: &Fields) -> Result<()> {
    let kind = &call.target.served.kind;
    if !kind.namespaced {
        return Ok(());
    }
    let namespaces = core.kinds.namespaces();
    let namespace = call.namespace();
    match core.get(namespaces.resource, namespace) {
        None => Err(Failure::not_found(&namespaces.kind, namespace)),
        Some(stored) if stored.selectable.terminating => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut failure = Failure::forbidden(kind, meta_text(object, "name"), &why);
            if let Some(details) = &mut failure.details {
                let message = format!("namespace {namespace} is being terminated");
                details["causes"] = json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
            }
            Err(failure)
        }
        Some(_) => Ok(()),
    }
}

/// Fills in, or refuses, what depends on other objects.
fn admit(core: &Core, call: &Call, object: &mut Fields) -> Result<()> {
    let home = &call.target.served.home;
    call.warnings.extend((home.warn)(object));
    let Some(admission) = home.admission else { return Ok(()) };
    let Some(others) = core.kinds.find(admission.group, "v1", admission.plural) else {
        return Ok(());
    };
    let find = |name: &str| core.get(others.resource, name).map(|stored| stored.fields());
    let all = || {
        let objects = core.read(|storage| storage.objects(others.resource).clone());
        let made = objects.iter().filter(|(name, _)| !name.starts_with(admission.built_in));
        made.map(|(_, stored)| stored.fields()).collect()
    };
    (admission.apply)(object, &find, &all).map_err(|why| {
        let name = match meta_text(object, "name") {
            "" => meta_text(object, "generateName"),
            name => name,
        };
        Failure::forbidden(&call.target.served.kind, name, &why)
    })
}

// === update ===

pub(super) fn update(core: &Core, call: &Call, name: &str) -> Result<Answer> {
    let options = call.params.write_options("UpdateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let body = call.object(&core.kinds, options.validation)?;
    let target = target_of(call);
    call.warnings.extend((served.home.warn)(&body));
    let key = served.kind.key(call.namespace(), name);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            if served.kind.create_on_update && target == Target::Object {
                check_namespace(core, call, &body)?;
                update::check_may_create(&served.kind, call.namespace(), name, &body)?;
                return create_object(core, call, &body, dry_run);
            }
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = stored.fields();
        update::check_version(&served.kind, &old, &body, true)?;
        let change = Replacement { old: &old, new: body.clone(), target, dry_run };
        if let Some(answer) = commit(core, &view, &key, &stored, change)? {
            return Ok(Answer::ok(answer));
        }
    }
}

pub(super) fn patch(core: &Core, call: &Call, name: &str) -> Result<Answer> {
    let options = call.params.write_options("PatchOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let format = (patched::format(call)?, options.validation);
    let target = target_of(call);
    let key = served.kind.key(call.namespace(), name);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = stored.fields();
        let mut seen = old.clone();
        served.kind.rename_from_storage(&mut seen);
        seen.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
        let mut new = patched::apply(&core.kinds, call, format, seen)?;
        served.kind.rename_for_storage(&mut new);
        check_identity(&old, &new, name)?;
        update::check_version(&served.kind, &old, &new, false)?;
        let change = Replacement { old: &old, new, target, dry_run };
        if let Some(answer) = commit(core, &view, &key, &stored, change)? {
            return Ok(Answer::ok(answer));
        }
    }
}

/// POST on a subresource: the server changes the object on the client's behalf.
pub(super) fn act(core: &Core, call: &Call, name: &str, action: &str) -> Result<Answer> {
    let options = call.params.write_options("CreateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let Some(action) = served.kind.action(action) else {
        return Err(Failure::method_not_allowed(&served.kind, "create"));
    };
    let known = Types::all().named(action.body_type).map_or(Expected::Any, Expected::Kind);
    let wanted = Wanted { kind: action.body, api_version: action.api_version, expected: known };
    let body = call.any_object(&wanted, options.validation)?;
    if meta_text(&body, "name") != name {
        let why = format!("name in URL does not match name in {} object", action.body);
        return Err(Failure::bad_request(why));
    }
    let key = served.kind.key(call.namespace(), name);
    let Effect::Change(change_object) = action.effect else {
        let options = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        let mut options: DeleteOptions = serde_json::from_value(options)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        if dry_run && options.dry_run.is_empty() {
            options.dry_run.push("All".to_owned());
        }
        delete_object(core, served, &key, name, &options)?;
        return Ok(acted());
    };
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = stored.fields();
        let mut new = old.clone();
        let now = rfc3339(core.clock.now());
        change_object(&mut new, &body, &now).map_err(|trouble| match trouble {
            Trouble::Invalid(why) => Failure::internal(why),
            Trouble::Conflict(why) => {
                let resource = format!("{}/{}", served.kind.plural, action.name);
                let kind = Kind { plural: resource.into(), ..(*served.kind).clone() };
                Failure::conflict(&kind, name, &why)
            }
        })?;
        let change = Replacement { old: &old, new, target: Target::Whole, dry_run };
        if commit(core, &view, &key, &stored, change)?.is_some() {
            return Ok(acted());
        }
    }
}

fn acted() -> Answer {
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Answer::Json { code: 201, body: done.to_string().into() }
}

/// A new state for what is stored.
pub(super) struct Replacement<'a> {
    pub(super) old: &'a Fields,
    pub(super) new: Fields,
    pub(super) target: Target,
    pub(super) dry_run: bool,
}

/// Commits a new state, unless somebody was faster (then there is no answer).
pub(super) fn commit(
    core: &Core,
    view: &View,
    key: &str,
    stored: &Arc<Stored>,
    change: Replacement<'_>,
) -> Result<Option<Bytes>> {
    let (home, resource) = (&view.served().home, view.served().resource);
    let outcome =
        update::prepare(home, &view.served().kind, change.old, change.new, change.target)?;
    Ok(match outcome {
        update::Outcome::Unchanged => Some(view.object(stored)),
        update::Outcome::Store(new) | update::Outcome::Delete(new) if change.dry_run => {
            Some(view.object(&Encoded::new(home, new).at(stored.revision)))
        }
        update::Outcome::Store(new) => {
            let committed = core.put(resource, key, Some(stored.revision), Encoded::new(home, new));
            committed.ok().map(|stored| view.object(&stored))
        }
        // The answer is the last state, at the revision before the deletion's.
        update::Outcome::Delete(new) => {
            let committed = core.delete(resource, key, stored.revision);
            committed.ok().map(|_| view.object(&Encoded::new(home, new).at(stored.revision)))
        }
    })
}

fn target_of(call: &Call) -> Target {
    match call.target.subresource.as_deref() {
        Some("status") => Target::Status,
        Some("finalize") => Target::Finalize,
        Some(name) => call.target.served.kind.part(name).map_or(Target::Object, Target::Part),
        None => Target::Object,
    }
}

/// A patch may not make another object of it.
fn check_identity(old: &Fields, new: &Fields, name: &str) -> Result<()> {
    let own = meta_text(new, "name");
    if own.is_empty() {
        let message = format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        );
        return Err(Failure::bad_request(message));
    }
    if own != name {
        let message =
            format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(Failure::bad_request(message));
    }
    let namespace = meta_text(new, "namespace");
    if !namespace.is_empty() && namespace != meta_text(old, "namespace") {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

// === delete ===

pub(super) fn delete(core: &Core, call: &Call, name: &str) -> Result<Answer> {
    let options = call.delete_options()?;
    let served = &call.target.served;
    if served.kind.protected.contains(&name) {
        let resource = served.kind.singular();
        let why = format!("this {resource} may not be deleted");
        return Err(Failure::forbidden(&served.kind, name, &why));
    }
    let view = View::of_object(core, call)?;
    options.warn(&served.home, call);
    let key = served.kind.key(call.namespace(), name);
    let deleted = delete_object(core, served, &key, name, &options)?;
    Ok(deleted.answer(&view, name, &options))
}

/// What a delete did.
enum Deleted {
    Gone(Arc<Stored>),
    Waiting(Arc<Stored>),
}

impl Deleted {
    fn answer(&self, view: &View, name: &str, options: &DeleteOptions) -> Answer {
        match self {
            Self::Gone(last) if view.served().kind.returns_deleted => Answer::ok(view.object(last)),
            Self::Gone(last) => {
                Answer::value(&status::deleted(&view.served().kind, name, &last.selectable.uid))
            }
            Self::Waiting(stored) => {
                let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
                Answer::Json { code, body: view.object(stored) }
            }
        }
    }
}

fn delete_object(
    core: &Core,
    served: &Served,
    key: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted> {
    let dry_run = options.is_dry_run();
    let resource = served.resource;
    loop {
        let Some(stored) = core.get(resource, key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = stored.fields();
        delete::check_preconditions(&served.kind, &old, options)?;
        let revision = stored.revision;
        match delete::prepare(&served.home, &old, options, core.clock.now()) {
            delete::Outcome::Pending => return Ok(Deleted::Waiting(stored)),
            delete::Outcome::Delete if dry_run => return Ok(Deleted::Gone(stored)),
            delete::Outcome::Delete => {
                if let Ok(last) = core.delete(resource, key, revision) {
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) if !dry_run => {
                // Two writes, and two events. When the second loses a race, the next round sees the mark.
                let marked =
                    core.put(resource, key, Some(revision), Encoded::new(&served.home, new));
                let Ok(marked) = marked else { continue };
                if let Ok(last) = core.delete(resource, key, marked.revision) {
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) => {
                let marked = Encoded::new(&served.home, new).at(revision);
                return Ok(Deleted::Gone(Arc::new(marked)));
            }
            delete::Outcome::Store(new) => {
                let encoded = Encoded::new(&served.home, new);
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

pub(super) async fn delete_collection(core: &Core, call: &Call) -> Result<Answer> {
    let served = &call.target.served;
    if !served.kind.deletes_collections {
        return Err(Failure::method_not_allowed(&served.kind, "deletecollection"));
    }
    let view = View::of_list(core, call)?;
    let options = call.delete_options()?;
    let (metadata, items) = list::some(core, call).await?;
    for item in &items {
        let selectable = &item.selectable;
        let key = served.kind.key(&selectable.namespace, &selectable.name);
        match delete_object(core, served, &key, &selectable.name, &options) {
            Ok(_) => {}
            // Somebody else deleted it: that is what was asked for.
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Answer::ok(view.list(&metadata, items.iter())))
}

// === at the start ===

/// Stores what is always there.
pub(crate) fn populate(core: &Core) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        store(core, &core.kinds.namespaces(), &json!({"metadata": {"name": name}}));
    }
    for (group, plural, object) in ALWAYS_THERE {
        let served = core.kinds.find(group, "v1", plural).expect("the table has the kind");
        store(core, &served, &serde_json::from_str(object).expect("the text is JSON"));
    }
}

fn store(core: &Core, served: &Served, object: &Value) {
    let object = object.as_object().cloned().unwrap_or_default();
    let birth = Birth { now: core.clock.now(), uid: core.chance.uid(), suffix: String::new() };
    let new = create::prepare(&served.home, &served.kind, "", object, &birth)
        .expect("the object is valid");
    let name = meta_text(&new, "name").to_owned();
    let encoded = Encoded::new(&served.home, new);
    core.put(served.resource, &name, None, encoded).expect("nobody else has the server yet");
}
