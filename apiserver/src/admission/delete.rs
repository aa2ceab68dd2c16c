//! Deleting: preconditions, grace, finalizers.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::is_held;
use super::{bump_generation, finalizers, is_terminating, meta_text, metadata_mut};
use crate::clock::rfc3339;
use crate::http::Call;
use crate::http::options::check_dry_run;
use crate::kinds::{Dependents, Kind};
use crate::object::Fields;
use crate::status::{Cause, Failure, Result};

/// What a delete asks for, from its body or its query.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: Vec<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Outcome {
    Delete,
    /// It is marked, as every object of a kind with grace is, and then goes at once.
    MarkAndDelete(Fields),
    /// The object stays for now, marked.
    Store(Fields),
    /// It is on its way already, and this delete adds nothing.
    Pending,
}

/// What becomes of the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    /// The finalizers stay as they are.
    Unsaid,
    Background,
    /// This finalizer asks a garbage collector for it.
    With(&'static str),
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

// === impl DeleteOptions ===

impl DeleteOptions {
    pub(crate) fn check(&self) -> Result<()> {
        let (path, mut causes) = ("propagationPolicy", Vec::new());
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid(path, &json!(policy), why));
            }
            if !matches!(policy, "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::unsupported(path, &json!(policy), &supported));
            }
        }
        let values: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        check_dry_run(&values, &mut causes);
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid_options("DeleteOptions", &causes))
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Warns a client of what it did not say.
    pub(crate) fn warn(&self, kind: &Kind, call: &Call) {
        if let Some(text) = kind.unsaid_policy.filter(|_| self.propagation() == Propagation::Unsaid)
        {
            call.warnings.add(text);
        }
    }

    fn propagation(&self) -> Propagation {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Propagation::With(FOREGROUND),
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::With(ORPHAN),
            (Some(_), _) | (None, Some(false)) => Propagation::Background,
            (None, None) => Propagation::Unsaid,
        }
    }
}

/// Checks that the object is the one that the client means.
pub(crate) fn check_preconditions(
    kind: &Kind,
    object: &Fields,
    options: &DeleteOptions,
) -> Result<()> {
    let Some(wanted) = &options.preconditions else { return Ok(()) };
    let name = meta_text(object, "name");
    let stored = meta_text(object, "uid");
    if let Some(uid) = wanted.uid.as_deref().filter(|uid| *uid != stored) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({stored}). The object might have \
             been deleted and then recreated"
        );
        return Err(Failure::delete_conflict(kind, name, &why));
    }
    let stored = meta_text(object, "resourceVersion");
    if let Some(version) = wanted.resource_version.as_deref().filter(|version| *version != stored) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({stored}). The object might have been modified"
        );
        return Err(Failure::delete_conflict(kind, name, &why));
    }
    Ok(())
}

/// Decides what a delete does to the object.
pub(crate) fn prepare(
    kind: &Kind,
    old: &Fields,
    options: &DeleteOptions,
    now: Timestamp,
) -> Outcome {
    let mut new = old.clone();
    propagate(kind, &mut new, options);
    let grace = kind.grace.map_or(0, |grace| grace(old, options.grace_period_seconds));
    let goes_now = if is_terminating(old) {
        shorten(&mut new, old, options.grace_period_seconds.map(|_| grace))
    } else {
        mark(&mut new, now, grace);
        (kind.on_mark)(&mut new);
        grace == 0
    };
    if goes_now && finalizers(&new).is_empty() && !is_held(kind, &new) {
        let marks = kind.grace.is_some() && new != *old;
        return if marks { Outcome::MarkAndDelete(new) } else { Outcome::Delete };
    }
    if new == *old { Outcome::Pending } else { Outcome::Store(new) }
}

/// Marks the object for the first time.
fn mark(object: &mut Fields, now: Timestamp, grace: i64) {
    let at = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(rfc3339(at)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    bump_generation(object);
}

/// A later delete may only shorten the grace. Returns whether it is over.
fn shorten(object: &mut Fields, old: &Fields, asked: Option<i64>) -> bool {
    let metadata = old.get("metadata");
    let period = metadata
        .and_then(|m| m.get("deletionGracePeriodSeconds"))
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if period == 0 {
        return true;
    }
    let Some(asked) = asked.filter(|asked| *asked < period) else { return false };
    if let Ok(at) = meta_text(old, "deletionTimestamp").parse::<Timestamp>() {
        let sooner = at.saturating_sub(SignedDuration::from_secs(period - asked)).unwrap_or(at);
        metadata_mut(object).insert("deletionTimestamp".to_owned(), json!(rfc3339(sooner)));
    }
    metadata_mut(object).insert("deletionGracePeriodSeconds".to_owned(), json!(asked));
    asked == 0
}

fn propagate(kind: &Kind, object: &mut Fields, options: &DeleteOptions) {
    let wanted = match options.propagation() {
        _ if kind.dependents == Dependents::None => return,
        Propagation::Unsaid
            if kind.dependents == Dependents::Orphaned
                && !finalizers(object).contains(&FOREGROUND) =>
        {
            Some(ORPHAN.to_owned())
        }
        Propagation::Unsaid => return,
        Propagation::Background => None,
        Propagation::With(finalizer) => Some(finalizer.to_owned()),
    };
    let known = finalizers(object).into_iter().filter(|one| *one != FOREGROUND && *one != ORPHAN);
    let list: Vec<String> = known.map(str::to_owned).chain(wanted).collect();
    let metadata = metadata_mut(object);
    if list.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(list));
    }
}
