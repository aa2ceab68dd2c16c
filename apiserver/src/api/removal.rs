//! The removal of one object: at once, or once its finalizers are gone.

use std::sync::Arc;

use super::conversion::Converter;
use super::policies::Admit;
use crate::admission::delete::{self, DeleteOptions};
use crate::core::Core;
use crate::object::Stored;
use crate::status::{Failure, Result};

/// The result of a delete.
pub(super) enum Deleted {
    Gone(Arc<Stored>),
    Waiting(Arc<Stored>),
}

/// Removes an object that `admit` accepts. Objects that the server has made for it stay.
pub(super) fn remove(
    core: &Core,
    converter: &Converter,
    (key, name): (&str, &str),
    options: &DeleteOptions,
    admit: Admit<'_>,
) -> Result<Deleted> {
    let served = converter.served();
    loop {
        let Some(stored) = core.get(served.resource, key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = converter.read_fields(core, &stored)?;
        delete::check_preconditions(&served.kind, &old, options)?;
        let outcome = delete::prepare(&served.home, &old, options, converter.time(core));
        // A graceful deletion that goes on already is not asked for again.
        let goes_on = matches!(outcome, delete::Outcome::Pending) && served.home.grace.is_some();
        if !goes_on {
            admit(&old)?;
        }
        let done = if options.is_dry_run() {
            Some(rehearse(converter, stored, outcome)?)
        } else {
            carry_out(core, converter, (key, &stored), outcome)?
        };
        if let Some(deleted) = done {
            return Ok(deleted);
        }
    }
}

/// Returns the result of a delete that changes nothing.
fn rehearse(
    converter: &Converter,
    stored: Arc<Stored>,
    outcome: delete::Outcome,
) -> Result<Deleted> {
    let revision = stored.revision;
    Ok(match outcome {
        delete::Outcome::Pending => Deleted::Waiting(converter.show(&stored)?),
        delete::Outcome::Delete => Deleted::Gone(stored),
        delete::Outcome::MarkAndDelete(new) => {
            Deleted::Gone(Arc::new(converter.encode(new)?.at(revision)))
        }
        delete::Outcome::Store(new) => {
            let encoded = converter.encode(new)?;
            let shown = converter.shown(&encoded)?;
            Deleted::Waiting(Arc::new(shown.encoded(&encoded)?.at(revision)))
        }
    })
}

/// Carries out a delete. Returns `None` if another write was faster.
fn carry_out(
    core: &Core,
    converter: &Converter,
    (key, stored): (&str, &Arc<Stored>),
    outcome: delete::Outcome,
) -> Result<Option<Deleted>> {
    let (resource, revision) = (converter.served().resource, stored.revision);
    let gone = |last: std::result::Result<_, _>| last.ok().map(Deleted::Gone);
    Ok(match outcome {
        delete::Outcome::Pending => Some(Deleted::Waiting(converter.show(stored)?)),
        delete::Outcome::Delete => gone(core.delete(resource, key, revision)),
        delete::Outcome::MarkAndDelete(new) => {
            // Two writes, and two events. If the second one conflicts, the next round sees the
            // mark.
            let marked = core.put(resource, key, Some(revision), converter.encode(new)?);
            marked.ok().and_then(|marked| gone(core.delete(resource, key, marked.revision)))
        }
        delete::Outcome::Store(new) => {
            let encoded = converter.encode(new)?;
            let shown = converter.shown(&encoded)?;
            match core.put(resource, key, Some(revision), encoded) {
                Ok(stored) => Some(Deleted::Waiting(shown.stored(stored)?)),
                Err(_) => None,
            }
        }
    })
}
