//! Names and amounts of resources.

use serde_json::{Value, json};

use super::{NOT_NEGATIVE, judge, member};
use crate::names;
use crate::quantity::Quantity;
use crate::status::Cause;

/// What a container may ask for by a short name.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What a quota may limit by a short name, but for what is counted.
const AMOUNTS: [&str; 15] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "count/pods",
    "count/services",
    "count/secrets",
    "count/configmaps",
];
/// What is counted, and so whole.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether a quota may limit it by this short name.
fn is_of_quotas(name: &str) -> bool {
    AMOUNTS.contains(&name) || COUNTED.contains(&name)
}

fn is_standard_anywhere(name: &str) -> bool {
    OF_CONTAINERS.contains(&name) || is_of_quotas(name) || name.starts_with("hugepages-")
}

/// A name that is qualified, or known.
fn any_name(name: &str, at: &str, causes: &mut Vec<Cause>) -> bool {
    let before = causes.len();
    judge(&json!(name), names::qualified, at, causes);
    if causes.len() > before {
        return false;
    }
    if !name.contains('/') && !is_standard_anywhere(name) {
        let why = "must be a standard resource type or fully qualified";
        causes.push(Cause::invalid(at, &json!(name), why));
    }
    true
}

/// The name of what a container asks for.
pub(crate) fn container_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let fits = any_name(name, at, causes);
    let standard = OF_CONTAINERS.contains(&name) || name.starts_with("hugepages-");
    if fits && !name.contains('/') && !standard {
        let why = "must be a standard resource for containers";
        causes.push(Cause::invalid(at, &json!(name), why));
    }
}

/// The name of what a quota limits.
pub(crate) fn quota_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    any_name(name, at, causes);
    if !name.contains('/') && !is_of_quotas(name) && !is_huge(name) {
        let why = "must be a standard resource for quota";
        causes.push(Cause::invalid(at, &json!(name), why));
    }
}

fn is_huge(name: &str) -> bool {
    name.trim_start_matches("requests.").starts_with("hugepages-")
}

/// An amount of that: not negative, and whole if it is counted.
pub(crate) fn amount(name: &str, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(quantity) = Quantity::read(value) else { return };
    if quantity.is_negative() {
        causes.push(Cause::invalid(at, value, NOT_NEGATIVE));
    }
    if is_whole(name) && !quantity.is_whole() {
        causes.push(Cause::invalid(at, value, "must be an integer"));
    }
}

/// Whether only whole numbers of it make sense.
fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || (name.contains('/') && !is_native(name))
}

/// A resource of Kubernetes itself.
fn is_native(name: &str) -> bool {
    name.split_once('/').is_none_or(|(domain, _)| domain.contains("kubernetes.io/"))
}

/// The requests and limits of a container.
pub(super) fn resources(_: &Value, resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (limits, requests) = (member(resources, "limits"), member(resources, "requests"));
    for (list, name) in [(limits, "limits"), (requests, "requests")] {
        for (resource, value) in list.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}[{resource}]");
            container_name(resource, &at, causes);
            amount(resource, value, &at, causes);
        }
    }
    let requests = requests.as_object().into_iter().flatten();
    let mut unlimited = false;
    for (resource, value) in requests {
        let at = format!("{at}.requests");
        match limits.get(resource) {
            Some(limit) => within(resource, value, limit, &at, causes),
            None => unlimited |= is_fixed(resource),
        }
    }
    if unlimited {
        let why = "Limit must be set for non overcommitable resources";
        causes.push(Cause::required(format!("{at}.limits"), why));
    }
}

/// Whether what is asked for is what is had: there is no more of it on a busy node than on an idle one.
fn is_fixed(resource: &str) -> bool {
    resource.contains('/') || resource.starts_with("hugepages-")
}

fn within(resource: &str, value: &Value, limit: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (Some(wanted), Some(most)) = (Quantity::read(value), Quantity::read(limit)) else { return };
    let relation = if is_fixed(resource) && wanted.nano() != most.nano() {
        "equal to"
    } else if wanted.nano() > most.nano() {
        "less than or equal to"
    } else {
        return;
    };
    let why = format!("must be {relation} {resource} limit of {most}");
    causes.push(Cause::invalid(at, value, &why));
}
