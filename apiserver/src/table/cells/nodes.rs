//! Nodes.

use serde_json::{Value, json};

use crate::fields::text;
use crate::table::Subject;
use crate::table::text::unless_empty;

pub(in crate::table) fn status(node: &Subject<'_>) -> Value {
    let conditions = node.list("status.conditions");
    let ready = conditions.iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if node.get("spec.unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    json!(status)
}

pub(in crate::table) fn roles(node: &Subject<'_>) -> Value {
    let labels = node.get("metadata.labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            if key == "kubernetes.io/role" {
                return value.as_str();
            }
            key.strip_prefix("node-role.kubernetes.io/")
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    json!(unless_empty(roles.join(","), "<none>"))
}

pub(in crate::table) fn internal_ip(node: &Subject<'_>) -> Value {
    node_address(node, "InternalIP")
}

pub(in crate::table) fn external_ip(node: &Subject<'_>) -> Value {
    node_address(node, "ExternalIP")
}

fn node_address(node: &Subject<'_>, kind: &str) -> Value {
    let addresses = node.list("status.addresses");
    let found = addresses.iter().find(|address| text(address, "type") == kind);
    json!(found.map_or("<none>", |address| text(address, "address")))
}
