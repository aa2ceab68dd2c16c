//! Deletes: preconditions, grace periods, finalizers.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::is_held;
use super::{bump_generation, check_dry_run, finalizers, is_terminating, meta_text, metadata_mut};
use crate::clock::rfc3339;
use crate::fields::Fields;
use crate::kinds::{Dependents, Kind};
use crate::status::{Cause, Failure, Result};

/// The options of a delete, from its body or its query.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: Vec<String>,
    /// True if only an object that the storage cannot decode is to be deleted.
    #[serde(rename = "ignoreStoreReadErrorWithClusterBreakingPotential")]
    pub(crate) ignores_read_errors: Option<bool>,
}

/// The option that ignores errors of the storage.
pub(crate) const IGNORE_READ_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// The effect of a delete.
#[derive(Debug)]
pub(crate) enum Outcome {
    Delete,
    /// Marks the object, as every object of a kind with grace, and then removes it at once.
    MarkAndDelete(Fields),
    /// Stores the marked object, which stays for now.
    Store(Fields),
    /// The object is already being deleted, and this delete adds nothing.
    Pending,
}

/// The treatment of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    /// The finalizers stay as they are.
    Unset,
    Background,
    /// This finalizer requests it from a garbage collector.
    With(&'static str),
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads the options from JSON, in which a null is no value.
    pub(crate) fn read(mut options: Fields) -> serde_json::Result<Self> {
        options.retain(|_, value| !value.is_null());
        serde_json::from_value(Value::Object(options))
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (path, mut causes) = ("propagationPolicy", Vec::new());
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid(path, &json!(policy), detail));
            }
            if !matches!(policy, "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::unsupported(path, &json!(policy), &supported));
            }
        }
        let values: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        check_dry_run(&values, &mut causes);
        self.check_unsafe(&mut causes);
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid_options("DeleteOptions", &causes))
        }
    }

    /// Checks that a delete of an unreadable object has no options that a readable one needs.
    fn check_unsafe(&self, causes: &mut Vec<Cause>) {
        if self.ignores_read_errors != Some(true) {
            return;
        }
        for (other, is_set) in [
            ("propagationPolicy", self.propagation_policy.is_some()),
            ("orphanDependents", self.orphan_dependents.is_some()),
            ("gracePeriodSeconds", self.grace_period_seconds.is_some()),
            ("preconditions", self.preconditions.is_some()),
        ] {
            if is_set {
                let detail = format!("cannot be set together with .{other}");
                causes.push(Cause::invalid(IGNORE_READ_ERRORS, &json!(true), &detail));
            }
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Returns the warning for a delete without a propagation policy.
    pub(crate) fn warning(&self, kind: &Kind) -> Option<&'static str> {
        kind.no_policy_warning.filter(|_| self.propagation() == Propagation::Unset)
    }

    fn propagation(&self) -> Propagation {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Propagation::With(FOREGROUND),
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::With(ORPHAN),
            (Some(_), _) | (None, Some(false)) => Propagation::Background,
            (None, None) => Propagation::Unset,
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
    if matches!(&*kind.kind, "Namespace" | "CustomResourceDefinition") && !kind.custom {
        // Their own check comes first.
        return check_exact(kind, object, wanted);
    }
    let name = meta_text(object, "name");
    let stored = meta_text(object, "uid");
    if let Some(uid) = wanted.uid.as_deref().filter(|uid| *uid != stored) {
        let detail = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({stored}). The \
             object might have been deleted and then recreated"
        );
        return Err(Failure::delete_conflict(kind, name, &detail));
    }
    let stored = meta_text(object, "resourceVersion");
    if let Some(version) = wanted.resource_version.as_deref().filter(|version| *version != stored) {
        let detail = format!(
            "the ResourceVersion in the precondition ({version}) does not match the \
             ResourceVersion in record ({stored}). The object might have been modified"
        );
        return Err(Failure::delete_conflict(kind, name, &detail));
    }
    Ok(())
}

fn check_exact(kind: &Kind, object: &Fields, wanted: &Preconditions) -> Result<()> {
    let members = [
        ("UID", "uid", &wanted.uid),
        ("ResourceVersion", "resourceVersion", &wanted.resource_version),
    ];
    for (shown, member, wanted) in members {
        let (Some(wanted), stored) = (wanted, meta_text(object, member)) else { continue };
        if wanted != stored {
            let failed = if kind.kind == "Namespace" {
                "Precondition failed"
            } else {
                "precondition failed"
            };
            let detail = format!(
                "{failed}: {shown} in precondition: {wanted}, {shown} in object meta: \
                 {stored}"
            );
            return Err(Failure::conflict(kind, meta_text(object, "name"), &detail));
        }
    }
    Ok(())
}

