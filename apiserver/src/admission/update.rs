//! Updating: PUT and PATCH, on the object and on its status.

use serde_json::{Value, json};

use super::{
    bump_generation, drop_empty, finalizers, is_terminating, meta_text, metadata, metadata_mut,
};
use crate::go_json::{Whole, whole};
use crate::kinds::{Generation, Kind, Status, read_path};
use crate::object::Fields;
use crate::status::{Cause, Failure, Result};

/// What of the object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Object,
    Status,
    /// The list that holds a namespace back.
    Finalize,
    /// One member, which nothing else writes.
    Part(&'static str),
    /// By the server itself, on behalf of a subresource: nothing is kept.
    Whole,
}

/// What to do with the result.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// What is stored says the same already.
    Unchanged,
    Store(Fields),
    /// The last finalizer of a terminating object is gone.
    Delete(Fields),
}

/// Checks that a PUT which names the object by its uid does not make another: it must not, though the kind allows it
/// to make one.
pub(crate) fn check_may_create(
    kind: &Kind,
    namespace: &str,
    name: &str,
    new: &Fields,
) -> Result<()> {
    let uid = meta_text(new, "uid");
    if uid.is_empty() { Ok(()) } else { Err(another_uid(kind, namespace, name, uid, "")) }
}

fn another_uid(kind: &Kind, namespace: &str, name: &str, uid: &str, stored: &str) -> Failure {
    let key = kind.storage_key(namespace, name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {stored}"
    );
    Failure::conflict(kind, name, &why)
}

/// Checks the versions that a PUT or a PATCH carries: a client that read something older must not win.
pub(crate) fn check_version(kind: &Kind, old: &Fields, new: &Fields, is_put: bool) -> Result<()> {
    let name = meta_text(old, "name");
    let (uid, stored) = (meta_text(new, "uid"), meta_text(old, "uid"));
    if is_put && !uid.is_empty() && uid != stored {
        return Err(another_uid(kind, meta_text(old, "namespace"), name, uid, stored));
    }
    let version = meta_text(new, "resourceVersion");
    if !version.is_empty()
        && let Err(why) = whole::<u64>(version, Whole::Uint)
    {
        return Err(Failure::internal(why));
    }
    if version.is_empty() {
        if is_put && !kind.unconditional_update {
            let cause = Cause::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            return Err(Failure::invalid_as(&kind.group, &kind.plural, name, &[cause]));
        }
        return Ok(());
    }
    if version == meta_text(old, "resourceVersion") {
        Ok(())
    } else {
        Err(Failure::modified(kind, name))
    }
}

/// Completes and checks the new state of an object.
///
/// `served` is the kind that the client knows it as: it says what must hold of the object.
pub(crate) fn prepare(
    kind: &Kind,
    served: &Kind,
    old: &Fields,
    mut new: Fields,
    target: Target,
) -> Result<Outcome> {
    // What follows from a member follows from what the client says, though that is not kept.
    (kind.derive)(&mut new);
    keep_what_is_not_written(kind, old, &mut new, target);
    keep_system_metadata(old, &mut new);
    kind.complete(&mut new);
    (kind.inherits)(&mut new, old);
    for key in ["kind", "apiVersion"] {
        // The server says what an object is.
        new.insert(key.to_owned(), old.get(key).cloned().unwrap_or_default());
    }
    if new == *old {
        return Ok(Outcome::Unchanged);
    }
    if target == Target::Whole {
        // The server's own change is no wish of a client, and obeys none of the rules for those.
        return Ok(Outcome::Store(new));
    }
    if matches!(target, Target::Object | Target::Part(_)) && is_another_generation(kind, old, &new)
    {
        bump_generation(&mut new);
    }
    let mut causes = Vec::new();
    metadata::check(kind, &new, &mut causes);
    metadata::check_update(kind, &new, old, &mut causes);
    // A part that has a path of its own is what the object's own may not change.
    let before = if matches!(target, Target::Part(_)) { None } else { Some(old) };
    served.check(&new, before, &mut causes);
    if !causes.is_empty() {
        return Err(Failure::invalid(kind, meta_text(old, "name"), &causes));
    }
    if is_finished(kind, old, &new) { Ok(Outcome::Delete(new)) } else { Ok(Outcome::Store(new)) }
}

