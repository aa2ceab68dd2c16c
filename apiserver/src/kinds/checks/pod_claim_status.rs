//! The resource claims in a pod's status.

use serde_json::{Value, json};

use super::Test::{Required, Text};
use super::{Check, check_text, is_empty, items, member, text};
use crate::names;
use crate::status::Cause;

/// Checks the claims that were made for a pod (`validatePodResourceClaimStatuses` and
/// `validatePodExtendedResourceClaimStatus`).
pub(super) fn check(status: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    statuses(member(status, "resourceClaimStatuses"), spec, causes);
    let extended = member(status, "extendedResourceClaimStatus");
    if !extended.is_null() {
        check_extended(extended, spec, causes);
    }
}

fn statuses(list: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    let claims = items(member(spec, "resourceClaims"));
    let mut known = Vec::new();
    for (place, status) in items(list).iter().enumerate() {
        let at = format!("status.resourceClaimStatuses[{place}]");
        let (name, name_at) = (text(status, "name"), format!("{at}.name"));
        if claims.iter().all(|claim| text(claim, "name") != name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            causes.push(Cause::invalid(&*name_at, &json!(name), detail));
        }
        if known.contains(&name) {
            causes.push(Cause::duplicate(name_at, &json!(name)));
        }
        known.push(name);
        let claim = member(status, "resourceClaimName");
        check_text(claim, names::dns_subdomain, &format!("{at}.resourceClaimName"), causes);
    }
}

/// Checks the claim for the extended resources of a pod.
fn check_extended(extended: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    const AT: &str = "status.extendedResourceClaimStatus";
    const KEYS: [&str; 3] = ["containerName", "resourceName", "requestName"];
    const CLAIM: &[Check] =
        &[("resourceClaimName", Required("")), ("resourceClaimName", Text(names::dns_subdomain))];
    let list = member(extended, "requestMappings");
    if is_empty(list) {
        let detail = "at least one request mapping is required";
        causes.push(Cause::required(format!("{AT}.requestMappings"), detail));
    }
    let mut known = Vec::new();
    for (place, mapping) in items(list).iter().enumerate() {
        let at = format!("{AT}.requestMappings[{place}]");
        check_mapping(mapping, spec, &at, causes);
        // Upstream's path has no place in the list.
        let request = json!(text(mapping, "requestName"));
        check_text(&request, names::dns_label, &format!("{AT}.requestName"), causes);
        let key = KEYS.map(|key| text(mapping, key));
        if known.contains(&key) {
            let duplicate = |(name, value)| Cause::duplicate(format!("{at}.{name}"), &json!(value));
            causes.extend(KEYS.iter().zip(key).map(duplicate));
        }
        known.push(key);
    }
    super::run(CLAIM, extended, AT, causes);
}

/// Checks that a container requests the resource of a mapping.
fn check_mapping(mapping: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    const NO_RESOURCE: &str = "must match the extended resource name of an entry in \
        spec.initContainers.resources.requests or spec.containers.resources.requests";
    const NO_CONTAINER: &str =
        "must match the name of an entry in spec.initContainers.name or spec.containers.name";
    let [container, resource] = ["containerName", "resourceName"].map(|key| text(mapping, key));
    let lists = ["initContainers", "containers"].map(|list| items(member(spec, list)));
    let found = lists.into_iter().flatten().find(|one| text(one, "name") == container);
    let Some(found) = found else {
        let at = format!("{at}.containerName");
        causes.push(Cause::invalid(at, &json!(container), NO_CONTAINER));
        return;
    };
    if member(member(found, "resources"), "requests").get(resource).is_none() {
        let at = format!("{at}.resourceName");
        causes.push(Cause::invalid(at, &json!(resource), NO_RESOURCE));
    }
}
