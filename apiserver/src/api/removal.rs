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
    let dry_run = options.is_dry_run();
    let served = converter.served();
    let resource = served.resource;
    loop {
        let Some(stored) = core.get(resource, key) else {
            return Err(Failure::not_found(&served.kind, name));
        };
        let old = converter.read_fields(core, &stored)?;
        delete::check_preconditions(&served.kind, &old, options)?;
        let revision = stored.revision;
        let outcome = delete::prepare(&served.home, &old, options, converter.time(core));
        // A graceful deletion that goes on already is not asked for again.
        let goes_on = matches!(outcome, delete::Outcome::Pending) && served.home.grace.is_some();
        if !goes_on {
            admit(&old)?;
        }
        match outcome {
            delete::Outcome::Pending => return Ok(Deleted::Waiting(converter.show(&stored)?)),
            delete::Outcome::Delete if dry_run => return Ok(Deleted::Gone(stored)),
            delete::Outcome::Delete => {
                if let Ok(last) = core.delete(resource, key, revision) {
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) if !dry_run => {
                // Two writes, and two events. If the second one conflicts, the next round sees the
                // mark.
                let marked = core.put(resource, key, Some(revision), converter.encode(new)?);
                let Ok(marked) = marked else { continue };
                if let Ok(last) = core.delete(resource, key, marked.revision) {
                    return Ok(Deleted::Gone(last));
                }
            }
            delete::Outcome::MarkAndDelete(new) => {
                let marked = converter.encode(new)?.at(revision);
                return Ok(Deleted::Gone(Arc::new(marked)));
            }
            delete::Outcome::Store(new) => {
                let encoded = converter.encode(new)?;
                let shown = converter.shown(&encoded)?;
                if dry_run {
                    let shown = shown.encoded(&encoded)?;
                    return Ok(Deleted::Waiting(Arc::new(shown.at(revision))));
                }
                if let Ok(stored) = core.put(resource, key, Some(revision), encoded) {
                    return Ok(Deleted::Waiting(shown.stored(stored)?));
                }
            }
        }
    }
}
