//! The members that an update does not write: they stay as they are stored.

use serde_json::{Value, json};

use super::target::Target;
use super::{GRACE, drop_empty, metadata_mut};
use crate::fields::{Fields, read_path, set_or_remove};
use crate::kinds::{Kind, Status};

/// Restores what the request does not write: the status for a write to the object, the rest for a
/// write to the status.
pub(super) fn restore_unwritten(kind: &Kind, old: &Fields, new: &mut Fields, target: Target) {
    match (target, kind.status) {
        (Target::AllMembers, _) | (Target::Object | Target::Status, Status::None) => {}
        (Target::Object, Status::Subresource { .. }) => {
            keep(old, new, "status");
            if let Some(path) = kind.finalize {
                keep(old, new, path);
            }
        }
        (Target::Status, Status::Subresource { kept, .. }) => {
            if kept == ["*"] {
                restore_all_but_status(old, new);
            }
            for path in kept.iter().filter(|path| **path != "*") {
                keep(old, new, path);
            }
        }
        (Target::Finalize, _) => keep(old, new, "status"),
        (Target::Resize, _) => {
            if let Some(resize) = kind.resize {
                (resize.restore)(new, old);
            }
        }
        (Target::Part(path), _) => {
            let wanted = read_path(new, path).cloned();
            let metadata = new.remove("metadata");
            new.clone_from(old);
            set_path(new, path, wanted);
            if kind.part_writes_metadata(path) {
                set_or_remove(new, "metadata", metadata);
            } else {
                let version =
                    metadata.and_then(|metadata| metadata.get("resourceVersion").cloned());
                set_or_remove(metadata_mut(new), "resourceVersion", version);
            }
        }
    }
}

/// Restores all members but the status, and the version that the client expects.
///
/// Most clients send them as they have read them, and comparing is cheaper than copying.
fn restore_all_but_status(old: &Fields, new: &mut Fields) {
    new.retain(|name, _| name == "status" || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| *name != "status") {
        match (name.as_str(), value) {
            ("metadata", Value::Object(old)) => restore_metadata(old, metadata_mut(new)),
            _ if new.get(name) == Some(value) => {}
            _ => drop(new.insert(name.clone(), value.clone())),
        }
    }
}

/// Restores the metadata, without the owners, which the caller sets.
fn restore_metadata(old: &Fields, new: &mut Fields) {
    new.retain(|name, _| name == "resourceVersion" || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| *name != "managedFields") {
        let is_kept = name == "resourceVersion" && new.contains_key(name);
        if !is_kept && new.get(name) != Some(value) {
            new.insert(name.clone(), value.clone());
        }
    }
}

fn keep(old: &Fields, new: &mut Fields, path: &str) {
    let kept = read_path(old, path);
    // Most clients send it as they have read it, and comparing is cheaper than copying.
    if kept.is_none() || kept != read_path(new, path) {
        set_path(new, path, kept.cloned());
    }
}

/// Returns the paths of the lists that an object has, and that are empty.
pub(super) fn empty_lists(paths: &[&'static str], object: &Fields) -> Vec<&'static str> {
    let is_empty =
        |path: &&&str| read_path(object, path).and_then(Value::as_array).is_some_and(Vec::is_empty);
    paths.iter().filter(is_empty).copied().collect()
}

/// Sets the members at some paths to one value.
pub(super) fn set_paths(object: &mut Fields, paths: &[&str], value: &Value) {
    for path in paths {
        set_path(object, path, Some(value.clone()));
    }
}

/// Sets the member at a path; `None` removes it.
pub(super) fn set_path(object: &mut Fields, path: &str, value: Option<Value>) {
    let Some((first, rest)) = path.split_once('.') else {
        set_or_remove(object, path, value);
        return;
    };
    if value.is_none() && !object.contains_key(first) {
        return;
    }
    let inner = object.entry(first).or_insert_with(|| json!({}));
    if inner.is_null() {
        *inner = json!({});
    }
    if let Value::Object(inner) = inner {
        set_path(inner, rest, value);
    }
}

/// Restores the metadata that only the server sets. What else a client may state of an object, such
/// as its uid and its name, is checked later.
pub(super) fn keep_system_metadata(kind: &Kind, old: &Fields, new: &mut Fields) {
    let none = Fields::new();
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    let metadata = metadata_mut(new);
    drop_empty(metadata);
    metadata.retain(|name, _| match name.as_str() {
        "selfLink" => false,
        "namespace" | "creationTimestamp" | "generation" | "resourceVersion" => {
            old.contains_key(name)
        }
        "managedFields" => !kind.custom && old.contains_key(name),
        _ => true,
    });
    for (name, value) in old {
        let is_kept = match name.as_str() {
            "creationTimestamp" | "generation" | "resourceVersion" | "deletionTimestamp" => true,
            // Equal owners need no comparison. The type of a custom object checks all of it.
            "managedFields" => !kind.custom,
            "uid" | "name" | "namespace" | GRACE => !metadata.contains_key(name),
            _ => false,
        };
        if is_kept {
            set_or_remove(metadata, name, Some(value.clone()));
        }
    }
}
