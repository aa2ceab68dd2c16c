//! Volume claims (`ValidatePersistentVolumeClaimSpec`).

use serde_json::{Value, json};

use super::Test::{By, Has, OneOf, Required, Text};
use super::{Causes, Check, claim_updates, items, member, run, selectors, text};
use crate::fields::Fields;
use crate::status::Cause;
use crate::{names, quantity};

const SPEC: &[Check] = &[
    ("accessModes", Required("at least 1 access mode is required")),
    ("selector", By(selectors::selector)),
    ("accessModes", By(access_modes)),
    ("", By(storage)),
    ("storageClassName", Text(names::dns_subdomain)),
    ("volumeMode", OneOf(&["Block", "Filesystem"])),
    ("dataSource", Has(SOURCE)),
    ("dataSourceRef", Has(SOURCE)),
    ("", By(same_source)),
    ("volumeAttributesClassName", Text(names::dns_subdomain)),
];

/// The source of a claim's data. One in another namespace was dropped before.
const SOURCE: &[Check] = &[
    ("name", Required("")),
    ("kind", Required("")),
    ("", By(group)),
    ("apiGroup", Text(names::dns_subdomain)),
];

/// Checks a claim, and an update of one.
pub(crate) fn claim(claim: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    spec(claim.get("spec").unwrap_or(&Value::Null), "spec", causes);
    if let Some(old) = old {
        claim_updates::spec(claim, old, causes);
        claim_updates::status(claim, causes);
    }
}

pub(crate) fn spec(spec: &Value, at: &str, causes: Causes<'_>) {
    run(SPEC, spec, at, causes);
}

/// Checks the access modes of a claim or of a volume.
pub(super) fn access_modes(_: &Value, modes: &Value, at: &str, causes: Causes<'_>) {
    const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in items(modes).iter().filter(|mode| !MODES.iter().any(|known| **mode == *known)) {
        causes.push(Cause::unsupported(at, mode, MODES));
    }
    let has = |wanted: fn(&str) -> bool| {
        let mut known = items(modes).iter().filter_map(Value::as_str);
        known.any(|mode| MODES.contains(&mode) && wanted(mode))
    };
    if has(|mode| mode == "ReadWriteOncePod") && has(|mode| mode != "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(at, detail));
    }
}

fn storage(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    let size = member(member(member(spec, "resources"), "requests"), "storage");
    let at = format!("{at}.resources[storage]");
    match quantity::read(size) {
        None => causes.push(Cause::required(at, "")),
        Some(read) if !read.is_positive() => {
            causes.push(Cause::invalid(at, size, "must be greater than zero"));
        }
        Some(_) => {}
    }
}

fn group(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    let kind = member(source, "kind");
    if text(source, "apiGroup").is_empty() && *kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        causes.push(Cause::invalid(at, kind, detail));
    }
}

fn same_source(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    let (source, reference) = (member(spec, "dataSource"), member(spec, "dataSourceRef"));
    let differs = |name: &&str| member(source, name) != member(reference, name);
    let both = source.is_object() && reference.is_object();
    if both && ["apiGroup", "kind", "name"].iter().any(differs) {
        // The real server names the member by a value that has no text.
        causes.push(Cause::invalid(at, &json!({}), "must match dataSourceRef"));
    }
}
