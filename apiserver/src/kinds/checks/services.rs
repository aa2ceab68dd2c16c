//! Services.

use serde_json::{Value, json};

use super::Test::OneOf;
use super::addresses::{not_special, read};
use super::service_cidr::legacy_problem;
use super::workloads::spec;
use super::{Causes, check_text, container_ports, find, is_empty, items, member, selectors, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

/// The longest time that a client stays with its endpoint, in seconds.
const MAX_AFFINITY: i64 = 86_400;
const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const NO_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";

/// Checks a service, in the order of the real server.
pub(crate) fn service(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let spec = spec(object);
    let ports = items(member(spec, "ports"));
    topology(object, causes);
    addresses(spec, ports, causes);
    let mut names = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{place}]");
        port_name(port, ports.len() > 1, &mut names, &at, causes);
        service_port(port, &at, causes);
    }
    selectors::labels(spec, member(spec, "selector"), "spec.selector", causes);
    affinity(spec, causes);
    external_addresses(spec, old, causes);
    super::run(&[("type", OneOf(TYPES))], spec, "spec", causes);
    node_ports(text(spec, "type"), ports, causes);
    duplicate_ports(ports, causes);
    source_ranges(object, old, causes);
    balancer(spec, causes);
    traffic(spec, causes);
}

fn annotation<'a>(object: &'a Fields, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// Checks that the old and the new annotation for topology agree.
fn topology(object: &Fields, causes: Causes<'_>) {
    if let (Some(hints), Some(mode)) = (annotation(object, HINTS), annotation(object, MODE))
        && hints != mode
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        let at = format!("metadata.annotations[{MODE}]");
        causes.push(Cause::invalid(at, &json!(mode), &detail));
    }
}

/// Checks what the type requires of ports, addresses and the external name.
fn addresses(spec: &Value, ports: &[Value], causes: Causes<'_>) {
    let kind = text(spec, "type");
    let is_headless = text(spec, "clusterIP") == "None";
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    // A service that is created by a write to its status gets no addresses.
    if !text(spec, "clusterIP").is_empty() && is_empty(member(spec, "clusterIPs")) {
        causes.push(Cause::required("spec.clusterIPs", ""));
    }
    if is_headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &detail));
    }
    if kind != "ExternalName" {
        return;
    }
    for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !is_empty(member(spec, key)) {
            let detail = "may not be set for ExternalName services";
            causes.push(Cause::forbidden(format!("spec.{key}"), detail));
        }
    }
    let name = text(spec, "externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => causes.push(Cause::required("spec.externalName", "")),
        name => check_text(&json!(name), names::dns_subdomain, "spec.externalName", causes),
    }
}

fn port_name<'a>(
    port: &'a Value,
    is_required: bool,
    known: &mut Vec<&'a str>,
    at: &str,
    causes: Causes<'_>,
) {
    let name = text(port, "name");
    let at = format!("{at}.name");
    if name.is_empty() {
        if is_required {
            causes.push(Cause::required(at, ""));
        }
        return;
    }
    check_text(member(port, "name"), names::dns_label, &at, causes);
    if known.contains(&name) {
        causes.push(Cause::duplicate(at, &json!(name)));
    }
    known.push(name);
}

fn service_port(port: &Value, at: &str, causes: Causes<'_>) {
    container_ports::in_range(member(port, "port"), &format!("{at}.port"), causes);
    super::run(&[("protocol", OneOf(container_ports::PROTOCOLS))], port, at, causes);
    let (target, target_at) = (member(port, "targetPort"), format!("{at}.targetPort"));
    if target.is_string() {
        check_text(target, names::port, &target_at, causes);
    } else {
        let number = if target.is_null() { &json!(0) } else { target };
        container_ports::in_range(number, &target_at, causes);
    }
    let protocol = member(port, "appProtocol");
    if !protocol.is_null() {
        check_text(protocol, names::qualified, &format!("{at}.appProtocol"), causes);
    }
}

fn affinity(spec: &Value, causes: Causes<'_>) {
    const KINDS: &[&str] = &["ClientIP", "None"];
    super::run(&[("sessionAffinity", OneOf(KINDS))], spec, "spec", causes);
    let timeout = find(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");
    let timeout = timeout.filter(|_| text(spec, "sessionAffinity") == "ClientIP");
    let is_wrong = |timeout: i64| !(1..=MAX_AFFINITY).contains(&timeout);
    if let Some(timeout) = timeout.filter(|timeout| timeout.as_i64().is_some_and(is_wrong)) {
        let detail = format!("must be greater than 0 and less than {MAX_AFFINITY}");
        let at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        causes.push(Cause::invalid(at, timeout, &detail));
    }
}

fn external_addresses(spec: &Value, old: Option<&Fields>, causes: Causes<'_>) {
    let known = old.map_or(&[][..], |old| items(member(self::spec(old), "externalIPs")));
    for (place, address) in items(member(spec, "externalIPs")).iter().enumerate() {
        let at = format!("spec.externalIPs[{place}]");
        match read(address.as_str().unwrap_or_default()) {
            Ok(_) => not_special(address, &at, causes),
            Err(_) if known.contains(address) => {}
            Err(detail) => causes.push(Cause::invalid(at, address, detail)),
        }
    }
}

fn node_ports(kind: &str, ports: &[Value], causes: Causes<'_>) {
    let field = |at: usize| format!("spec.ports[{at}].nodePort");
    let node_port = |port: &Value| member(port, "nodePort").as_i64().filter(|port| *port != 0);
    for (at, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
        if kind == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(field(at), detail));
        }
    }
    let mut known = Vec::new();
    for (at, port) in ports.iter().enumerate() {
        let Some(number) = node_port(port) else { continue };
        let pair = (text(port, "protocol"), number);
        if known.contains(&pair) {
            causes.push(Cause::duplicate(field(at), &json!(number)));
        }
        known.push(pair);
    }
}

