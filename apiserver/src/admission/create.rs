//! Creates: removes what a client may not set, fills in defaults, and checks the rest.

use std::sync::Arc;

use homeostat_schema::ManagedFields;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::field_manager::FieldManager;
use super::owners::{Ownership, take_requested};
use super::target::Target;
use super::unwritten::{empty_lists, set_paths};
use super::{drop_empty, meta_text, metadata, metadata_mut};
use crate::access::User;
use crate::clock::rfc3339;
use crate::fields::Fields;
use crate::go_json::whole_numbers;
use crate::kinds::{Allocator, Generation, Kind, OnCreate, Served, Status};
use crate::plugin::At;
use crate::status::{Cause, Failure, Result};

/// The metadata that the server gives to a new object.
#[derive(Debug)]
pub(crate) struct SystemMetadata<'a> {
    pub(crate) now: Timestamp,
    pub(crate) uid: String,
    /// Appended to `generateName` if there is no name.
    pub(crate) suffix: String,
    pub(crate) owners: &'a Ownership,
    /// The user who creates the object.
    pub(crate) author: Arc<User>,
    /// `Some` if the kind allocates.
    pub(crate) allocator: Option<Allocator<'a>>,
}

const SYSTEM: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
];
/// The longest prefix of a generated name: 63 characters less five random ones.
const MAX_BASE_LENGTH: usize = 58;

/// Returns the resourceVersion that the client gave to a new object, if it is a number. The real
/// server's storage ignores other texts.
pub(crate) fn given_version(object: &Fields) -> Option<u64> {
    let text = meta_text(object, "resourceVersion");
    // Rust accepts a sign, unlike the real server.
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Completes and checks a new object.
///
/// `served` is the kind that the client used: its rules apply to the object.
pub(crate) fn prepare(
    kind: &Kind,
    served: &Kind,
    namespace: &str,
    mut object: Fields,
    system: &SystemMetadata<'_>,
) -> Result<Fields> {
    if kind.custom {
        object.values_mut().for_each(whole_numbers);
    }
    let requested = set_metadata(kind, namespace, metadata_mut(&mut object), system);
    let drops_status = matches!(kind.status, Status::Subresource { on_create: OnCreate::Drop, .. });
    let writes_status = drops_status && system.owners.is_of_status();
    if drops_status && !writes_status {
        object.remove("status");
    }
    let emptied = empty_lists(kind.null_if_empty, &object);
    kind.complete(&mut object);
    set_paths(&mut object, &emptied, &json!([]));
    system.owners.of_new(served, &mut object, requested.as_ref());
    set_paths(&mut object, &emptied, &Value::Null);
    if writes_status {
        // The client of a write to the status owns it, though it is dropped.
        object.remove("status");
        kind.complete(&mut object);
    }
    // The client does not own what the server derives from a generated name.
    generate_name(metadata_mut(&mut object), &system.suffix);
    (kind.record_author)(&mut object, &system.author);
    (kind.prepare)(&mut object);
    kind.add(At::Create, &mut object, None);
    if let (Some(allocate), Some(allocator)) = (kind.allocate, system.allocator) {
        allocate(&mut object, None, allocator)?;
    }
    check(kind, served, &object, system.owners.given(&object, requested.is_some()))?;
    if let Some(definition) = served.definition.as_ref().filter(|_| system.owners.is_known()) {
        definition.forget_nulls(&mut object);
    }
    // The real server derives these members again as it reads what it stored.
    (kind.derive)(&mut object);
    // The real server shows a new object as it reads it: with the default of the dropped status.
    if let Some(definition) = kind.definition.as_ref().filter(|_| drops_status) {
        definition.set_defaults(&mut object);
    }
    Ok(object)
}

/// Sets the members of the metadata that the server decides about. Returns the owners that the
/// client has sent.
fn set_metadata(
    kind: &Kind,
    namespace: &str,
    metadata: &mut Fields,
    system: &SystemMetadata<'_>,
) -> Option<Value> {
    for member in SYSTEM {
        metadata.remove(member);
    }
    let requested = metadata.remove("managedFields").filter(|sent| !sent.is_null());
    drop_empty(metadata);
    if kind.namespaced {
        metadata.insert("namespace".to_owned(), json!(namespace));
    } else {
        metadata.remove("namespace");
    }
    metadata.insert("uid".to_owned(), json!(system.uid));
    metadata.insert("creationTimestamp".to_owned(), json!(rfc3339(system.now)));
    // A kind without generations keeps the client's value.
    if !matches!(kind.generation, Generation::None | Generation::Later(_)) {
        metadata.insert("generation".to_owned(), json!(1));
    }
    requested
}

/// Returns the owners of a new object before admission changes it.
pub(crate) fn owners(served: &Served, manager: &FieldManager, object: &Fields) -> ManagedFields {
    let mut object = object.clone();
    let requested = take_requested(&mut object);
    let metadata = metadata_mut(&mut object);
    for member in SYSTEM {
        metadata.remove(member);
    }
    served.home.complete(&mut object);
    if served.kind.stored_as.is_some() {
        served.kind.rename_from_storage(&mut object);
    }
    manager.create(&served.kind, &object, requested.as_ref())
}

fn generate_name(metadata: &mut Fields, suffix: &str) {
    if metadata.contains_key("name") {
        return;
    }
    if let Some(base) = metadata.get("generateName").and_then(Value::as_str) {
        let base: String = base.chars().take(MAX_BASE_LENGTH).collect();
        metadata.insert("name".to_owned(), json!(format!("{base}{suffix}")));
    }
}

fn check(kind: &Kind, served: &Kind, object: &Fields, managers: Option<&Value>) -> Result<()> {
    let name = meta_text(object, "name");
    let mut causes = Vec::new();
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    }
    let before = causes.len();
    metadata::check(served, (object, Target::Object), None, managers, &mut causes);
    let of_metadata = before..causes.len();
    let check_embedded = |causes: &mut _| metadata::check_embedded(served, object, causes);
    served.check(object, None, &check_embedded, &mut causes);
    if served.lax_metadata && causes.len() > of_metadata.end {
        causes.drain(of_metadata);
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(kind, name, &causes)) }
}
