//! The type that a body states: its `kind` and `apiVersion`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::OPTIONS;
use super::wanted::Wanted;
use crate::admission::meta_text;
use crate::fields::Fields;
use crate::kinds::{Kind, Kinds};
use crate::status::{Cause, Failure, Result};
use crate::types::{Type, Types};

/// The source of the real server's list of kinds, as its messages name it.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Returns the error text for a kind that a version does not have.
pub(crate) fn not_registered(kind: &str, version: &str) -> String {
    format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\"")
}

/// Returns the error text for a body of a subresource that states another type.
pub(super) fn unconvertible(wanted: &Wanted<'_>, kind: &str, stated: &str) -> String {
    let (group, version) = stated.rsplit_once('/').unwrap_or(("", stated));
    let is_known = Types::all().of_kind(group, version, kind).is_some();
    if !is_known || wanted.kind == OPTIONS {
        return not_registered(kind, stated);
    }
    let group = wanted.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    converting((version, kind), (group, wanted.kind))
}

/// Returns the error text for an object of a version, which is to be one of a group.
fn converting((version, said): (&str, &str), (group, wanted): (&str, &str)) -> String {
    let package = match group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(first) => first,
    };
    format!("converting ({version}.{said}) to ({package}.{wanted}): unknown conversion")
}

/// Checks `kind` and `apiVersion` of the body; both may be missing.
///
/// `wrong` returns the error about a member of a wrong type.
pub(super) fn check_type(
    kinds: &Kinds,
    (kind, wanted): (&Kind, &Wanted<'_>),
    object: &Fields,
    wrong: &dyn Fn(&Type, &Fields) -> Option<String>,
) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
    let (said, version) = (text("kind"), text("apiVersion"));
    if kind.custom {
        return check_custom_version(kind, version);
    }
    let Some(detail) = other_type(kinds, kind, object, wrong) else { return Ok(()) };
    let said = if said.is_empty() { wanted.kind } else { said };
    let version = if version.is_empty() { wanted.api_version } else { version };
    Err(wanted.invalid_as(said, version, &detail))
}

/// Returns the error for an object whose `kind` or `apiVersion` is another one. `wrong` returns the
/// error about a member of a wrong type.
pub(crate) fn other_type(
    kinds: &Kinds,
    kind: &Kind,
    object: &Fields,
    wrong: &dyn Fn(&Type, &Fields) -> Option<String>,
) -> Option<String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expected = kind.api_version();
    let said = text("kind").unwrap_or(&kind.kind);
    let version = text("apiVersion").unwrap_or(&expected);
    // The core group is empty: `/v1`.
    let version = version.strip_prefix('/').unwrap_or(version);
    if said == kind.kind && version == expected {
        return None;
    }
    let row = |row: &&Arc<Kind>| !row.custom && row.kind == said && row.api_version() == version;
    let Some(other) = kinds.built_in_rows().find(row) else {
        return Some(not_registered(said, version));
    };
    if let Some(wrong) = other.known_type().and_then(|known| wrong(known, object)) {
        return Some(wrong);
    }
    Some(converting((&other.version, said), (&kind.group, &kind.kind)))
}

/// Checks the type that a custom object states.
pub(crate) fn check_custom_type(kind: &Kind, object: &Fields, version: &str) -> Result<()> {
    check_custom_version(kind, version)?;
    check_custom_kind(kind, object)
}

fn check_custom_version(kind: &Kind, version: &str) -> Result<()> {
    let expected = kind.api_version();
    // An object without a kind has been rejected, unless the kind has no definition.
    let may_lack = kind.definition.is_none();
    if version != expected && !(may_lack && version.is_empty()) {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        )));
    }
    Ok(())
}

/// Checks the kind that a custom object states. It does nothing for other objects.
pub(crate) fn check_custom_kind(kind: &Kind, object: &Fields) -> Result<()> {
    let said = object.get("kind").and_then(Value::as_str).unwrap_or("");
    if !kind.custom || said.is_empty() || said == kind.kind {
        return Ok(());
    }
    let name = meta_text(object, "name");
    let cause = Cause::invalid("kind", &json!(said), &format!("must be {}", kind.kind));
    Err(Failure::invalid_as(&kind.group, said, name, &[cause]))
}
