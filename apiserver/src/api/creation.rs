//! The creation of an object that is admitted: choose its name, check it, and store it.

use std::sync::Arc;

use bytes::Bytes;

use super::addresses::Reserved;
use super::conversion::Converter;
use super::managers::target_of;
use super::quota::{self, Charged};
use super::renderer::Renderer;
use super::warnings::warnings_of;
use super::write::Write;
use super::{
    addresses, escalation, guards, limits, parameters, policies, roles, service_accounts, webhooks,
};
use crate::admission::create::{self, SystemMetadata};
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::{meta_text, update};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Allocations, Allocator, Served};
use crate::object::Encoded;
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

/// The creation of one object, which may take several attempts.
struct Creation<'a> {
    core: &'a Core,
    call: &'a ApiCall,
    object: &'a Fields,
    new: &'a New,
    renderer: &'a Renderer,
    converter: Converter,
}

/// Creates an object. Returns `None` if this is an upsert, and another request has created the
/// object in the meantime: the caller starts again with that one.
pub(super) fn create_object(
    core: &Core,
    call: &ApiCall,
    object: &Fields,
    new: &New,
) -> Result<Option<Reply>> {
    let served = &call.target.served;
    let (renderer, form) = Renderer::of_write(core, call);
    if new.is_upsert {
        update::stated_version(object)?;
    }
    check_definition(core, served, object)?;
    escalation::check(core, call, object, None)?;
    let converter = Converter::of(call);
    let creation = Creation { core, call, object, new, renderer: &renderer, converter };
    let generated = meta_text(object, "name").is_empty();
    let mut name = String::new();
    for attempt in 0..NAME_ATTEMPTS {
        // Held until the object is stored: no other write allocates in between.
        let allocations = if creation.is_whole() { core.allocations(served) } else { None };
        let prepared = creation.prepare(attempt, allocations.as_deref())?;
        meta_text(&prepared, "name").clone_into(&mut name);
        // Admission comes before the name is known to be free, and once.
        if attempt == 0 {
            // A charge counts, so the webhook's answers come before it.
            creation.converter.foresee(&prepared)?;
            if creation.is_whole() {
                quota::charge(core, &Charged::creation(served, &prepared, new.dry_run))?;
            }
        }
        if let Some(body) = creation.store(&name, prepared)? {
            return form.map(|()| Some(Reply::Json { code: 201, body }));
        }
        // A webhook may have changed the name.
        if new.is_upsert && call.target.info.name.as_ref() == Some(&name) {
            return Ok(None);
        }
        if !generated {
            let key = served.home.key(call.namespace(), &name);
            return Err(taken(core, served, object, (&key, &name)));
        }
    }
    Err(Failure::generated_name_taken(&served.kind, &name, false))
}

// === impl New ===

impl New {
    /// Returns the version that the client gave to the object. The storage does not see that of an
    /// upsert.
    fn version(&self, object: &Fields) -> Option<u64> {
        create::given_version(object).filter(|_| self.dry_run || !self.is_upsert)
    }
}

// === impl Creation ===

impl Creation<'_> {
    /// Returns false if the client writes the status alone: such a create allocates nothing, and no
    /// quota counts it.
    fn is_whole(&self) -> bool {
        target_of(self.call) == Target::Object
    }

    /// Returns the complete object, which has passed the admission that looks at it.
    fn prepare(&self, attempt: usize, allocations: Option<&Allocations>) -> Result<Fields> {
        let Self { core, call, object, new, .. } = *self;
        let (served, dry_run) = (&call.target.served, new.dry_run);
        let Drawn { uid, suffix } = self.draw(attempt);
        let system = SystemMetadata {
            now: call.conversation.time(core.clock.now()),
            uid,
            suffix,
            owners: &new.owners,
            author: Arc::clone(&call.user),
            allocator: allocations.map(|allocations| Allocator { allocations, dry_run }),
        };
        call.warnings.extend((served.home.warn_sent)(object));
        let (rules, namespace) = (served.rules(), call.namespace());
        let mut prepared =
            create::prepare(rules, &served.kind, namespace, object.clone(), &system)?;
        parameters::check(core, call, &prepared, None)?;
        if new.is_upsert {
            roles::check_as(core, &call.user, &call.target.info, "create")?;
        }
        let asked = new.name.as_str();
        let shown = if asked.is_empty() { meta_text(&prepared, "name") } else { asked };
        check(core, call, &prepared, (shown, dry_run))?;
        webhooks::prune(served, &mut prepared);
        Ok(prepared)
    }

    /// Stores an object with its addresses. Returns the body of the reply, or `None` if the name is
    /// taken.
    fn store(&self, name: &str, prepared: Fields) -> Result<Option<Bytes>> {
        let Self { core, call, new: New { dry_run, .. }, converter, .. } = self;
        let served = &call.target.served;
        let key = served.home.key(call.namespace(), name);
        // A dry run does not reach the storage, which finds out whether a name is taken. A create
        // that is refused for it makes no object of an address.
        let must_look = *dry_run || served.home.allocate.is_some();
        let is_free = !must_look || core.get(served.resource, &key).is_none();
        let is_reserved = is_free && !dry_run && self.is_whole();
        let reserved = is_reserved.then(|| addresses::reserve(core, served, None, Some(&prepared)));
        let encoded = if *dry_run {
            converter.encode(prepared)?
        } else {
            converter.encode_sized(call, prepared)?
        };
        let body = self.fill(&key, encoded, is_free)?;
        if body.is_some() {
            reserved.into_iter().for_each(Reserved::keep);
        }
        Ok(body)
    }

    /// Stores an object under this key, unless this is a dry run. Returns the body of the reply, or
    /// `None` if the key is taken. `is_free` is false if it is known to be.
    fn fill(&self, key: &str, encoded: Encoded, is_free: bool) -> Result<Option<Bytes>> {
        let version = self.new.version(self.object);
        let shown = self.converter.shown(&encoded)?;
        if self.new.dry_run {
            // A dry run does not reach the storage, which refuses or sets a version.
            let encoded = shown.encoded(&encoded)?;
            return Ok(is_free.then(|| match version {
                Some(version) => self.renderer.object(&encoded.at(version)),
                None => self.renderer.dry_run_object(encoded),
            }));
        }
        if version.is_some_and(|version| version != 0) {
            let detail = "resourceVersion should not be set on objects to be created";
            return Err(Failure::internal(detail));
        }
        if !is_free {
            return Ok(None);
        }
        let stored = self.core.put(self.call.target.served.resource, key, None, encoded).ok();
        stored.map(|stored| Ok(self.renderer.object(shown.stored(stored)?.as_ref()))).transpose()
    }

    /// Draws the random values of a new object, which stay the same when a webhook stops the
    /// create.
    fn draw(&self, attempt: usize) -> Drawn {
        let Self { core, call, .. } = *self;
        let draw = || Drawn { uid: core.chance.uid(), suffix: core.chance.name_suffix() };
        let may_stop = core.webhooks().is_some() || self.converter.calls_webhook();
        if may_stop { call.conversation.drawn(attempt, draw) } else { draw() }
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

/// Returns the refusal of a name that is taken. One with a base is refused as if it were generated.
fn taken(core: &Core, served: &Served, object: &Fields, (key, name): (&str, &str)) -> Failure {
    let known = core.get(served.resource, key);
    let terminating = known.is_some_and(|known| known.selectable.terminating);
    if meta_text(object, "generateName").is_empty() {
        return Failure::already_exists(&served.kind, name, terminating);
    }
    Failure::generated_name_taken(&served.kind, name, terminating)
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
