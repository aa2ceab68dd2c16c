//! Quotas, limits and claims to storage: objects that are about quantities.

use serde_json::{Value, json};

use super::{checks, read_path};
use crate::object::Fields;
use crate::status::Cause;

/// A container's limit, when it has none, is the largest that it may have.
pub(super) fn default_limit(item: &Fields) -> Value {
    of_container(item, &["max"], "default")
}

/// A container's request is its limit, or the least that it may have.
pub(super) fn default_request(item: &Fields) -> Value {
    of_container(item, &["min", "default"], "defaultRequest")
}

fn of_container(item: &Fields, from: &[&str], to: &str) -> Value {
    if item.get("type") != Some(&json!("Container")) {
        return Value::Null;
    }
    let maps = from.iter().filter_map(|key| item.get(*key).and_then(Value::as_object));
    let all: Fields = maps.flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    if all.is_empty() { Value::Null } else { json!({to: all}) }
}

/// A claim to storage is not gone before the last pod that uses it.
pub(super) fn protect_claim(claim: &mut Fields) {
    const PROTECTION: &str = "kubernetes.io/pvc-protection";
    let Some(Value::Object(metadata)) = claim.get_mut("metadata") else { return };
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&json!(PROTECTION))) {
        list.push(json!(PROTECTION));
    }
}

pub(super) fn validate_claim(claim: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::storage_claim(claim, causes);
    let Some(old) = old else { return };
    if frozen(claim, old) != frozen(old, old) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", why));
    }
}

/// What of a claim stays, as far as `old` has come: a volume and a class are given once, and a bound claim may grow.
fn frozen(claim: &Fields, old: &Fields) -> Value {
    let mut spec = claim.get("spec").cloned().unwrap_or_default();
    let Some(members) = spec.as_object_mut() else { return spec };
    for key in ["volumeName", "storageClassName"] {
        if read_path(old, &format!("spec.{key}")).is_none() {
            members.remove(key);
        }
    }
    if read_path(old, "status.phase") == Some(&json!("Bound")) {
        members.remove("volumeAttributesClassName");
        if let Some(Value::Object(resources)) = members.get_mut("resources") {
            resources.remove("requests");
        }
    }
    spec
}

pub(super) fn validate_quota(quota: &Fields, _: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::quota(quota, causes);
    let status = quota.get("status").unwrap_or(&Value::Null);
    for list in ["hard", "used"] {
        checks::quota::amounts(checks::member(status, list), &format!("status.{list}"), causes);
    }
}

pub(super) fn validate_range(range: &Fields, _: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::limit_range(range, causes);
}
