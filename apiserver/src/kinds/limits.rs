//! Resource quotas and limit ranges.

use serde_json::{Value, json};

use super::checks;
use crate::fields::{Fields, read_path};
use crate::quantity;
use crate::status::Cause;

/// The resources whose requests a quota may name without a prefix.
const BARE: [&str; 2] = ["cpu", "memory"];

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

/// Returns the warnings about a new quota whose requests may exceed its limits.
pub(super) fn warn_quota(quota: &Fields, old: Option<&Fields>) -> Vec<String> {
    let Some(hard) = read_path(quota, "spec.hard").filter(|_| old.is_none()) else {
        return Vec::new();
    };
    let amount = |name: String| {
        let found = quantity::read(hard.get(&name)?)?;
        Some((name, found))
    };
    let warning = |resource: &&str| {
        // The bare name is that of a request.
        let bare = || amount((*resource).to_owned()).filter(|_| BARE.contains(resource));
        let (request, most) = amount(format!("requests.{resource}")).or_else(bare)?;
        let (limit, least) = amount(format!("limits.{resource}"))?;
        let exceeds = most > least;
        exceeds.then(|| {
            format!("ResourceQuota {request} ({most}) should be less than {limit} ({least})")
        })
    };
    let resources = BARE.iter().chain(&["storage", "ephemeral-storage"]);
    resources.filter_map(warning).collect()
}

pub(super) fn validate_range(range: &Fields, _: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::quota::limit_range(range, causes);
}
