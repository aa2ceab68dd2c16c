//! Writes: read the stored object, decide in pure code, commit if the object is unchanged, else
//! repeat.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::access::{self, Requester};
use super::addresses::Reserved;
use super::eviction::Eviction;
use super::quota::{self, Charged};
use super::renderer::Renderer;
use super::{addresses, applied, escalation, limits, list, patched, resize, size, token_request};
use crate::admission::create::{self, SystemMetadata};
use crate::admission::delete::{self, DeleteOptions};
use crate::admission::owners::{FieldManager, Ownership};
use crate::admission::update::{self, Change, Target};
use crate::admission::{finalizers, meta_text, metadata};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{
    Action, ActionError, Admission, Allocator, Effect, Kind, Relay, Served, admin_access,
};
use crate::object::{Encoded, Stored};
use crate::plugin::{AdmissionPlugin, At};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::decode::Wanted;
use crate::status::{self, Failure, Result};
use crate::types::{Expected, Types};

/// The number of generated names that are tried, as upstream, before the client must retry.
const NAME_ATTEMPTS: usize = 8;

// === create ===

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
    admit(core, call, &mut object)?;
    let new = New { owners, dry_run: options.dry_run, is_upsert: false };
    create_object(core, call, &object, &new)
}

/// The circumstances of a create.
pub(super) struct New {
    pub(super) owners: Ownership,
    pub(super) dry_run: bool,
    /// True for an update or a patch of an absent object: its user needs permission to create, too.
    pub(super) is_upsert: bool,
}

/// Returns the client as `managedFields` records it.
pub(super) fn field_manager(core: &Core, call: &ApiCall) -> FieldManager {
    FieldManager {
        name: call.field_manager(),
        subresource: call.target.info.subresource.clone().unwrap_or_default(),
        target: target_of(call),
        now: rfc3339(core.clock.now()),
    }
}

pub(super) fn create_object(
    core: &Core,
    call: &ApiCall,
    object: &Fields,
    new: &New,
) -> Result<Reply> {
    let New { owners, dry_run, is_upsert } = new;
    let dry_run = *dry_run;
    let served = &call.target.served;
    let renderer = Renderer::of_object(core, call)?;
    check_definition(core, served, object)?;
    escalation::check(core, call, object, None)?;
    let home = &served.home;
    let generated = meta_text(object, "name").is_empty();
    let vacancy =
        Vacancy { served, renderer: &renderer, dry_run, version: create::given_version(object) };
    let mut name = String::new();
    // Admission comes before the name is known to be free, and once.
    let mut is_charged = false;
    for _ in 0..NAME_ATTEMPTS {
        // Held until the object is stored: no other write allocates in between.
        let allocations = core.allocations(served);
        let allocations = allocations.as_deref();
        let system = SystemMetadata {
            now: core.clock.now(),
            uid: core.chance.uid(),
            suffix: core.chance.name_suffix(),
            owners: owners.clone(),
            author: Arc::clone(&call.user),
            allocator: allocations.map(|allocations| Allocator { allocations, dry_run }),
        };
        let new = create::prepare(
            served.rules(),
            &served.kind,
            call.namespace(),
            object.clone(),
            &system,
        )?;
        meta_text(&new, "name").clone_into(&mut name);
        if *is_upsert {
            access::check_as(core, &call.user, &call.target.info, "create")?;
        }
        let warnings = warnings_of(served, &new, None);
        limits::check(core, served, &new)?;
        if !is_charged {
            quota::charge(core, &Charged::creation(served, &new, dry_run))?;
            is_charged = true;
        }
        let key = home.key(call.namespace(), &name);
        // A dry run does not reach the storage, which finds out whether a name is taken. A create
        // that is refused for it makes no object of an address.
        let must_look = dry_run || home.allocate.is_some();
        let is_free = !must_look || core.get(served.resource, &key).is_none();
        let is_reserved = is_free && !dry_run;
        let reserved = is_reserved.then(|| addresses::reserve(core, served, None, Some(&new)));
        let encoded = if dry_run { served.encode(new) } else { size::encode(served, call, new)? };
        if let Some(body) = vacancy.fill(core, &key, encoded, is_free)? {
            reserved.into_iter().for_each(Reserved::keep);
            call.warnings.extend(warnings);
            return Ok(Reply::Json { code: 201, body });
        }
        if !generated {
            let terminating =
                core.get(served.resource, &key).is_some_and(|known| known.selectable.terminating);
            return Err(Failure::already_exists(&served.kind, &name, terminating));
        }
    }
    Err(Failure::generated_name_taken(&served.kind, &name))
}

/// The place of a new object.
struct Vacancy<'a> {
    served: &'a Served,
    renderer: &'a Renderer,
    dry_run: bool,
    /// The version that the client gave to the object.
    version: Option<u64>,
}

