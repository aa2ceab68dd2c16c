//! Creating: what the client may not say is wiped, what it did not say is filled in, and the rest is checked.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{drop_empty, meta_text, metadata, metadata_mut};
use crate::clock::rfc3339;
use crate::kinds::{Generation, Kind, OnCreate, Status};
use crate::object::Fields;
use crate::status::{Cause, Failure, Result};

/// What the server, not the client, says about a new object.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) now: Timestamp,
    pub(crate) uid: String,
    /// Appended to `generateName`, if there is no name.
    pub(crate) suffix: String,
}

const SYSTEM: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];
/// A generated name is at most 63 long, and five of that are random.
const LONGEST_BASE: usize = 58;

/// Completes and checks a new object.
///
/// `served` is the kind that the client knows it as: it says what must hold of the object.
pub(crate) fn prepare(
    kind: &Kind,
    served: &Kind,
    namespace: &str,
    mut object: Fields,
    birth: &Birth,
) -> Result<Fields> {
    let metadata = metadata_mut(&mut object);
    if metadata
        .remove("resourceVersion")
        .is_some_and(|version| !version.as_str().is_none_or(str::is_empty))
    {
        return Err(Failure::internal(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for member in SYSTEM {
        metadata.remove(member);
    }
    drop_empty(metadata);
    if kind.namespaced {
        metadata.insert("namespace".to_owned(), json!(namespace));
    } else {
        metadata.remove("namespace");
    }
    generate_name(metadata, &birth.suffix);
    metadata.insert("uid".to_owned(), json!(birth.uid));
    metadata.insert("creationTimestamp".to_owned(), json!(rfc3339(birth.now)));
    // A kind that does not count generations keeps what the client says.
    if kind.generation != Generation::None {
        metadata.insert("generation".to_owned(), json!(1));
    }
    if matches!(kind.status, Status::Subresource { on_create: OnCreate::Drop, .. }) {
        object.remove("status");
    }
    kind.complete(&mut object);
    (kind.prepare)(&mut object);
    check(kind, served, &object)?;
    Ok(object)
}

fn generate_name(metadata: &mut Fields, suffix: &str) {
    if metadata.contains_key("name") {
        return;
    }
    if let Some(base) = metadata.get("generateName").and_then(Value::as_str) {
        let base: String = base.chars().take(LONGEST_BASE).collect();
        metadata.insert("name".to_owned(), json!(format!("{base}{suffix}")));
    }
}

fn check(kind: &Kind, served: &Kind, object: &Fields) -> Result<()> {
    let name = meta_text(object, "name");
    let mut causes = Vec::new();
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        metadata::check(kind, object, &mut causes);
    }
    served.check(object, None, &mut causes);
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(kind, name, &causes)) }
}