/// Decides the effect of a delete on the object.
pub(crate) fn prepare(
    kind: &Kind,
    old: &Fields,
    options: &DeleteOptions,
    now: Timestamp,
) -> Outcome {
    let mut new = old.clone();
    let grace = kind.grace.map_or(0, |grace| grace(old, options.grace_period_seconds));
    let requested = options.grace_period_seconds.map(|_| grace);
    if kind.grace.is_some() && is_pending(old, requested) {
        // The finalizers stay, too.
        return Outcome::Pending;
    }
    propagate(kind, &mut new, options);
    let goes_now = if is_terminating(old) {
        shorten(&mut new, old, requested, now)
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

/// Marks the object as deleted.
fn mark(object: &mut Fields, now: Timestamp, grace: i64) {
    let at = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(rfc3339(at)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    bump_generation(object);
}

fn grace_period(object: &Fields) -> i64 {
    let metadata = object.get("metadata");
    let period = metadata.and_then(|metadata| metadata.get("deletionGracePeriodSeconds"));
    period.and_then(Value::as_i64).unwrap_or(0)
}

/// Returns true if an earlier graceful delete is still going on, and this one does not shorten it.
fn is_pending(object: &Fields, requested: Option<i64>) -> bool {
    let period = grace_period(object);
    is_terminating(object) && period > 0 && requested.is_none_or(|requested| requested >= period)
}

/// Shortens the grace period; a later delete cannot extend it. Returns true if it is over.
fn shorten(object: &mut Fields, old: &Fields, requested: Option<i64>, now: Timestamp) -> bool {
    let period = grace_period(old);
    if period == 0 {
        return true;
    }
    let Some(mut requested) = requested.filter(|requested| *requested < period) else {
        return false;
    };
    if let Ok(at) = meta_text(old, "deletionTimestamp").parse::<Timestamp>() {
        let sooner = at.saturating_sub(SignedDuration::from_secs(period - requested)).unwrap_or(at);
        // A shorter period does not move the deletion into the past.
        if sooner < now && requested != 0 {
            requested = 1;
        }
        let sooner = sooner.max(now);
        metadata_mut(object).insert("deletionTimestamp".to_owned(), json!(rfc3339(sooner)));
    }
    metadata_mut(object).insert("deletionGracePeriodSeconds".to_owned(), json!(requested));
    requested == 0
}

fn propagate(kind: &Kind, object: &mut Fields, options: &DeleteOptions) {
    let wanted = match options.propagation() {
        _ if kind.dependents == Dependents::None => return,
        _ if kind.dependents == Dependents::CollectedLater && !is_terminating(object) => return,
        Propagation::Unset
            if kind.dependents == Dependents::Orphaned
                && !finalizers(object).contains(&FOREGROUND) =>
        {
            Some(ORPHAN.to_owned())
        }
        Propagation::Unset => return,
        Propagation::Background => None,
        Propagation::With(finalizer) => Some(finalizer.to_owned()),
    };
    let known = finalizers(object).into_iter().filter(|one| *one != FOREGROUND && *one != ORPHAN);
    let list: Vec<String> = known.map(str::to_owned).chain(wanted).collect();
    let set: BTreeSet<&str> = list.iter().map(String::as_str).collect();
    if set == finalizers(object).into_iter().collect() {
        // They stay in their order.
        return;
    }
    let metadata = metadata_mut(object);
    if list.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::built_in;

    fn pod_kind() -> Kind {
        built_in().into_iter().find(|kind| kind.kind == "Pod").unwrap()
    }

    fn terminating_pod() -> Fields {
        let pod = json!({
            "metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:30Z",
                "deletionGracePeriodSeconds": 30, "generation": 2},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
        });
        pod.as_object().unwrap().clone()
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn second_delete_of_a_terminating_pod_changes_nothing() {
        let options = DeleteOptions {
            propagation_policy: Some("Foreground".to_owned()),
            ..DeleteOptions::default()
        };
        let now = at("2026-01-01T00:00:10Z");
        let outcome = prepare(&pod_kind(), &terminating_pod(), &options, now);
        assert!(matches!(outcome, Outcome::Pending), "{outcome:?}");
    }

    #[test]
    fn delete_of_an_unreadable_object_has_no_other_options() {
        let check = |options: Value| {
            let options = DeleteOptions::read(options.as_object().unwrap().clone()).unwrap();
            options.check().err().map(|failure| failure.message).unwrap_or_default()
        };
        let known = json!({IGNORE_READ_ERRORS: true, "dryRun": ["All"]});
        assert_eq!(check(known), "");
        let ignored = json!({IGNORE_READ_ERRORS: false, "gracePeriodSeconds": 0});
        assert_eq!(check(ignored), "");
        let message =
            check(json!({IGNORE_READ_ERRORS: true, "gracePeriodSeconds": 0, "preconditions": {}}));
        let expected = ["gracePeriodSeconds", "preconditions"].map(|other| {
            format!(
                "{IGNORE_READ_ERRORS}: Invalid value: true: cannot be set together with .{other}"
            )
        });
        assert!(message.contains(&expected.join(", ")), "{message}");
    }

    #[test]
    fn shortened_grace_period_does_not_end_in_the_past() {
        let delete = |seconds, now| {
            let options =
                DeleteOptions { grace_period_seconds: Some(seconds), ..DeleteOptions::default() };
            match prepare(&pod_kind(), &terminating_pod(), &options, at(now)) {
                Outcome::Store(pod) => pod["metadata"].clone(),
                other => panic!("{other:?}"),
            }
        };
        let metadata = delete(20, "2026-01-01T00:00:10Z");
        assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:20Z");
        assert_eq!(metadata["deletionGracePeriodSeconds"], 20);
        let metadata = delete(5, "2026-01-01T00:00:10Z");
        assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:10Z");
        assert_eq!(metadata["deletionGracePeriodSeconds"], 1);
    }
}