// === impl Vacancy ===

impl Vacancy<'_> {
    /// Stores an object under this key, unless this is a dry run. Returns the body of the reply, or
    /// `None` if the key is taken. `is_free` is false if it is known to be.
    fn fill(
        &self,
        core: &Core,
        key: &str,
        encoded: Encoded,
        is_free: bool,
    ) -> Result<Option<Bytes>> {
        if self.dry_run {
            // A dry run does not reach the storage, which refuses or sets a version.
            return Ok(is_free.then(|| match self.version {
                Some(version) => self.renderer.object(&encoded.at(version)),
                None => self.renderer.dry_run_object(&encoded),
            }));
        }
        if self.version.is_some_and(|version| version != 0) {
            let detail = "resourceVersion should not be set on objects to be created";
            return Err(Failure::internal(detail));
        }
        if !is_free {
            return Ok(None);
        }
        let stored = core.put(self.served.resource, key, None, encoded).ok();
        Ok(stored.map(|stored| self.renderer.object(&stored)))
    }
}

/// Returns the warnings for the client that writes an object.
fn warnings_of(served: &Served, new: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut warnings = if old.is_none() { (served.home.warn)(new, None) } else { Vec::new() };
    if served.kind.custom {
        let known = old.map(finalizers).unwrap_or_default();
        let mut added = finalizers(new);
        added.retain(|finalizer| !known.contains(finalizer));
        added.sort_unstable();
        warnings.extend(added.into_iter().filter_map(metadata::finalizer_warning));
    }
    warnings
}

/// Fails if the definition of the kind is being deleted.
fn check_definition(core: &Core, served: &Served, object: &Fields) -> Result<()> {
    let kind = &served.kind;
    if kind.definition.is_none() {
        return Ok(());
    }
    let name = format!("{}.{}", kind.plural, kind.group);
    let definition = core.get(core.kinds().definitions().resource, &name);
    if definition.is_some_and(|definition| definition.selectable.terminating) {
        let detail = "create not allowed while custom resource definition is terminating";
        return Err(Failure::forbidden(kind, meta_text(object, "name"), detail));
    }
    Ok(())
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
    home.admissions.iter().try_for_each(|admission| {
        if admission.after_additions {
            home.add(At::Create, object);
        }
        let Some(others) = core.kinds().find(admission.group, "v1", admission.plural) else {
            return Ok(());
        };
        admit_with(core, call, (admission, &others), object)
    })
}

/// Applies the admission of one plugin, which depends on the objects of another kind.
fn admit_with(
    core: &Core,
    call: &ApiCall,
    (admission, others): (&Admission, &Served),
    object: &mut Fields,
) -> Result<()> {
    let find = |name: &str| core.get(others.resource, name).map(|stored| stored.fields());
    let all = || {
        let objects = core.read(|storage| storage.objects(others.resource).clone());
        let made = objects.iter().filter(|(name, _)| !name.starts_with(admission.built_in));
        made.map(|(_, stored)| stored.fields()).collect()
    };
    (admission.apply)(object, &find, &all).map_err(|detail| {
        let name = match meta_text(object, "name") {
            "" => meta_text(object, "generateName"),
            name => name,
        };
        Failure::forbidden(&call.target.served.kind, name, &detail)
    })
}

// === update ===

