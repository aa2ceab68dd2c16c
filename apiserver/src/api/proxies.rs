//! Requests that the real server sends on to a pod, a service or a node: its checks before that.

use std::net::IpAddr;
use std::sync::Arc;

use homeostat_core::go_quote;
use homeostat_faults::RequestInfo;
use serde_json::Value;

use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::object::Stored;
use crate::status::{Failure, ResourceName, Result};

/// The label of the slices of a service; its value is the name of the service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The destination that a request names: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
struct Destination<'a> {
    name: &'a str,
    port: &'a str,
}

/// Fails if the real server does not send the request on.
pub(super) fn check(core: &Core, info: &RequestInfo) -> Result<()> {
    let singular = match &*info.resource {
        "pods" => "pod",
        "nodes" => "node",
        "services" => "service",
        _ => return Ok(()),
    };
    let id = info.name.as_deref().unwrap_or_default();
    let namespace = info.namespace.as_deref().unwrap_or_default();
    let destination = Destination::of(id).ok_or_else(|| {
        Failure::bad_request(format!("invalid {singular} request {}", go_quote(id)))
    })?;
    match singular {
        "pod" => check_pod(&find(core, "pods", namespace, destination.name)?),
        "node" => find(core, "nodes", "", destination.name).map(drop),
        _ => check_service(core, namespace, &destination),
    }
}

fn check_pod(pod: &Fields) -> Result<()> {
    let address = read_path(pod, "status.podIP").and_then(Value::as_str);
    let address = address.and_then(|text| text.parse().ok());
    if address.is_some_and(is_global_unicast) {
        Ok(())
    } else {
        Err(Failure::bad_request("address not allowed"))
    }
}

/// Fails if no pod is ready behind the port of a service.
fn check_service(core: &Core, namespace: &str, destination: &Destination<'_>) -> Result<()> {
    let name = destination.name;
    let port = match destination.port.parse::<i64>() {
        Ok(number) => name_of_port(core, (namespace, name), number)?,
        Err(_) => destination.port.to_owned(),
    };
    let slices = slices_of(core, namespace, name);
    let has_port = |slice: &&Arc<Stored>| {
        let fields = slice.fields();
        let ports = fields.get("ports").and_then(Value::as_array);
        ports.into_iter().flatten().any(|one| one["name"] == *port && one["port"].is_number())
    };
    let is_served = slices.iter().filter(has_port).any(|slice| {
        let fields = slice.fields();
        let endpoints = fields.get("endpoints").and_then(Value::as_array);
        endpoints.into_iter().flatten().any(|endpoint| {
            endpoint["conditions"]["ready"] != false && is_pod(core, namespace, endpoint)
        })
    });
    if is_served {
        return Ok(());
    }
    Err(unavailable(format!("no endpoints available for service {}", go_quote(name))))
}

/// Returns the name of a service's port, which is empty if the service has only one.
fn name_of_port(core: &Core, (namespace, name): (&str, &str), number: i64) -> Result<String> {
    let service = find(core, "services", namespace, name)?;
    let ports = read_path(&service, "spec.ports").and_then(Value::as_array);
    let declared = ports.into_iter().flatten().find(|port| port["port"] == number);
    let declared = declared.ok_or_else(|| {
        let name = go_quote(name);
        unavailable(format!("no service port {number} found for service {name}"))
    })?;
    Ok(declared["name"].as_str().unwrap_or_default().to_owned())
}

fn slices_of(core: &Core, namespace: &str, service: &str) -> Vec<Arc<Stored>> {
    let Some(served) = core.kinds().find("discovery.k8s.io", "v1", "endpointslices") else {
        return Vec::new();
    };
    let mut slices = core.objects_in(served.resource, namespace);
    slices.retain(|slice| slice.fields()["metadata"]["labels"][SERVICE_LABEL] == service);
    slices
}

/// Returns true if the first address of an endpoint is one of the pod that it names.
fn is_pod(core: &Core, namespace: &str, endpoint: &Value) -> bool {
    let (target, address) = (&endpoint["targetRef"], &endpoint["addresses"][0]);
    let Some(pod) = target["name"].as_str().filter(|_| target["namespace"] == namespace) else {
        return false;
    };
    let Some(pod) = core.find("pods", namespace, pod) else { return false };
    let pod = pod.fields();
    let addresses = read_path(&pod, "status.podIPs").and_then(Value::as_array);
    addresses.into_iter().flatten().any(|own| own["ip"] == *address)
}

fn unavailable(message: String) -> Failure {
    Failure::new(503, "ServiceUnavailable", message)
}

/// Returns an object of the core group.
fn find(core: &Core, plural: &str, namespace: &str, name: &str) -> Result<Fields> {
    match core.find(plural, namespace, name) {
        Some(stored) => Ok(stored.fields()),
        None => Err(Failure::not_found(ResourceName::built_in("", plural), name)),
    }
}

/// Go's `IP.IsGlobalUnicast`.
fn is_global_unicast(address: IpAddr) -> bool {
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_special && !is_local
}

// === impl Destination ===

impl<'a> Destination<'a> {
    /// Splits the name in a request. Returns `None` if it is malformed.
    fn of(id: &'a str) -> Option<Self> {
        let parts: Vec<&str> = id.split(':').collect();
        let (scheme, name, port) = match *parts {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let is_valid = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        is_valid.then_some(Self { name, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_has_a_name_and_perhaps_a_port_and_a_scheme() {
        let of = |id| Destination::of(id).map(|Destination { name, port }| (name, port));
        assert_eq!(of("a"), Some(("a", "")));
        assert_eq!(of("a:80"), Some(("a", "80")));
        assert_eq!(of("https:a:web"), Some(("a", "web")));
        assert_eq!(of("http:a:"), Some(("a", "")));
        for id in ["", ":80", "ftp:a:80", "https::80", "http:a:80:1"] {
            assert_eq!(of(id), None, "{id}");
        }
    }

    #[test]
    fn loopback_and_link_local_addresses_are_not_global() {
        for (address, expected) in [
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("127.0.0.1", false),
            ("169.254.0.1", false),
            ("0.0.0.0", false),
            ("fe80::1", false),
            ("224.0.0.1", false),
        ] {
            assert_eq!(is_global_unicast(address.parse().unwrap()), expected, "{address}");
        }
    }
}
