//! Resource quotas, limit ranges and volume claims.

use serde_json::{Value, json};

use super::checks;
use crate::fields::{Fields, read_path};
use crate::go_diff;
use crate::plugin::{Addition, AdmissionPlugin, At};
use crate::status::Cause;

/// A container's default limit is its maximum.
pub(super) fn default_limit(item: &Fields) -> Value {
    of_container(item, &["max"], "default")
}

/// A container's default request is its limit, else its minimum.
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

/// A volume claim stays until the last pod that uses it is gone.
pub(super) const CLAIM_PROTECTION: [Addition; 1] =
    [protection(|claim, _| protect(claim, "kubernetes.io/pvc-protection"))];

/// Returns the admission of a new object that gets a finalizer.
pub(super) const fn protection(apply: fn(&mut Fields, Option<&Fields>)) -> Addition {
    Addition { plugin: AdmissionPlugin::StorageObjectInUseProtection, at: At::Create, apply }
}

/// Adds a finalizer, which a controller removes when the object is in use no more.
pub(super) fn protect(object: &mut Fields, finalizer: &str) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&json!(finalizer))) {
        list.push(json!(finalizer));
    }
}

pub(super) fn validate_claim(claim: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::storage_claim::spec(claim.get("spec").unwrap_or(&Value::Null), "spec", causes);
    let Some(old) = old else { return };
    let (new, old) = compared(claim, old);
    if new != old {
        let diff = go_diff::diff("core.PersistentVolumeClaimSpec", &old, &new);
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{diff}"
        );
        causes.push(Cause::forbidden("spec", &detail));
    }
}

/// Returns the new spec and the stored one, which must be equal. What may change is equal in them:
/// the volume and the class are set once, and a bound claim may grow.
fn compared(claim: &Fields, stored: &Fields) -> (Value, Value) {
    let spec = |claim: &Fields| claim.get("spec").cloned().unwrap_or_default();
    let (mut new, mut old) = (spec(claim), spec(stored));
    for key in ["volumeName", "storageClassName"] {
        if old.get(key).is_none() {
            copy(&new, &mut old, key);
        }
    }
    if read_path(stored, "status.phase") == Some(&json!("Bound")) {
        copy(&old, &mut new, "volumeAttributesClassName");
        if let (Some(new), Some(old)) = (new.get_mut("resources"), old.get("resources")) {
            copy(old, new, "requests");
        }
    }
    (new, old)
}

fn copy(from: &Value, to: &mut Value, key: &str) {
    let Some(members) = to.as_object_mut() else { return };
    match from.get(key) {
        Some(value) => members.insert(key.to_owned(), value.clone()),
        None => members.remove(key),
    };
}

pub(super) fn validate_quota(quota: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::quota(quota, causes);
    if let Some(old) = old {
        checks::quota::scopes_stay(quota, old, causes);
    }
    let status = quota.get("status").unwrap_or(&Value::Null);
    for list in ["hard", "used"] {
        checks::quota::amounts(checks::member(status, list), &format!("status.{list}"), causes);
    }
}

pub(super) fn validate_range(range: &Fields, _: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::limit_range(range, causes);
}
