//! Names and amounts of resources.

use homeostat_quantity::Quantity;
use serde_json::{Value, json};

use super::{NOT_NEGATIVE, check_text, member};
use crate::names;
use crate::quantity;
use crate::status::Cause;

/// Unqualified names that a container may request.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Unqualified names that a quota may limit, except for those that count objects.
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
/// The start of the name by which a quota limits the requests of a resource.
const REQUESTS: &str = "requests.";
/// Resources that count objects: their amounts are integers.
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

/// Returns whether the name is one of Kubernetes' own limits of a quota, other than `count/…`.
pub(super) fn is_standard_limit(name: &str) -> bool {
    is_huge(name) || (is_of_quotas(name) && name != "storage" && !name.starts_with("count/"))
}

/// Returns whether a quota may limit this unqualified name.
fn is_of_quotas(name: &str) -> bool {
    AMOUNTS.contains(&name) || COUNTED.contains(&name)
}

fn is_standard_anywhere(name: &str) -> bool {
    OF_CONTAINERS.contains(&name) || is_of_quotas(name) || name.starts_with("hugepages-")
}

/// Checks a name that must be qualified or known.
pub(super) fn any_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    check_text(&json!(name), names::qualified, at, causes);
    if causes.len() == before && !name.contains('/') && !is_standard_anywhere(name) {
        let detail = "must be a standard resource type or fully qualified";
        causes.push(Cause::invalid(at, &json!(name), detail));
    }
}

/// Checks the name of a container's resource.
pub(crate) fn container_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    any_name(name, at, causes);
    let standard = OF_CONTAINERS.contains(&name) || name.starts_with("hugepages-");
    let detail = match name.contains('/') {
        false if !standard => "must be a standard resource for containers",
        true if !is_native(name) && !is_extended(name) => {
            "doesn't follow extended resource name standard"
        }
        _ => return,
    };
    causes.push(Cause::invalid(at, &json!(name), detail));
}

/// Checks the name of a quota's resource.
pub(crate) fn quota_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    any_name(name, at, causes);
    if !name.contains('/') && !is_of_quotas(name) && !is_huge(name) {
        let detail = "must be a standard resource for quota";
        causes.push(Cause::invalid(at, &json!(name), detail));
    }
}

fn is_huge(name: &str) -> bool {
    name.trim_start_matches(REQUESTS).starts_with("hugepages-")
}

/// Checks an amount: not negative, and an integer if it counts objects.
pub(crate) fn amount(name: &str, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    not_negative(&Value::Null, value, at, causes);
    let Some(quantity) = quantity::read(value) else { return };
    if is_whole(name) && !quantity.is_integer() {
        causes.push(Cause::invalid(at, value, "must be an integer"));
    }
}

/// Checks a quantity.
pub(super) fn not_negative(_: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    if quantity::read(value).is_some_and(|quantity| quantity.is_negative()) {
        causes.push(Cause::invalid(at, value, NOT_NEGATIVE));
    }
}

/// Returns whether amounts of the resource must be integers.
fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Returns whether the resource is one of Kubernetes' own.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a quota can limit the resource, of another domain, as `requests.NAME`.
fn is_extended(name: &str) -> bool {
    let in_quota = || format!("{REQUESTS}{name}");
    !is_native(name) && !name.starts_with(REQUESTS) && names::qualified(&in_quota()).is_empty()
}

/// Checks the requests and limits of a container.
pub(super) fn resources(_: &Value, resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    requirements(resources, container_name, at, causes);
}

/// Checks requests and limits, whose names `check_name` checks.
pub(super) fn requirements(
    resources: &Value,
    check_name: fn(&str, &str, &mut Vec<Cause>),
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let (limits, requests) = (member(resources, "limits"), member(resources, "requests"));
    for (list, name) in [(limits, "limits"), (requests, "requests")] {
        for (resource, value) in list.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}[{resource}]");
            check_name(resource, &at, causes);
            amount(resource, value, &at, causes);
            pages(resource, value, &at, causes);
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
        let detail = "Limit must be set for non overcommitable resources";
        causes.push(Cause::required(format!("{at}.limits"), detail));
    }
    let has = |is: fn(&str) -> bool| {
        let lists = [limits, member(resources, "requests")].map(Value::as_object);
        lists.into_iter().flatten().any(|list| list.keys().any(|name| is(name)))
    };
    if has(is_page) && !has(|name| matches!(name, "cpu" | "memory")) {
        causes.push(Cause::forbidden(at, "HugePages require cpu or memory"));
    }
}

/// Checks that huge pages are requested in multiples of their size.
fn pages(resource: &str, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(size) = resource.strip_prefix("hugepages-") else { return };
    let Some(quantity) = quantity::read(value) else { return };
    let size = size.parse::<Quantity>().map_or(0, |size| size.value());
    if size <= 0 || quantity.value() % size != 0 {
        let detail = format!("{quantity} is not positive integer multiple of {resource}");
        causes.push(Cause::invalid(at, value, &detail));
    }
}

fn is_page(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

/// Returns whether requests must equal limits: the resource cannot be overcommitted.
fn is_fixed(resource: &str) -> bool {
    resource.contains('/') || resource.starts_with("hugepages-")
}

fn within(resource: &str, value: &Value, limit: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (Some(wanted), Some(most)) = (quantity::read(value), quantity::read(limit)) else { return };
    let relation = if is_fixed(resource) && wanted != most {
        "equal to"
    } else if wanted > most {
        "less than or equal to"
    } else {
        return;
    };
    let detail = format!("must be {relation} {resource} limit of {most}");
    causes.push(Cause::invalid(at, value, &detail));
}
