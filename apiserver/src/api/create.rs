//! Creates: check the namespace, admit the object, choose its name, and store it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::addresses::Reserved;
use super::managers::field_manager;
use super::quota::{self, Charged};
use super::renderer::Renderer;
use super::warnings::warnings_of;
use super::write::Write;
use super::{
    addresses, escalation, guards, limits, parameters, policies, roles, server_objects,
    service_accounts, size, webhooks,
};
use crate::admission::create::{self, SystemMetadata};
use crate::admission::owners::Ownership;
use crate::admission::{meta_text, metadata};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Admission, AdmitError, Allocator, Served, admin_access};
use crate::object::Encoded;
use crate::plugin::{AdmissionPlugin, At};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{Failure, Result};
use crate::webhooks::Drawn;

/// The number of generated names that are tried, as upstream, before the client must retry.
const NAME_ATTEMPTS: usize = 8;

/// The circumstances of a create.
pub(super) struct New {
    pub(super) owners: Ownership,
    pub(super) dry_run: bool,
    /// The name in the request; empty if the server generates one.
    pub(super) name: String,
    /// True for an update or a patch of an absent object: its user needs permission to create, too.
    pub(super) is_upsert: bool,
}

impl New {
    /// Returns the version that the client gave to the object. The storage does not see that of an
    /// upsert.
    fn version(&self, object: &Fields) -> Option<u64> {
        create::given_version(object).filter(|_| self.dry_run || !self.is_upsert)
    }
}

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
    let name = meta_text(&object, "name").to_owned();
    admit(core, call, &mut object)?;
    let owners = mutate(core, call, &mut object, (owners, options.dry_run))?;
    let new = New { owners, dry_run: options.dry_run, name, is_upsert: false };
    let created = create_object(core, call, &object, &new)?;
    Ok(created.expect("only an upsert starts again"))
}

/// Applies the admission of webhooks that may change a new object. Returns the object's owners.
pub(super) fn mutate(
    core: &Core,
    call: &ApiCall,
    object: &mut Fields,
    owners: (Ownership, bool),
) -> Result<Ownership> {
    let again = |object: &mut Fields| admit(core, call, object);
    webhooks::mutate_new(core, call, object, owners, &again)
}

/// Creates an object. Returns `None` if this is an upsert, and another request has created the
/// object in the meantime: the caller starts again with that one.
pub(super) fn create_object(
    core: &Core,
    call: &ApiCall,
    object: &Fields,
    new: &New,
) -> Result<Option<Reply>> {
    let New { owners, dry_run, name: asked, is_upsert } = new;
    let dry_run = *dry_run;
    let served = &call.target.served;
    let (renderer, form) = Renderer::of_write(core, call);
    check_definition(core, served, object)?;
    escalation::check(core, call, object, None)?;
    let home = &served.home;
    let generated = meta_text(object, "name").is_empty();
    let vacancy = Vacancy { served, renderer: &renderer, dry_run, version: new.version(object) };
    let mut name = String::new();
    // Admission comes before the name is known to be free, and once.
    let mut is_charged = false;
    for attempt in 0..NAME_ATTEMPTS {
        // Held until the object is stored: no other write allocates in between.
        let allocations = core.allocations(served);
        let allocations = allocations.as_deref();
        let Drawn { uid, suffix } = draw(core, call, attempt);
        let system = SystemMetadata {
            now: call.conversation.time(core.clock.now()),
            uid,
            suffix,
            owners: owners.clone(),
            author: Arc::clone(&call.user),
            allocator: allocations.map(|allocations| Allocator { allocations, dry_run }),
        };
        let mut new = create::prepare(
            served.rules(),
            &served.kind,
            call.namespace(),
            object.clone(),
            &system,
        )?;
        meta_text(&new, "name").clone_into(&mut name);
        parameters::check(core, call, &new, None)?;
        if *is_upsert {
            roles::check_as(core, &call.user, &call.target.info, "create")?;
        }
        let shown = if asked.is_empty() { &name } else { asked };
        check(core, call, &new, (shown, dry_run))?;
        webhooks::prune(served, &mut new);
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
            return form.map(|()| Some(Reply::Json { code: 201, body }));
        }
        // A webhook may have changed the name.
        if *is_upsert && call.target.info.name.as_ref() == Some(&name) {
            return Ok(None);
        }
        if !generated {
            return Err(taken(core, served, object, (&key, &name)));
        }
    }
    Err(Failure::generated_name_taken(&served.kind, &name, false))
}

/// Returns the refusal of a name that is taken. One with a base is refused as if it were generated.
fn taken(core: &Core, served: &Served, object: &Fields, (key, name): (&str, &str)) -> Failure {
    let known = core.get(served.resource, key);
    let terminating = known.is_some_and(|known| known.selectable.terminating);
    if meta_text(object, "generateName").is_empty() {
        return Failure::already_exists(&served.kind, name, terminating);
    }
    Failure::generated_name_taken(&served.kind, name, terminating)
}

/// Draws the random values of a new object, which stay the same when a webhook stops the create.
fn draw(core: &Core, call: &ApiCall, attempt: usize) -> Drawn {
    let draw = || Drawn { uid: core.chance.uid(), suffix: core.chance.name_suffix() };
    if core.webhooks().is_some() { call.conversation.drawn(attempt, draw) } else { draw() }
}

/// Applies the admission that checks a complete object.
fn check(core: &Core, call: &ApiCall, new: &Fields, named: (&str, bool)) -> Result<()> {
    let served = &call.target.served;
    call.warnings.extend(warnings_of(served, new, None));
    limits::check(core, served, new)?;
    service_accounts::check(core, served, new)?;
    guards::check(core, call, Write { new, old: None, name: named.0 })?;
    policies::check_create(core, call, new, named)
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
    if kinds.runs(AdmissionPlugin::NamespaceAutoProvision)
        && !call.params.write_options("CreateOptions")?.dry_run
    {
        let missing = json!({"metadata": {"name": namespace}});
        let name = meta_text(object, "name");
        server_objects::try_store(core, &namespaces, &missing)
            .map_err(|failure| Failure::forbidden(kind, name, &failure.message))?;
    }
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
    service_accounts::complete(core, &call.target.served, call.namespace(), object)?;
    home.admissions.iter().try_for_each(|admission| {
        if admission.after_additions {
            home.add(At::Create, object, None);
        }
        admit_with(core, call, admission, object)
    })
}

/// Applies the admission of one plugin, which depends on the objects of another kind.
fn admit_with(
    core: &Core,
    call: &ApiCall,
    admission: &Admission,
    object: &mut Fields,
) -> Result<()> {
    let others = || core.kinds().find(admission.group, "v1", admission.plural);
    let find = |name: &str| core.get(others()?.resource, name).map(|stored| stored.fields());
    let all = || {
        let Some(others) = others() else { return Vec::new() };
        let objects = core.read(|storage| storage.objects(others.resource).clone());
        let made = objects.iter().filter(|(name, _)| !name.starts_with(admission.built_in));
        made.map(|(_, stored)| stored.fields()).collect()
    };
    (admission.apply)(object, &find, &all).map_err(|refusal| {
        let detail = match refusal {
            AdmitError::Forbidden(detail) => detail,
            AdmitError::Unreadable(detail) => return Failure::internal(detail),
        };
        let name = match meta_text(object, "name") {
            "" => meta_text(object, "generateName"),
            name => name,
        };
        Failure::forbidden(&call.target.served.kind, name, &detail)
    })
}