pub(super) fn update(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    let options = call.params.write_options("UpdateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let renderer = Renderer::of_object(core, call)?;
    let target = target_of(call);
    let owners = &Ownership::Tracked(field_manager(core, call));
    let key = served.kind.key(call.namespace(), name);
    loop {
        // Decoded again after a conflict, which is rare: a copy would cost every request.
        let mut body = call.object(&core.kinds(), options.validation)?;
        call.warnings.extend(metadata::drop_repeated_owners(&mut body, ""));
        let Some(stored) = core.get(served.resource, &key) else {
            if served.kind.create_on_update && target == Target::Object {
                check_namespace(core, call, &body)?;
                update::check_may_create(&served.kind, call.namespace(), name, &body)?;
                let owners = Ownership::Tracked(field_manager(core, call));
                return create_object(core, call, &body, &New { owners, dry_run, is_upsert: true });
            }
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = core.fields(served, &stored);
        update::check_version(&served.kind, &old, &body, true)?;
        let change = Change { old: &old, new: body, target, owners };
        let change = Replacement { change, dry_run, call };
        if let Some(answer) = commit(core, &renderer, &key, &stored, change)? {
            return Ok(Reply::ok(answer));
        }
    }
}

pub(super) fn patch(core: &Core, call: &ApiCall, name: &str) -> Result<Reply> {
    if call.content_type() == applied::CONTENT_TYPE {
        return applied::apply(core, call, name);
    }
    let options = call.params.write_options("PatchOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let renderer = Renderer::of_object(core, call)?;
    let format = (patched::format(call)?, options.validation);
    let target = target_of(call);
    let owners = &Ownership::Tracked(field_manager(core, call));
    let key = served.kind.key(call.namespace(), name);
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = core.fields(served, &stored);
        let seen = || {
            let mut seen = Fields::clone(&old);
            patched::ready_owners(call, format.0, &mut seen);
            served.kind.rename_from_storage(&mut seen);
            seen.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
            seen
        };
        let mut new = patched::apply(&core.kinds(), call, format, &seen)?;
        let when = " after mutating admission happens";
        call.warnings.extend(metadata::drop_repeated_owners(&mut new, when));
        served.kind.rename_for_storage(&mut new);
        check_identity(&old, &new, name)?;
        update::check_version(&served.kind, &old, &new, false)?;
        let change =
            Replacement { change: Change { old: &old, new, target, owners }, dry_run, call };
        if let Some(answer) = commit(core, &renderer, &key, &stored, change)? {
            return Ok(Reply::ok(answer));
        }
    }
}

/// Carries out a POST on a subresource: the server changes the object on behalf of the client.
pub(super) fn post_subresource(
    core: &Core,
    call: &ApiCall,
    name: &str,
    action: &str,
) -> Result<Reply> {
    let options = call.params.write_options("CreateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let renderer = Renderer::of_object(core, call)?;
    let Some(action) = served.kind.action(action) else {
        return Err(Failure::method_not_allowed(&served.kind, "create"));
    };
    let expected = Types::all().named(action.body_type).map_or(Expected::Any, Expected::Kind);
    let Action { body: kind, api_version, older, .. } = *action;
    let wanted = Wanted { kind, api_version, older, expected };
    let body = call.any_object(&wanted, options.validation)?;
    let key = served.kind.key(call.namespace(), name);
    if let Effect::IssueToken = action.effect {
        let manager = field_manager(core, call);
        return token_request::issue(core, served, (&key, name), body, &manager);
    }
    if meta_text(&body, "name") != name {
        let detail = format!("name in URL does not match name in {} object", action.body);
        return Err(Failure::bad_request(detail));
    }
    let Effect::Change(change_object) = action.effect else {
        let options = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        let mut options: DeleteOptions = serde_json::from_value(options)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        if dry_run && options.dry_run.is_empty() {
            options.dry_run.push("All".to_owned());
        }
        return Eviction { core, served, key: &key, name, options }.carry_out();
    };
    loop {
        let Some(stored) = core.get(served.resource, &key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = core.fields(served, &stored);
        let mut new = Fields::clone(&old);
        let now = rfc3339(core.clock.now());
        change_object(&mut new, &body, &now).map_err(|error| match error {
            ActionError::Invalid(detail) => Failure::internal(detail),
            ActionError::Conflict(detail) => {
                let resource = format!("{}/{}", served.kind.plural, action.name);
                let kind = Kind { plural: resource.into(), ..(*served.kind).clone() };
                Failure::conflict(&kind, name, &detail)
            }
        })?;
        let (target, owners) = (Target::AllMembers, &Ownership::Kept);
        let change =
            Replacement { change: Change { old: &old, new, target, owners }, dry_run, call };
        if commit(core, &renderer, &key, &stored, change)?.is_some() {
            return Ok(action_done());
        }
    }
}

/// Carries out a create that is a POST to a subresource of the object that the body names.
pub(super) fn relay(core: &Core, call: &ApiCall, relay: Relay) -> Result<Reply> {
    let options = call.params.write_options("CreateOptions")?;
    let object = call.object(&core.kinds(), options.validation)?;
    let name = meta_text(&object, "name").to_owned();
    let Some(served) = core.kinds().find("", "v1", relay.plural) else {
        return Err(Failure::no_resource());
    };
    let call = call.to_subresource(served, &name, relay.action);
    post_subresource(core, &call, &name, relay.action)
}

/// Returns the reply to a completed POST on a subresource.
pub(super) fn action_done() -> Reply {
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": 201});
    Reply::Json { code: 201, body: done.to_string().into() }
}

/// A new state for a stored object.
pub(super) struct Replacement<'a> {
    pub(super) change: Change<'a>,
    pub(super) dry_run: bool,
    /// The request that asks for it.
    pub(super) call: &'a ApiCall,
}

/// Commits a new state; returns `None` if the object changed in the meantime.
pub(super) fn commit(
    core: &Core,
    renderer: &Renderer,
    key: &str,
    stored: &Arc<Stored>,
    replacement: Replacement<'_>,
) -> Result<Option<Bytes>> {
    let served = renderer.served();
    let resource = served.resource;
    let Replacement { mut change, dry_run, call } = replacement;
    let (old, target) = (change.old, change.target);
    limits::complete_update(core, served, old, target, &mut change.new);
    escalation::check(core, call, &change.new, Some(old))?;
    let author = Requester { core, call };
    // Held until the object is stored: no other write allocates in between.
    let allocations = core.allocations(served);
    let allocator = allocations.as_deref().map(|allocations| Allocator { allocations, dry_run });
    let (rules, kind) = (served.rules(), &served.kind);
    let (outcome, warnings) = update::prepare(rules, kind, change, Some(&author), allocator)?;
    let new = match &outcome {
        update::Outcome::Unchanged => old,
        update::Outcome::Store(new) | update::Outcome::Delete(new) => new,
    };
    if target == Target::Object {
        call.warnings.extend((served.home.warn)(new, Some(old)));
    }
    limits::check_update(core, served, old, target, new)?;
    if let (update::Outcome::Store(new), Target::Resize) = (&outcome, target) {
        resize::check_node(core, served, old, new)?;
    }
    if let (update::Outcome::Store(new), Some(subresource)) = (&outcome, charged_as(target)) {
        let creation = Charged::creation(served, new, dry_run);
        quota::charge(core, &Charged { subresource, old: Some(old), ..creation })?;
    }
    if let update::Outcome::Store(new) | update::Outcome::Delete(new) = &outcome {
        call.warnings.extend(warnings_of(served, new, Some(old)).into_iter().chain(warnings));
    }
    Ok(match outcome {
        update::Outcome::Unchanged if !dry_run && served.is_outdated(stored) => {
            // A write that changes nothing still stores the object in the newest form.
            let encoded = served.encode(served.read(stored));
            let committed = core.put(resource, key, Some(stored.revision), encoded);
            committed.ok().map(|stored| renderer.object(&stored))
        }
        update::Outcome::Unchanged => Some(renderer.object(stored)),
        update::Outcome::Store(new) | update::Outcome::Delete(new) if dry_run => {
            Some(renderer.object(&served.encode(new).at(stored.revision)))
        }
        update::Outcome::Store(new) => {
            let reserved = addresses::reserve(core, served, Some(old), Some(&new));
            let encoded = size::encode(served, call, new)?;
            let committed = core.put(resource, key, Some(stored.revision), encoded);
            committed.ok().map(|stored| {
                reserved.keep();
                renderer.object(&stored)
            })
        }
        // The reply is the last state, at the revision before that of the deletion.
        update::Outcome::Delete(new) => {
            let reserved = addresses::reserve(core, served, Some(old), None);
            let committed = core.delete(resource, key, stored.revision);
            committed.is_ok().then(|| reserved.keep());
            committed.ok().map(|_| renderer.object(&served.encode(new).at(stored.revision)))
        }
    })
}

/// Returns the subresource as quota admission knows it, or `None` if it charges no such write.
fn charged_as(target: Target) -> Option<&'static str> {
    match target {
        Target::Object => Some(""),
        Target::Status => Some("status"),
        Target::Resize => Some("resize"),
        Target::Part(name) => Some(name),
        Target::Finalize | Target::AllMembers => None,
    }
}

pub(super) fn target_of(call: &ApiCall) -> Target {
    match call.target.info.subresource.as_deref() {
        Some("status") => Target::Status,
        Some("finalize") => Target::Finalize,
        Some("resize") => Target::Resize,
        Some(name) => call.target.served.kind.part(name).map_or(Target::Object, Target::Part),
        None => Target::Object,
    }
}

/// Fails if a patch changes the identity of the object.
pub(super) fn check_identity(old: &Fields, new: &Fields, name: &str) -> Result<()> {
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
    check_same_namespace(meta_text(new, "namespace"), meta_text(old, "namespace"))
}

/// Fails if the client sent another namespace than that of the object.
pub(super) fn check_same_namespace(namespace: &str, expected: &str) -> Result<()> {
    // A cluster-scoped object has none, and loses the one that the client sent.
    if !namespace.is_empty() && !expected.is_empty() && namespace != expected {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

// === delete ===

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
    let deleted = delete_object(core, served, &key, name, &options)?;
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

pub(super) fn delete_object(
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
        let old = core.fields(served, &stored);
        delete::check_preconditions(&served.kind, &old, options)?;
        let revision = stored.revision;
        match delete::prepare(&served.home, &old, options, core.clock.now()) {
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
        match delete_object(core, served, &key, &selectable.name, &options) {
            Ok(_) => {}
            // A concurrent delete was faster: the object is gone, as requested.
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Reply::ok(renderer.list(&metadata, items.iter())))
}
