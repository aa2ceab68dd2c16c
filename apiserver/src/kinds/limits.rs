//! Resource quotas and limit ranges.

use serde_json::{Value, json};

use super::checks;
use crate::fields::Fields;
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
