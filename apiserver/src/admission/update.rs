//! Updates: PUT and PATCH, on the object and on its subresources.

use serde_json::{Value, json};

use super::owners::{Ownership, keep_times, take_requested};
use super::target::Target;
use super::unwritten::{empty_lists, keep_system_metadata, restore_unwritten, set_path, set_paths};
use super::{bump_generation, finalizers, is_terminating, meta_text, metadata, metadata_mut};
use crate::fields::{Fields, are_equal, read_path, set_or_remove};
use crate::go_json::{GoInteger, parse_integer, whole_numbers};
use crate::kinds::{Allocator, Author, Generation, Kind, StatusWrite};
use crate::plugin::At;
use crate::status::{Cause, Failure, Result};

/// A new state for a stored object.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) old: &'a Fields,
    pub(crate) new: Fields,
    pub(crate) target: Target,
    pub(crate) owners: &'a Ownership,
}

/// The effect of an update.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The stored object is equal already.
    Unchanged,
    Store(Fields),
    /// The last finalizer of a terminating object was removed.
    Delete(Fields),
}

/// Checks that a PUT with a uid does not create an object, even if the kind allows PUT to create.
pub(crate) fn check_may_create(
    kind: &Kind,
    place: (&str, &str),
    new: &Fields,
    dry_run: bool,
) -> Result<()> {
    let uid = meta_text(new, "uid");
    if uid.is_empty() {
        return Ok(());
    }
    Err(precondition_failed(kind, place, "UID", (uid, ""), dry_run))
}

/// Returns the error for an object that has another `member` than the client wants. As on the real
/// server, a dry run shows another key.
pub(crate) fn precondition_failed(
    kind: &Kind,
    (namespace, name): (&str, &str),
    member: &str,
    (wanted, stored): (&str, &str),
    dry_run: bool,
) -> Failure {
    let key = kind.storage_key(namespace, name);
    let key = if dry_run { key.strip_prefix("/registry").unwrap_or(&key) } else { &key };
    let detail = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {member} in precondition: {wanted}, {member} in \
         object meta: {stored}"
    );
    Failure::conflict(kind, name, &detail)
}

/// Checks the uid of a PUT against the stored object.
pub(crate) fn check_uid(kind: &Kind, old: &Fields, new: &Fields, dry_run: bool) -> Result<()> {
    let (uid, stored) = (meta_text(new, "uid"), meta_text(old, "uid"));
    if uid.is_empty() || uid == stored {
        return Ok(());
    }
    let place = (meta_text(old, "namespace"), meta_text(old, "name"));
    Err(precondition_failed(kind, place, "UID", (uid, stored), dry_run))
}

/// Returns the resourceVersion that the client states; 0 if it states none.
///
/// # Errors
///
/// Fails if it is no number.
pub(crate) fn stated_version(object: &Fields) -> Result<u64> {
    match meta_text(object, "resourceVersion") {
        "" => Ok(0),
        text => parse_integer(text, GoInteger::Uint).map_err(Failure::internal),
    }
}

/// Checks the resourceVersion of a PUT or PATCH against the stored object.
pub(crate) fn check_version(kind: &Kind, old: &Fields, new: &Fields) -> Result<()> {
    let name = meta_text(old, "name");
    let version = stated_version(new)?;
    // 0 is no version: the update is unconditional. A patch, too, can remove the version.
    if version == 0 {
        if !kind.unconditional_update {
            let cause = Cause::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            return Err(Failure::invalid_as(&kind.group, &kind.plural, name, &[cause]));
        }
        return Ok(());
    }
    if meta_text(old, "resourceVersion").parse() == Ok(version) {
        Ok(())
    } else {
        Err(Failure::modified(kind, name))
    }
}

