//! The sources of a `PersistentVolumeClaim`'s data, and its protection.

use serde_json::{Map, Value};

use super::protection;
use crate::fields::Fields;
use crate::plugin::Addition;

const SOURCE: &str = "dataSource";
const REFERENCE: &str = "dataSourceRef";

/// A volume claim stays until the last pod that uses it is gone.
pub(super) const PROTECTION: [Addition; 1] =
    [protection::of_new(|claim, _| protection::protect(claim, "kubernetes.io/pvc-protection"))];

/// Drops the sources of a new claim that do not count, and copies the one that is given to the
/// other member.
pub(super) fn prepare(claim: &mut Fields) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    drop_unsupported(spec);
    complete(spec);
}

/// As [`prepare`], for an update: a claim that has a source keeps what the client sends.
pub(super) fn inherit(claim: &mut Fields, old: &Fields) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let has = |name: &str| old.get("spec").is_some_and(|spec| is_object(spec.get(name)));
    if !has(SOURCE) && !has(REFERENCE) {
        drop_unsupported(spec);
    }
    complete(spec);
}

/// Drops a `dataSource` that is neither a claim nor a snapshot, and a reference to another
/// namespace: its feature is off.
fn drop_unsupported(spec: &mut Map<String, Value>) {
    let source = spec.get(SOURCE).filter(|source| is_object(Some(source)));
    let kind = source.map(|source| (text(source, "apiGroup"), text(source, "kind")));
    let is_known = matches!(
        kind,
        None | Some(("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot"))
    );
    if !is_known {
        spec.remove(SOURCE);
    }
    if spec.get(REFERENCE).is_some_and(|reference| !text(reference, "namespace").is_empty()) {
        spec.remove(REFERENCE);
    }
}

/// Copies the source to the reference or the reference to the source, whichever is missing.
fn complete(spec: &mut Map<String, Value>) {
    let (from, to) = match (is_object(spec.get(SOURCE)), is_object(spec.get(REFERENCE))) {
        (true, false) => (SOURCE, REFERENCE),
        (false, true) if text(&spec[REFERENCE], "namespace").is_empty() => (REFERENCE, SOURCE),
        _ => return,
    };
    let mut copy = spec[from].clone();
    if let Some(copy) = copy.as_object_mut() {
        copy.remove("namespace");
    }
    spec.insert(to.to_owned(), copy);
}

fn is_object(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_object)
}

fn text<'a>(source: &'a Value, member: &str) -> &'a str {
    source.get(member).and_then(Value::as_str).unwrap_or_default()
}
