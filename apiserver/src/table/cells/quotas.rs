//! Quotas.

use serde_json::{Value, json};

use crate::fields::text;
use crate::table::Subject;

pub(in crate::table) fn requests(quota: &Subject<'_>) -> Value {
    quota_of(quota, false)
}

pub(in crate::table) fn limits(quota: &Subject<'_>) -> Value {
    quota_of(quota, true)
}

fn quota_of(quota: &Subject<'_>, limits: bool) -> Value {
    let used = quota.get("status.used");
    let hard = quota.get("status.hard").and_then(Value::as_object);
    let texts: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.contains("limits") == limits)
        .map(|(name, hard)| {
            let used = used.map_or("", |used| text(used, name));
            let used = if used.is_empty() { "0" } else { used };
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    json!(texts.join(", "))
}