/// Completes and checks the new state of an object. Returns the warnings about it, too.
///
/// `served` is the kind that the client used: its rules apply to the object. The server itself, for
/// which `author` is `None`, needs no permission. A kind that allocates needs an allocator.
pub(crate) fn prepare(
    kind: &Kind,
    served: &Kind,
    change: Change<'_>,
    author: Option<&dyn Author>,
    allocator: Option<Allocator<'_>>,
) -> Result<(Outcome, Vec<String>)> {
    let (target, old) = (change.target, change.old);
    let sent = change.new.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let (owners, sends_owners) = (change.owners, sent.is_some_and(Value::is_array));
    let mut new = completed(kind, served, change);
    if let (Target::Object, Some(allocate), Some(allocator)) = (target, kind.allocate, allocator) {
        allocate(&mut new, Some(old), allocator)?;
    }
    let is_unchanged = are_equal(&new, old);
    // A rule of a definition may reject an update that changes nothing.
    if is_unchanged && served.definition.is_none() {
        return Ok((Outcome::Unchanged, Vec::new()));
    }
    if target == Target::AllMembers {
        // A change by the server itself is exempt from the rules for clients.
        return Ok((Outcome::Store(new), Vec::new()));
    }
    let writes_content = matches!(target, Target::Object | Target::Resize | Target::Part(_));
    if writes_content && changes_generation(kind, old, &new) {
        next_generation(kind, &mut new);
    }
    let mut causes = Vec::new();
    let managers = owners.given(&new, sends_owners);
    metadata::check(served, (&new, target), Some(old), managers, &mut causes);
    metadata::check_update(kind, &new, old, managers, &mut causes);
    if target == Target::Status
        && let Some(author) = author
    {
        (kind.permits)(&StatusWrite { old, new: &new, author }, &mut causes);
    }
    let warnings = check_rules(kind, served, (old, &new), target, &mut causes);
    if !causes.is_empty() {
        return Err(Failure::invalid(kind, meta_text(old, "name"), &causes));
    }
    if let Some(definition) = served.definition.as_ref().filter(|_| owners.is_known()) {
        definition.forget_nulls(&mut new);
    }
    if is_unchanged || (owners.is_known() && are_equal(&new, old)) {
        return Ok((Outcome::Unchanged, Vec::new()));
    }
    let is_finished = is_finished(kind, old, &new);
    let outcome = if is_finished { Outcome::Delete(new) } else { Outcome::Store(new) };
    Ok((outcome, warnings))
}

/// Returns the new state of an object, completed from the stored one, with its owners.
fn completed(kind: &Kind, served: &Kind, change: Change<'_>) -> Fields {
    let Change { old, mut new, target, owners } = change;
    if kind.custom {
        new.values_mut().for_each(whole_numbers);
    }
    let requested = take_requested(&mut new);
    let cleared = empty_lists(kind.clearable, &new);
    let is_object = target == Target::Object;
    let emptied = if is_object { empty_lists(kind.null_if_empty, &new) } else { Vec::new() };
    // Derived members follow from the client's values, even from those that are not kept.
    (kind.derive)(&mut new);
    // A subresource that writes a part gives its client all members that it sends.
    let is_part = matches!(target, Target::Part(_) | Target::Resize);
    let is_whole = target == Target::Object && has_versions(served);
    let sent = (is_part || is_whole).then(|| new.clone());
    restore_unwritten(kind, old, &mut new, target);
    keep_system_metadata(kind, old, &mut new);
    kind.complete_changed(&mut new, old);
    if let Some(now) = owners.now() {
        (kind.record_time)(&mut new, old, now);
    }
    take_type(old, &mut new);
    set_paths(&mut new, &emptied, &json!([]));
    // As on the real server, a client that omits a member gives it up even if the member stays.
    match sent {
        Some(sent) => {
            let after = owners_as_sent((kind, served), old, sent, owners, requested.as_ref());
            set_or_remove(metadata_mut(&mut new), "managedFields", after);
        }
        None => owners.of_changed(served, old, &mut new, requested.as_ref()),
    }
    set_paths(&mut new, &emptied, &Value::Null);
    if !emptied.is_empty() {
        keep_times(old, &mut new);
    }
    (kind.inherits)(&mut new, old);
    for path in cleared {
        set_path(&mut new, path, None);
    }
    kind.add(At::Write, &mut new, Some(old));
    new
}

