//! Validation of an object's metadata.

use serde_json::{Value, json};

use super::target::Target;
use super::{GRACE, finalizers, is_terminating, meta_text};
use crate::fields::Fields;
use crate::kinds::Kind;
use crate::kinds::managers::check_managers;
use crate::kinds::metadata::{MetadataRules, STANDARD, check_inner, check_lists};
use crate::status::Cause;

/// Checks the metadata of the objects inside of a custom object.
pub(super) fn check_embedded(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let Some(definition) = &kind.definition else { return };
    for (path, metadata) in definition.embedded_metadata(object) {
        let outer = path.strip_suffix("metadata").unwrap_or(&path);
        causes.extend(check_inner(metadata).into_iter().map(|cause| cause.below(outer)));
    }
}

/// Checks the rules that hold for creates and updates; `old` is the stored object of an update.
pub(super) fn check(
    kind: &Kind,
    (object, target): (&Fields, Target),
    old: Option<&Fields>,
    managers: Option<&Value>,
    causes: &mut Vec<Cause>,
) {
    let is_lax = target == Target::Status && !kind.status_checks_finalizers;
    let any_finalizer = is_lax || kind.has_any_finalizer();
    MetadataRules { name: kind.name, any_finalizer, managers }.check(object, old, causes);
}

/// Removes owners that are listed twice. Returns the warning about them; `when` says when they were
/// found.
pub(crate) fn drop_repeated_owners(object: &mut Fields, when: &str) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut repeated = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// Returns the warning about a finalizer of a custom resource that other clients may use, too.
pub(crate) fn finalizer_warning(finalizer: &str) -> Option<String> {
    if finalizer.contains('/') || STANDARD.contains(&finalizer) {
        return None;
    }
    let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
    Some(format!(
        "metadata.finalizers: \"{finalizer}\": prefer a domain-qualified finalizer name{path} to \
         avoid accidental conflicts with other finalizer writers"
    ))
}

/// Checks what holds only for updates.
///
/// For a custom resource the real server makes these checks twice, and each time checks the lists
/// and the managers as well. It reports each error again.
pub(super) fn check_update(
    kind: &Kind,
    object: &Fields,
    old: &Fields,
    managers: Option<&Value>,
    causes: &mut Vec<Cause>,
) {
    let mut found = Vec::new();
    check_new_finalizers(object, old, &mut found);
    check_immutable(object, old, &mut found);
    if kind.custom {
        check_lists(object, Some(old), &mut found);
        check_managers(managers, &mut found);
        causes.extend(found.clone());
    }
    causes.extend(found);
}

fn check_immutable(object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    for key in ["uid", "deletionTimestamp"] {
        let (new, old) = (meta_text(object, key), meta_text(old, key));
        if new != old {
            let at = format!("metadata.{key}");
            causes.push(Cause::invalid(at, &json!(new), "field is immutable"));
        }
    }
    let grace = |object: &Fields| object.get("metadata").and_then(|it| it.get(GRACE)).cloned();
    if let Some(new) = grace(object).filter(|new| grace(old).as_ref() != Some(new)) {
        let at = format!("metadata.{GRACE}");
        causes.push(Cause::invalid(at, &new, "field is immutable"));
    }
}

/// Checks that an object that is deleted gets no new finalizers.
fn check_new_finalizers(object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    if !is_terminating(old) {
        return;
    }
    let known = finalizers(old);
    let added: Vec<String> = finalizers(object)
        .into_iter()
        .filter(|one| !known.contains(one))
        .map(|one| format!("\"{one}\""))
        .collect();
    if !added.is_empty() {
        let list = added.join(", ");
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{list}}}"
        );
        causes.push(Cause::forbidden("metadata.finalizers", &detail));
    }
}
