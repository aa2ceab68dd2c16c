//! The health of the devices that containers use, in a pod's status.

use serde_json::{Value, json};

use super::{is_empty, items, member, text};
use crate::quantity;
use crate::status::Cause;

/// The longest message about a device, in bytes.
const LONGEST: usize = 1024;
/// The start of a name that refers to a resource claim.
const CLAIM: &str = "claim:";

/// Checks the devices of all containers (`validateContainerStatusAllocatedResourcesStatus`).
/// Ephemeral containers have none.
pub(super) fn check(status: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        let containers = items(member(spec, containers));
        for (place, of_container) in items(member(status, list)).iter().enumerate() {
            // A status without a container is accepted.
            let same = |one: &&Value| text(one, "name") == text(of_container, "name");
            let container = containers.iter().find(same);
            check_devices(of_container, container, status, (list, place), causes);
        }
    }
    let list = "ephemeralContainerStatuses";
    for (place, of_container) in items(member(status, list)).iter().enumerate() {
        if !is_empty(member(of_container, "allocatedResourcesStatus")) {
            let at = format!("status.{list}[{place}].allocatedResourcesStatus");
            causes.push(Cause::forbidden(at, "must not be specified in container status"));
        }
    }
}

/// Checks the devices in the status of a container, at a place in a list of statuses.
fn check_devices(
    of_container: &Value,
    container: Option<&Value>,
    status: &Value,
    (list, place): (&str, usize),
    causes: &mut Vec<Cause>,
) {
    let devices = items(member(of_container, "allocatedResourcesStatus"));
    for (device_place, device) in devices.iter().enumerate() {
        let at = format!("status.{list}[{place}].allocatedResourcesStatus[{device_place}]");
        if let Some(container) = container {
            check_name(text(device, "name"), container, status, &at, causes);
        }
        check_health(device, &at, causes);
    }
}

/// Checks that a container requests the resource, or claims it.
fn check_name(name: &str, container: &Value, status: &Value, at: &str, causes: &mut Vec<Cause>) {
    const NO_CLAIM: &str = "must match one of the container's resource claims as \
        'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or \
        'claim:<claimName>' when it is empty";
    const NO_REQUEST: &str = "must match one of the container's resource requests";
    let resources = member(container, "resources");
    let (is_known, detail) = match name.strip_prefix(CLAIM) {
        Some(claim) => {
            let claims = items(member(resources, "claims"));
            let is_own = claims.iter().any(|one| reference(one) == claim);
            (is_own || is_extended(claim, container, status), NO_CLAIM)
        }
        None => (member(resources, "requests").get(name).is_some(), NO_REQUEST),
    };
    if !is_known {
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), detail));
    }
}

/// Returns `CLAIM/REQUEST`, or `CLAIM` for all requests of it.
fn reference(claim: &Value) -> String {
    match [text(claim, "name"), text(claim, "request")] {
        [name, ""] => name.to_owned(),
        [name, request] => format!("{name}/{request}"),
    }
}

/// Returns true if a reference names a request that stands for an extended resource of the
/// container.
fn is_extended(reference: &str, container: &Value, status: &Value) -> bool {
    let extended = member(status, "extendedResourceClaimStatus");
    let Some((claim, request)) = reference.split_once('/') else { return false };
    if claim.is_empty() || request.is_empty() || claim != text(extended, "resourceClaimName") {
        return false;
    }
    let requests = member(member(container, "resources"), "requests");
    items(member(extended, "requestMappings")).iter().any(|mapping| {
        let amount = quantity::read(member(requests, text(mapping, "resourceName")));
        text(mapping, "containerName") == text(container, "name")
            && text(mapping, "requestName") == request
            && amount.is_some_and(|amount| !amount.is_zero())
    })
}

fn check_health(device: &Value, at: &str, causes: &mut Vec<Cause>) {
    const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    let mut known = Vec::new();
    for (place, resource) in items(member(device, "resources")).iter().enumerate() {
        let at = format!("{at}.resources[{place}]");
        let health = text(resource, "health");
        if !HEALTH.contains(&health) {
            causes.push(Cause::unsupported(format!("{at}.health"), &json!(health), &HEALTH));
        }
        match member(resource, "message").as_str().map(str::len) {
            Some(0) => {
                let detail = "must be non-empty if specified";
                causes.push(Cause::required(format!("{at}.message"), detail));
            }
            Some(length) if length > LONGEST => {
                causes.push(Cause::too_long(format!("{at}.message"), LONGEST));
            }
            _ => {}
        }
        let id = text(resource, "resourceID");
        if known.contains(&id) {
            causes.push(Cause::duplicate(format!("{at}.resourceID"), &json!(id)));
        }
        known.push(id);
    }
}
