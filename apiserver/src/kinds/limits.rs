//! Quotas, limits and claims to storage: objects that are about quantities.

use serde_json::{Value, json};

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

pub(super) fn validate_claim(_claim: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}

pub(super) fn validate_quota(_quota: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
