//! The warnings about services, and about addresses.
//!
//! Validation refuses an address that programs read in different ways. One that is valid, but not
//! in the form in which others write it, is warned about.

use std::net::Ipv6Addr;

use serde_json::Value;

use super::annotations::INGRESS_CLASS;
use super::checks::{items, member};
use crate::fields::{Fields, read_path, text};

const NULL: &Value = &Value::Null;
/// The label of the controller that writes an object. Those of the server write canonical
/// addresses.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLERS: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

/// Warnings, as they are collected.
#[derive(Default)]
struct Found(Vec<String>);

/// Returns the warnings about a service (upstream's `GetWarningsForService`).
pub(super) fn service(service: &Fields, _: Option<&Fields>) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = service.get("spec").unwrap_or(NULL);
    let is_set = |key: &str| !text(spec, key).is_empty();
    let has_external = !items(member(spec, "externalIPs")).is_empty();
    let is_name = text(spec, "type") == "ExternalName";
    let is_headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None";
    let annotations = read_path(service, "metadata.annotations").unwrap_or(NULL);
    let mut found = Found::default();
    found.add_if(
        annotations.get(HINTS).is_some(),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    found.addresses(member(spec, "clusterIPs"), "spec.clusterIPs");
    if is_headless {
        let has_affinity = text(spec, "sessionAffinity") != "None";
        found.add_if(
            is_set("loadBalancerIP"),
            "spec.loadBalancerIP is ignored for headless services",
        );
        found.add_if(has_external, "spec.externalIPs is ignored for headless services");
        found.add_if(has_affinity, "spec.SessionAffinity is ignored for headless services");
    }
    found.addresses(member(spec, "externalIPs"), "spec.externalIPs");
    found.add_if(
        has_external && !is_headless && !is_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    found.address(text(spec, "loadBalancerIP"), "spec.loadBalancerIP");
    found.ranges(member(spec, "loadBalancerSourceRanges"), "spec.loadBalancerSourceRanges");
    found.add_if(
        is_name && has_external,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    found.add_if(
        !is_name && is_set("externalName"),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    found.add_if(
        text(spec, "trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    found.0
}

/// Returns the warnings about the addresses in the status of a pod.
pub(super) fn pod_status(pod: &Fields) -> Vec<String> {
    let mut found = Found::default();
    for list in ["status.podIPs", "status.hostIPs"] {
        for (place, item) in items(read_path(pod, list).unwrap_or(NULL)).iter().enumerate() {
            found.address(text(item, "ip"), &format!("{list}[{place}].ip"));
        }
    }
    found.0
}

/// Returns the warnings about the load balancers in the status of a service or an ingress.
pub(super) fn balancers(object: &Fields) -> Vec<String> {
    const LIST: &str = "status.loadBalancer.ingress";
    let mut found = Found::default();
    for (place, item) in items(read_path(object, LIST).unwrap_or(NULL)).iter().enumerate() {
        // Upstream's path ends with the place.
        found.address(text(item, "ip"), &format!("{LIST}[{place}]"));
    }
    found.0
}

/// Returns the warnings about an ingress.
pub(super) fn ingress(ingress: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut found = Found::default();
    let annotations = read_path(ingress, "metadata.annotations").unwrap_or(NULL);
    let class = read_path(ingress, "spec.ingressClassName").unwrap_or(NULL);
    found.add_if(
        old.is_none() && annotations.get(INGRESS_CLASS).is_some() && class.is_null(),
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use \
         'spec.ingressClassName' instead",
    );
    found.0
}

/// Returns the warnings about endpoints.
pub(super) fn endpoints(endpoints: &Fields, _: Option<&Fields>) -> Vec<String> {
    let mut found = Found::default();
    if manager(endpoints, "endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return found.0;
    }
    let subsets = items(endpoints.get("subsets").unwrap_or(NULL)).iter().enumerate();
    for (place, subset) in subsets {
        for list in ["addresses", "notReadyAddresses"] {
            for (number, address) in items(member(subset, list)).iter().enumerate() {
                let at = format!("subsets[{place}].{list}[{number}].ip");
                found.address(text(address, "ip"), &at);
            }
        }
    }
    found.0
}

/// Returns the warnings about a slice of endpoints.
pub(super) fn endpoint_slice(slice: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut found = Found::default();
    let kind = slice.get("addressType").and_then(Value::as_str);
    found.add_if(
        old.is_none() && kind == Some("FQDN"),
        "spec.addressType: FQDN endpoints are deprecated",
    );
    if SLICE_CONTROLLERS.contains(&manager(slice, MANAGED_BY)) {
        return found.0;
    }
    let endpoints = items(slice.get("endpoints").unwrap_or(NULL)).iter().enumerate();
    for (place, endpoint) in endpoints {
        found.addresses(member(endpoint, "addresses"), &format!("endpoints[{place}].addresses"));
    }
    found.0
}

/// Returns the warnings about a network policy.
pub(super) fn network_policy(policy: &Fields, _: Option<&Fields>) -> Vec<String> {
    let mut found = Found::default();
    let spec = policy.get("spec").unwrap_or(NULL);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (place, rule) in items(member(spec, rules)).iter().enumerate() {
            for (number, peer) in items(member(rule, peers)).iter().enumerate() {
                let at = format!("spec.{rules}[{place}].{peers}[{number}].ipBlock");
                let block = member(peer, "ipBlock");
                found.range(member(block, "cidr"), &format!("{at}.cidr"));
                found.ranges(member(block, "except"), &format!("{at}.except"));
            }
        }
    }
    found.0
}

/// Returns the warnings about the addresses of a pod, at the path of its spec.
pub(super) fn pod_addresses(spec: &Value, at: &str) -> Vec<String> {
    let mut found = Found::default();
    let servers = member(member(spec, "dnsConfig"), "nameservers");
    found.addresses(servers, &format!("{at}.dnsConfig.nameservers"));
    for (place, alias) in items(member(spec, "hostAliases")).iter().enumerate() {
        found.address(text(alias, "ip"), &format!("{at}.hostAliases[{place}].ip"));
    }
    found.0
}

fn manager<'a>(object: &'a Fields, label: &str) -> &'a str {
    let labels = read_path(object, "metadata.labels").unwrap_or(NULL);
    text(labels, label)
}

// === impl Found ===

impl Found {
    fn add_if(&mut self, is_wrong: bool, warning: &str) {
        if is_wrong {
            self.0.push(warning.to_owned());
        }
    }

    fn addresses(&mut self, list: &Value, at: &str) {
        for (place, address) in items(list).iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            self.address(address, &format!("{at}[{place}]"));
        }
    }

    fn address(&mut self, address: &str, at: &str) {
        if let Some(canonical) = canonical(address).filter(|canonical| canonical != address) {
            self.0.push(format!(
                "{at}: IPv6 address \"{address}\" should be in RFC 5952 canonical format \
                 (\"{canonical}\")"
            ));
        }
    }

    fn ranges(&mut self, list: &Value, at: &str) {
        for (place, range) in items(list).iter().enumerate() {
            self.range(range, &format!("{at}[{place}]"));
        }
    }

    fn range(&mut self, range: &Value, at: &str) {
        let range = range.as_str().unwrap_or_default();
        let Some((address, bits)) = range.split_once('/') else { return };
        if let Some(canonical) = canonical(address).filter(|canonical| canonical != address) {
            self.0.push(format!(
                "{at}: IPv6 CIDR value \"{range}\" should be in RFC 5952 canonical format \
                 (\"{canonical}/{bits}\")"
            ));
        }
    }
}

/// Returns the canonical form of an IPv6 address.
fn canonical(address: &str) -> Option<String> {
    address.parse::<Ipv6Addr>().ok().map(|address| address.to_string())
}
