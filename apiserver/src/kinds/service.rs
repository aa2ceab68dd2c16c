//! What only services do: addresses and ports that the server gives out.

use serde_json::{Value, json};

use super::{checks, read_path};
use crate::object::Fields;
use crate::status::Cause;

/// How long a client stays with one pod: three hours, in seconds.
const AFFINITY_SECONDS: i64 = 10_800;
const FIRST_NODE_PORT: u64 = 30_000;
const NODE_PORTS: u64 = 2_768;

fn kind_of(spec: &Fields) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or("")
}

fn text<'a>(spec: &'a Fields, key: &str) -> &'a str {
    spec.get(key).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn affinity(spec: &Fields) -> Value {
    if text(spec, "sessionAffinity") == "ClientIP" {
        json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}})
    } else {
        Value::Null
    }
}

/// A port leads to the same one of the pod.
pub(super) fn target_port(port: &Fields) -> Value {
    port.get("port").cloned().unwrap_or_default()
}

/// The address of a load balancer is its own.
pub(super) fn ip_mode(ingress: &Fields) -> Value {
    if ingress.contains_key("ip") { json!("VIP") } else { Value::Null }
}

pub(super) fn external_policy(spec: &Fields) -> Value {
    let reachable = matches!(kind_of(spec), "NodePort" | "LoadBalancer")
        || spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if reachable { json!("Cluster") } else { Value::Null }
}

pub(super) fn internal_policy(spec: &Fields) -> Value {
    match kind_of(spec) {
        "NodePort" | "LoadBalancer" | "ClusterIP" => json!("Cluster"),
        _ => Value::Null,
    }
}

pub(super) fn allocates_node_ports(spec: &Fields) -> Value {
    if kind_of(spec) == "LoadBalancer" { json!(true) } else { Value::Null }
}

/// Gives out an address and ports, as the real server does that conformance is recorded with. They follow from the uid: so the same run has the same ones, and nothing is kept.
pub(super) fn allocate(service: &mut Fields) {
    let uid = read_path(service, "metadata.uid").and_then(Value::as_str).unwrap_or("").to_owned();
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    if kind_of(spec) == "ExternalName" {
        return;
    }
    allocate_address(spec, number_of(&uid));
    allocate_ports(spec, number_of(&uid));
}

fn allocate_address(spec: &mut Fields, number: u64) {
    let address = match text(spec, "clusterIP") {
        "" => format!("10.0.0.{}", 1 + number % 254),
        given => given.to_owned(),
    };
    spec.insert("clusterIP".to_owned(), json!(address));
    spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    let headless_without_pods = address == "None" && !spec.contains_key("selector");
    if headless_without_pods {
        // Nobody knows what its endpoints will be.
        spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4", "IPv6"]));
        spec.entry("ipFamilyPolicy").or_insert(json!("RequireDualStack"));
    } else {
        spec.entry("ipFamilies").or_insert_with(|| json!([family]));
        spec.entry("ipFamilyPolicy").or_insert(json!("SingleStack"));
    }
}

fn allocate_ports(spec: &mut Fields, number: u64) {
    let wants = match kind_of(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") == Some(&json!(true)),
        _ => false,
    };
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).filter(|_| wants);
    let ports = ports.into_iter().flatten().filter_map(Value::as_object_mut);
    for (at, port) in (0_u64..).zip(ports) {
        let free = FIRST_NODE_PORT + (number.wrapping_add(at)) % NODE_PORTS;
        port.entry("nodePort").or_insert(json!(free));
    }
    let checked = kind_of(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
    if checked {
        let free = FIRST_NODE_PORT + number.wrapping_add(NODE_PORTS / 2) % NODE_PORTS;
        spec.entry("healthCheckNodePort").or_insert(json!(free));
    }
}

/// A number that follows from the text (FNV-1a).
fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Members that only a service with an address has.
const OF_ADDRESSES: [&str; 5] =
    ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];

/// What has been given out stays, unless the update says otherwise.
pub(super) fn inherit(service: &mut Fields, old: &Fields) {
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    let was_name = kind_of(&old) == "ExternalName";
    if kind_of(spec) == "ExternalName" {
        spec.retain(|key, value| {
            was_name || !OF_ADDRESSES.contains(&key.as_str()) || Some(&*value) != old.get(key)
        });
    } else if was_name {
        allocate(service);
        return;
    } else {
        inherit_addresses(spec, &old);
    }
    inherit_ports(spec, &old);
    let uid = read_path(service, "metadata.uid").and_then(Value::as_str).unwrap_or("");
    let number = number_of(uid);
    if let Some(Value::Object(spec)) = service.get_mut("spec") {
        allocate_ports(spec, number);
    }
}

fn inherit_addresses(spec: &mut Fields, old: &Fields) {
    for key in OF_ADDRESSES {
        if let Some(value) = old.get(key) {
            spec.entry(key).or_insert_with(|| value.clone());
        }
    }
    // Who changes only the first address means both.
    let first = spec.get("clusterIP").cloned();
    if first.as_ref() != old.get("clusterIP") && spec.get("clusterIPs") == old.get("clusterIPs") {
        spec.insert("clusterIPs".to_owned(), json!([first]));
    }
}

fn inherit_ports(spec: &mut Fields, old: &Fields) {
    if !matches!(kind_of(spec), "NodePort" | "LoadBalancer") {
        return;
    }
    let known = old.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        let same = known.iter().find(|one| {
            one.get("port") == port.get("port") && one.get("protocol") == port.get("protocol")
        });
        if let Some(number) = same.and_then(|one| one.get("nodePort")) {
            port.entry("nodePort").or_insert_with(|| number.clone());
        }
    }
}

pub(super) fn validate(service: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::core::service(service, causes);
    let Some(old) = old else { return };
    let kind = |service| read_path(service, "spec.type").cloned().unwrap_or_default();
    let has_address = |service| kind(service) != "ExternalName";
    let [new_ips, old_ips] = [service, old].map(|one| read_path(one, "spec.clusterIPs"));
    let first = |ips: Option<&Value>| ips.and_then(|ips| ips.get(0)).cloned();
    if has_address(service) && has_address(old) && first(new_ips) != first(old_ips) {
        let shown = new_ips.cloned().unwrap_or_default();
        causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
    }
    let ingress = read_path(service, "status.loadBalancer.ingress");
    if ingress.is_some() && kind(service) != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden("status.loadBalancer.ingress", why));
    }
}