/// A write to the object leaves the status alone, a write to the status leaves the rest alone.
fn keep_what_is_not_written(kind: &Kind, old: &Fields, new: &mut Fields, target: Target) {
    match (target, kind.status) {
        (Target::Whole, _) | (Target::Object | Target::Status, Status::None) => {}
        (Target::Object, Status::Subresource { .. }) => {
            keep(old, new, "status");
            if let Some(path) = kind.finalize {
                keep(old, new, path);
            }
        }
        (Target::Status, Status::Subresource { kept, .. }) => {
            if kept == ["*"] {
                let status = new.remove("status");
                let version = metadata_mut(new).remove("resourceVersion");
                new.clone_from(old);
                set_or_remove(new, "status", status);
                if let Some(version) = version {
                    metadata_mut(new).insert("resourceVersion".to_owned(), version);
                }
            }
            for path in kept.iter().filter(|path| **path != "*") {
                keep(old, new, path);
            }
        }
        (Target::Finalize, _) => keep(old, new, "status"),
        (Target::Part(path), _) => {
            let wanted = read_path(new, path).cloned();
            let version = metadata_mut(new).remove("resourceVersion");
            new.clone_from(old);
            set_path(new, path, wanted);
            set_or_remove(metadata_mut(new), "resourceVersion", version);
        }
    }
}

fn keep(old: &Fields, new: &mut Fields, path: &str) {
    set_path(new, path, read_path(old, path).cloned());
}

fn set_path(object: &mut Fields, path: &str, value: Option<Value>) {
    let Some((first, rest)) = path.split_once('.') else {
        set_or_remove(object, path, value);
        return;
    };
    if value.is_none() && !object.contains_key(first) {
        return;
    }
    let inner = object.entry(first).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        set_path(inner, rest, value);
    }
}

fn set_or_remove(object: &mut Fields, key: &str, value: Option<Value>) {
    match value {
        Some(value) => object.insert(key.to_owned(), value),
        None => object.remove(key),
    };
}

/// An update says nothing about these; what it says about the first two is checked later.
fn keep_system_metadata(old: &Fields, new: &mut Fields) {
    let old_metadata = old.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let metadata = metadata_mut(new);
    drop_empty(metadata);
    for key in ["managedFields", "selfLink"] {
        metadata.remove(key);
    }
    for key in ["uid", "name", "namespace"] {
        if let Some(value) = old_metadata.get(key) {
            metadata.entry(key).or_insert_with(|| value.clone());
        }
    }
    for key in ["creationTimestamp", "generation", "resourceVersion"] {
        set_or_remove(metadata, key, old_metadata.get(key).cloned());
    }
    if let Some(value) = old_metadata.get("deletionTimestamp") {
        metadata.insert("deletionTimestamp".to_owned(), value.clone());
        set_or_remove(
            metadata,
            "deletionGracePeriodSeconds",
            old_metadata.get("deletionGracePeriodSeconds").cloned(),
        );
    } else {
        metadata.remove("deletionGracePeriodSeconds");
    }
}

fn is_another_generation(kind: &Kind, old: &Fields, new: &Fields) -> bool {
    match kind.generation {
        Generation::None => false,
        Generation::Of(paths) => {
            paths.iter().any(|path| read_path(old, path) != read_path(new, path))
        }
        Generation::Content => {
            let content = |object: &Fields| {
                let mut object = object.clone();
                object.remove("metadata");
                if kind.has_status() {
                    object.remove("status");
                }
                object
            };
            content(old) != content(new)
        }
    }
}

/// Whether nothing holds a terminating object back any more.
fn is_finished(kind: &Kind, old: &Fields, new: &Fields) -> bool {
    let grace = old
        .get("metadata")
        .and_then(|m| m.get("deletionGracePeriodSeconds"))
        .and_then(Value::as_i64);
    is_terminating(old)
        && finalizers(new).is_empty()
        && grace.unwrap_or(0) == 0
        && !is_held(kind, new)
}

/// Whether the list that `/finalize` empties still has something in it.
pub(super) fn is_held(kind: &Kind, object: &Fields) -> bool {
    let list = kind.finalize.and_then(|path| read_path(object, path)).and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
}