/// Sets `kind` and `apiVersion`, which the server chooses.
fn take_type(old: &Fields, new: &mut Fields) {
    for key in ["kind", "apiVersion"] {
        new.insert(key.to_owned(), old.get(key).cloned().unwrap_or_default());
    }
}

/// Returns the owners after a write, before admission changes the object: packed, as they are
/// stored.
pub(crate) fn owners(kind: &Kind, served: &Kind, change: Change<'_>) -> Option<Value> {
    let mut new = completed(kind, served, change);
    metadata_mut(&mut new).remove("managedFields")
}

/// Returns true if managers may write the object in several versions of a definition. As on the
/// real server, those of other versions also lose the parts of a status that a write of the object
/// states.
fn has_versions(served: &Kind) -> bool {
    served.definition.as_ref().is_some_and(|definition| !definition.other_versions().is_empty())
}

/// Returns the owners after a write of a part, by the object that the client sent.
fn owners_as_sent(
    (kind, served): (&Kind, &Kind),
    old: &Fields,
    mut sent: Fields,
    owners: &Ownership,
    requested: Option<&Value>,
) -> Option<Value> {
    // The default phase is that of a new object.
    let has_status = sent.contains_key("status");
    keep_system_metadata(kind, old, &mut sent);
    kind.complete_changed(&mut sent, old);
    if !has_status {
        sent.remove("status");
    }
    take_type(old, &mut sent);
    owners.of_changed(served, old, &mut sent, requested);
    metadata_mut(&mut sent).remove("managedFields")
}

/// Checks a new state by the rules of its kind. Returns the warnings about it.
fn check_rules(
    kind: &Kind,
    served: &Kind,
    (old, new): (&Fields, &Fields),
    target: Target,
    causes: &mut Vec<Cause>,
) -> Vec<String> {
    if let Target::Part(path) = target
        && let Some(check) = kind.part_check(path)
    {
        check(new, old, causes);
        return Vec::new();
    }
    match (&served.definition, target) {
        (Some(definition), Target::Status) => {
            definition.check_status((new, old), served.scale.as_ref(), causes)
        }
        (_, Target::Resize) => {
            if let Some(resize) = kind.resize {
                (resize.validate)(new, old, causes);
            }
            Vec::new()
        }
        _ => {
            let check_embedded = |causes: &mut _| metadata::check_embedded(served, new, causes);
            served.check(new, Some(old), &check_embedded, causes)
        }
    }
}

fn changes_generation<'a>(kind: &Kind, old: &'a Fields, new: &'a Fields) -> bool {
    match kind.generation {
        Generation::None => false,
        Generation::Of(paths) | Generation::Later(paths) => {
            paths.iter().any(|path| read_path(old, path) != read_path(new, path))
        }
        Generation::Content => {
            let is_content =
                |name: &str| name != "metadata" && (name != "status" || !kind.has_status());
            let content =
                |object: &'a Fields| object.iter().filter(move |(name, _)| is_content(name));
            !content(old).eq(content(new))
        }
    }
}

/// Increments the generation. Objects of some kinds have none while they are new.
fn next_generation(kind: &Kind, object: &mut Fields) {
    if !matches!(kind.generation, Generation::Later(_)) {
        bump_generation(object);
        return;
    }
    let metadata = metadata_mut(object);
    let count = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    metadata.insert("generation".to_owned(), json!(count + 1));
}

/// Returns true if a terminating object can be removed.
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

/// Returns true if the list that `/finalize` empties still has entries.
pub(super) fn is_held(kind: &Kind, object: &Fields) -> bool {
    let list = kind.finalize.and_then(|path| read_path(object, path)).and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
}
