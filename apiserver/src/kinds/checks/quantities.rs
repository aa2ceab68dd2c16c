//! Names and amounts of resources.

use homeostat_quantity::Quantity;
use serde_json::{Value, json};

use super::{NOT_NEGATIVE, check_text, member};
use crate::status::Cause;
use crate::{names, quantity};

/// Unqualified names that a container may request.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Unqualified names of amounts, except for those that count objects.
const AMOUNTS: [&str; 11] = [
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
    STORAGE,
];
/// The only one of them that a quota does not limit.
const STORAGE: &str = "storage";
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

/// Returns true if the name is one of Kubernetes' own limits of a quota, other than `count/…`.
pub(super) fn is_standard_limit(name: &str) -> bool {
    is_standard_anywhere(name) && name != STORAGE
}

fn is_standard_anywhere(name: &str) -> bool {
    AMOUNTS.contains(&name) || COUNTED.contains(&name) || is_huge(name)
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
    let standard = OF_CONTAINERS.contains(&name) || is_page(name);
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
    if !name.contains('/') && !is_standard_limit(name) {
        let detail = "must be a standard resource for quota";
        causes.push(Cause::invalid(at, &json!(name), detail));
    }
}

fn is_huge(name: &str) -> bool {
    is_page(name.strip_prefix(REQUESTS).unwrap_or(name))
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

/// Returns true if amounts of the resource must be integers.
fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Returns true if the resource is one of Kubernetes' own.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns true if a quota can limit the resource, of another domain, as `requests.NAME`.
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
            let item_at = format!("{at}.{name}[{resource}]");
            check_name(resource, &item_at, causes);
            amount(resource, value, &item_at, causes);
            match limits.get(resource) {
                _ if name == "limits" => {}
                Some(limit) => within(resource, value, limit, &format!("{at}.requests"), causes),
                None if is_fixed(resource) => {
                    let detail = "Limit must be set for non overcommitable resources";
                    causes.push(Cause::required(format!("{at}.limits"), detail));
                }
                None => {}
            }
            pages(resource, value, &item_at, causes);
        }
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

/// Returns true if requests must equal limits: the resource cannot be overcommitted.
pub(super) fn is_fixed(resource: &str) -> bool {
    !is_native(resource) || is_page(resource)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(check: fn(&str, &str, &mut Vec<Cause>), name: &str) -> usize {
        let mut causes = Vec::new();
        check(name, "", &mut causes);
        causes.len()
    }

    #[test]
    fn quota_limits_requests_of_huge_pages_but_no_storage() {
        for name in ["hugepages-2Mi", "requests.hugepages-2Mi", "pods", "count/pods", "limits.cpu"]
        {
            assert_eq!(count(quota_name, name), 0, "{name}");
        }
        for name in ["storage", "requests.requests.hugepages-2Mi", "odd"] {
            assert_ne!(count(quota_name, name), 0, "{name}");
        }
        assert_eq!(count(any_name, "storage"), 0);
        assert_eq!(count(any_name, "requests.hugepages-2Mi"), 0);
        assert_eq!(count(container_name, "requests.hugepages-2Mi"), 1);
    }

    #[test]
    fn resource_of_another_domain_needs_an_equal_limit() {
        let check = |resource: &str, limit: &str| {
            let list = |amount: &str| json!({resource: amount});
            let resources = json!({"requests": list("1"), "limits": list(limit)});
            let mut causes = Vec::new();
            super::resources(&Value::Null, &resources, "r", &mut causes);
            causes.iter().map(Cause::text).collect::<Vec<_>>()
        };
        assert_eq!(check("kubernetes.io/a", "2"), [""; 0]);
        let detail = "must be equal to example.com/a limit of 2";
        assert_eq!(
            check("example.com/a", "2"),
            [format!("r.requests: Invalid value: \"1\": {detail}")]
        );
    }
}
