//! The end of each write to a stored object: complete and check the new state, and store it.

use std::sync::Arc;

use bytes::Bytes;

use super::access::Requester;
use super::conversion::Converter;
use super::quota::{self, Charged};
use super::renderer::Renderer;
use super::warnings::warnings_of;
use super::write::Write;
use super::{addresses, escalation, guards, limits, parameters, policies, resize, webhooks};
use crate::admission::target::Target;
use crate::admission::update::{self, Change};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Allocator, Issue, Served};
use crate::metrics::Counter;
use crate::object::Stored;
use crate::request::ApiCall;
use crate::status::Result;

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
    let Replacement { mut change, dry_run, call } = replacement;
    let (old, target) = (change.old, change.target);
    limits::complete_update(core, served, old, target, &mut change.new);
    let admitted = webhooks::mutate_change(core, (call, target, dry_run), &mut change)?;
    if let Some(owners) = &admitted {
        change.owners = owners;
    }
    escalation::check(core, call, &change.new, Some(old))?;
    let author = Requester { core, call };
    // Held until the object is stored: no other write allocates in between.
    let allocations = core.allocations(served);
    let allocator = allocations.as_deref().map(|allocations| Allocator { allocations, dry_run });
    let (rules, kind) = (served.rules(), &served.kind);
    let (mut outcome, warnings) = update::prepare(rules, kind, change, Some(&author), allocator)?;
    let update = Update { core, call, served, old, target, dry_run };
    update.admit(&outcome, warnings)?;
    let converter = Converter::of(call);
    if let update::Outcome::Store(new) = &mut outcome {
        if admitted.is_some() {
            webhooks::prune(served, new);
        }
        // A charge counts, so the webhook's answers come before it.
        converter.foresee(new)?;
        update.charge(new)?;
    }
    let place = Place { renderer, converter: &converter, key, stored, dry_run };
    match outcome {
        update::Outcome::Unchanged => place.renew(core),
        update::Outcome::Store(new) => place.store(core, call, old, new),
        update::Outcome::Delete(new) => place.clear(core, old, new),
    }
}

/// A write to a stored object.
struct Update<'a> {
    core: &'a Core,
    call: &'a ApiCall,
    served: &'a Served,
    old: &'a Fields,
    target: Target,
    dry_run: bool,
}

/// The place of a stored object. The methods return the body of the reply; `None` if the object
/// changed in the meantime.
struct Place<'a> {
    renderer: &'a Renderer,
    converter: &'a Converter,
    key: &'a str,
    stored: &'a Arc<Stored>,
    dry_run: bool,
}

// === impl Update ===

impl Update<'_> {
    /// Applies the admission that checks a complete object. `warnings` are those of its rules.
    fn admit(&self, outcome: &update::Outcome, warnings: Vec<String>) -> Result<()> {
        let Self { core, call, served, old, target, dry_run } = *self;
        let new = match outcome {
            update::Outcome::Unchanged => old,
            update::Outcome::Store(new) | update::Outcome::Delete(new) => new,
        };
        parameters::check(core, call, new, Some(old))?;
        match target {
            Target::Object => call.warnings.extend((served.home.warn)(new, Some(old))),
            Target::Status => call.warnings.extend((served.home.warn_status)(new)),
            _ => {}
        }
        if !matches!(outcome, update::Outcome::Unchanged) {
            call.warnings.extend(warnings_of(served, new, Some(old)).into_iter().chain(warnings));
        }
        limits::check_update(core, served, old, target, new)?;
        let name = call.target.info.name.as_deref().unwrap_or_default();
        guards::check(core, call, Write { new, old: Some(old), name })?;
        if let update::Outcome::Store(new) = outcome
            && target == Target::Resize
        {
            resize::check_node(core, served, old, new)?;
        }
        policies::check_update(core, (call, target, dry_run), old, new)
    }

    /// Charges the new state to the quotas of its namespace.
    fn charge(&self, new: &Fields) -> Result<()> {
        let Some(subresource) = charged_as(self.target) else { return Ok(()) };
        let creation = Charged::creation(self.served, new, self.dry_run);
        quota::charge(self.core, &Charged { subresource, old: Some(self.old), ..creation })
    }
}

// === impl Place ===

impl Place<'_> {
    /// Keeps the object. A write that changes nothing still stores it in the newest form.
    fn renew(&self, core: &Core) -> Result<Option<Bytes>> {
        let Self { renderer, converter, key, stored, dry_run } = *self;
        let served = renderer.served();
        let present = converter.show(stored)?;
        if dry_run || !served.has_other_form(stored) {
            return Ok(Some(renderer.object(&present)));
        }
        let encoded = converter.encode(served.read(&present))?;
        if encoded.at(stored.revision).bytes() == stored.bytes() {
            return Ok(Some(renderer.object(&present)));
        }
        let shown = converter.shown(&encoded)?;
        let committed = core.put(served.resource, key, Some(stored.revision), encoded).ok();
        committed.map(|stored| Ok(renderer.object(shown.stored(stored)?.as_ref()))).transpose()
    }

    /// Replaces the object.
    fn store(
        &self,
        core: &Core,
        call: &ApiCall,
        old: &Fields,
        new: Fields,
    ) -> Result<Option<Bytes>> {
        let Self { renderer, converter, key, stored, dry_run } = *self;
        let served = renderer.served();
        if dry_run {
            let encoded = converter.encode(new)?;
            let shown = converter.shown(&encoded)?;
            return Ok(Some(renderer.object(&shown.encoded(&encoded)?.at(stored.revision))));
        }
        let reserved = addresses::reserve(core, served, Some(old), Some(&new));
        let issue = (served.home.issue)(old, &new);
        let encoded = converter.encode_sized(call, new)?;
        let shown = converter.shown(&encoded)?;
        let committed = core.put(served.resource, key, Some(stored.revision), encoded).ok();
        let answer = committed.map(|stored| {
            reserved.keep();
            count(core, issue);
            Ok(renderer.object(shown.stored(stored)?.as_ref()))
        });
        answer.transpose()
    }

    /// Deletes the object. The reply is its last state, at the revision before that of the
    /// deletion.
    fn clear(&self, core: &Core, old: &Fields, last: Fields) -> Result<Option<Bytes>> {
        let Self { renderer, converter, key, stored, dry_run } = *self;
        let served = renderer.served();
        converter.check_answered()?;
        // The last state is not read from the storage.
        let last = if converter.calls_webhook() {
            served.kind.encode(last)
        } else {
            converter.encode(last)?
        };
        if !dry_run {
            let reserved = addresses::reserve(core, served, Some(old), None);
            if core.delete(served.resource, key, stored.revision).is_err() {
                return Ok(None);
            }
            reserved.keep();
        }
        Ok(Some(renderer.object(&last.at(stored.revision))))
    }
}

/// Counts a certificate that was issued.
fn count(core: &Core, issue: Option<Issue>) {
    let Some(Issue { signer, is_honored }) = issue else { return };
    let signer = [signer];
    core.metrics.count(Counter::RequestedDurations, &signer);
    if is_honored {
        core.metrics.count(Counter::HonoredDurations, &signer);
    }
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