fn duplicate_ports(ports: &[Value], causes: Causes<'_>) {
    let number = |port: &Value| (text(port, "protocol").to_owned(), member(port, "port").as_i64());
    for (place, port) in ports.iter().enumerate() {
        if ports[..place].iter().any(|other| number(other) == number(port)) {
            let shown = json!({
                "Name": "", "Protocol": text(port, "protocol"), "AppProtocol": null,
                "Port": member(port, "port"), "TargetPort": 0, "NodePort": 0,
            });
            causes.push(Cause::duplicate(format!("spec.ports[{place}]"), &shown));
        }
    }
}

/// Checks the ranges of clients of a load balancer, in the spec or in an annotation.
fn source_ranges(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const RANGES: &str = "loadBalancerSourceRanges";
    const AT: &str = "spec.LoadBalancerSourceRanges";
    let is_balancer = text(spec(object), "type") == "LoadBalancer";
    let trimmed = |range: &Value| range.as_str().unwrap_or_default().trim().to_owned();
    let ranges = items(member(spec(object), RANGES));
    let in_annotation = annotation(object, RANGES_ANNOTATION);
    let at = match in_annotation {
        _ if !ranges.is_empty() => AT.to_owned(),
        Some(_) => format!("metadata.annotations[{RANGES_ANNOTATION}]"),
        None => return,
    };
    if !is_balancer {
        causes.push(Cause::forbidden(at.clone(), NO_BALANCER));
    }
    let mut check = |at: &str, range: &str| {
        if let Some(detail) = legacy_problem(range) {
            causes.push(Cause::invalid(at, &json!(range), detail));
        }
    };
    let known = old.map_or(&[][..], |old| items(member(spec(old), RANGES)));
    let known: Vec<String> = known.iter().map(trimmed).collect();
    for (place, range) in ranges.iter().map(trimmed).enumerate() {
        if !known.contains(&range) {
            check(&format!("{at}[{place}]"), &range);
        }
    }
    let before = old.and_then(|old| annotation(old, RANGES_ANNOTATION));
    let listed = in_annotation.filter(|_| ranges.is_empty() && in_annotation != before);
    if let Some(listed) = listed.filter(|listed| !listed.trim().is_empty()) {
        listed.split(',').for_each(|range| check(&at, range.trim()));
    }
}

fn balancer(spec: &Value, causes: Causes<'_>) {
    let is_balancer = text(spec, "type") == "LoadBalancer";
    if !is_balancer && !member(spec, "allocateLoadBalancerNodePorts").is_null() {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", NO_BALANCER));
    }
    let class = member(spec, "loadBalancerClass");
    match (class.is_null(), is_balancer) {
        (true, _) => {}
        (false, true) => check_text(class, names::qualified, "spec.loadBalancerClass", causes),
        (false, false) => causes.push(Cause::forbidden("spec.loadBalancerClass", NO_BALANCER)),
    }
}

/// Checks the policies for external and internal traffic.
fn traffic(spec: &Value, causes: Causes<'_>) {
    const POLICIES: &[&str] = &["Cluster", "Local"];
    const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
    let kind = text(spec, "type");
    let has_addresses = kind == "ClusterIP" && !items(member(spec, "externalIPs")).is_empty();
    let is_accessible = matches!(kind, "LoadBalancer" | "NodePort") || has_addresses;
    let policy = member(spec, "externalTrafficPolicy");
    if is_accessible {
        super::run(&[("externalTrafficPolicy", OneOf(POLICIES))], spec, "spec", causes);
    } else if !is_empty(policy) {
        let detail = "may only be set for externally-accessible services";
        causes.push(Cause::invalid("spec.externalTrafficPolicy", policy, detail));
    }
    let needs_check = kind == "LoadBalancer" && policy == "Local";
    let port = member(spec, "healthCheckNodePort");
    if !needs_check && port.as_i64().is_some_and(|port| port != 0) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                      'Local'";
        causes.push(Cause::invalid("spec.healthCheckNodePort", port, detail));
    }
    super::run(&[("internalTrafficPolicy", OneOf(POLICIES))], spec, "spec", causes);
    super::run(&[("trafficDistribution", OneOf(DISTRIBUTIONS))], spec, "spec", causes);
}
