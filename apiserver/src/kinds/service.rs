//! Services: addresses and ports.

mod allocation;
mod families;

pub(crate) use allocation::{Allocations, Allocator};

use serde_json::{Value, json};

use super::checks;
use crate::fields::{Fields, are_kept, read_path};
use crate::status::{Cause, Result};

/// The default duration of client affinity: 3 hours, in seconds.
const AFFINITY_SECONDS: i64 = 10_800;

fn kind_of(spec: &Fields) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or("")
}

fn text<'a>(spec: &'a Fields, key: &str) -> &'a str {
    spec.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(spec: &'a Fields, key: &str) -> &'a [Value] {
    spec.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_headless(spec: &Fields) -> bool {
    text(spec, "clusterIP") == "None"
}

fn node_ports(spec: &Fields) -> Vec<Value> {
    list(spec, "ports").iter().filter_map(|port| port.get("nodePort")).cloned().collect()
}

/// Returns true if a service of this type may have node ports.
fn has_node_ports(spec: &Fields) -> bool {
    matches!(kind_of(spec), "NodePort" | "LoadBalancer")
}

/// Returns true if clients outside of the cluster can reach a service.
fn is_reachable(spec: &Fields) -> bool {
    has_node_ports(spec) || (kind_of(spec) == "ClusterIP" && !list(spec, "externalIPs").is_empty())
}

/// Returns true if a service has a node port for each port: the server chooses those that the
/// client leaves open.
fn needs_node_ports(spec: &Fields) -> bool {
    match kind_of(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)),
        _ => false,
    }
}

/// Returns true if a service has a node port for health checks.
fn needs_health_check(spec: &Fields) -> bool {
    kind_of(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Sets the time of an affinity that has none, and drops that of a service without affinity.
pub(super) fn complete_affinity(service: &mut Fields) {
    const CONFIG: &str = "sessionAffinityConfig";
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    match text(spec, "sessionAffinity") {
        "None" | "" => drop(spec.remove(CONFIG)),
        "ClientIP"
            if read_path(spec, "sessionAffinityConfig.clientIP.timeoutSeconds").is_none() =>
        {
            let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
            spec.insert(CONFIG.to_owned(), config);
        }
        _ => {}
    }
}

/// The target port is the port by default.
pub(super) fn target_port(port: &Fields) -> Value {
    port.get("port").cloned().unwrap_or_default()
}

/// A load balancer's address is its own by default.
pub(super) fn ip_mode(ingress: &Fields) -> Value {
    if ingress.contains_key("ip") { json!("VIP") } else { Value::Null }
}

pub(super) fn external_policy(spec: &Fields) -> Value {
    if is_reachable(spec) { json!("Cluster") } else { Value::Null }
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

/// Gives a new service, or the new state of one (whose old state is given), its cluster IP and node
/// ports; removes those that it no longer has.
pub(super) fn allocate(
    service: &mut Fields,
    old: Option<&Fields>,
    allocator: Allocator<'_>,
) -> Result<()> {
    allocation::allocate(service, old, allocator)?;
    if let Some(old) = old {
        drop_unused(service, old);
    }
    if let Some(Value::Object(spec)) = service.get_mut("spec")
        && kind_of(spec) == "ExternalName"
    {
        // The real server keeps the policy that a client sends, and never shows it.
        spec.remove("internalTrafficPolicy");
    }
    Ok(())
}

/// Completes an update of a service: what the server has allocated stays if the client omits it.
pub(super) fn inherit(service: &mut Fields, old: &Fields) {
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    if kind_of(spec) != "ExternalName" && kind_of(&old) != "ExternalName" {
        for key in ["clusterIP", "clusterIPs"] {
            inherit_member(spec, &old, key);
        }
    }
    if needs_node_ports(spec) && needs_node_ports(&old) {
        inherit_node_ports(spec, &old);
    }
    if needs_health_check(spec) && needs_health_check(&old) {
        if spec.get("healthCheckNodePort") == Some(&json!(0)) {
            spec.remove("healthCheckNodePort");
        }
        inherit_member(spec, &old, "healthCheckNodePort");
    }
    synchronize_addresses(spec, &old);
}

fn inherit_member(spec: &mut Fields, old: &Fields, key: &str) {
    if let Some(value) = old.get(key) {
        spec.entry(key).or_insert_with(|| value.clone());
    }
}

/// Gives each port the node port that the port of its name had, unless another port has it now.
fn inherit_node_ports(spec: &mut Fields, old: &Fields) {
    let known = node_ports(old);
    let mut used = node_ports(spec);
    used.retain(|number| known.contains(number));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        let same = list(old, "ports").iter().rfind(|known| known.get("name") == port.get("name"));
        let number = same.and_then(|known| known.get("nodePort"));
        if let Some(number) = number.filter(|number| !used.contains(number)) {
            port.entry("nodePort").or_insert_with(|| number.clone());
        }
    }
}

/// Applies a change of the first address to the list of addresses, for clients that know only the
/// first. If they keep it, the list stays.
fn synchronize_addresses(spec: &mut Fields, old: &Fields) {
    let is_changed = text(spec, "clusterIP") != text(old, "clusterIP");
    if !is_changed && list(spec, "clusterIPs").is_empty() {
        inherit_member(spec, old, "clusterIPs");
    }
    if !is_changed || list(spec, "clusterIPs") != list(old, "clusterIPs") {
        return;
    }
    match text(spec, "clusterIP") {
        "" => spec.remove("clusterIPs"),
        first => {
            let addresses = json!([first]);
            spec.insert("clusterIPs".to_owned(), addresses)
        }
    };
}

/// Removes what the new type of a service does not have, as far as the client has not changed it.
fn drop_unused(service: &mut Fields, old: &Fields) {
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    let drop_same = |spec: &mut Fields, keys: &[&str]| {
        if keys.iter().all(|key| spec.get(*key) == old.get(*key)) {
            spec.retain(|key, _| !keys.contains(&key.as_str()));
        }
    };
    if kind_of(spec) == "ExternalName" && kind_of(&old) != "ExternalName" {
        drop_same(spec, &["clusterIP", "clusterIPs"]);
        drop_same(spec, &["ipFamilies"]);
        drop_same(spec, &["ipFamilyPolicy"]);
        drop_same(spec, &["internalTrafficPolicy"]);
    }
    if has_node_ports(&old) && !has_node_ports(spec) {
        drop_node_ports(spec, &old);
    }
    if needs_health_check(&old) && !needs_health_check(spec) {
        drop_same(spec, &["healthCheckNodePort"]);
    }
    let is_balancer = |spec: &Fields| kind_of(spec) == "LoadBalancer";
    if is_balancer(&old) && !is_balancer(spec) {
        drop_same(spec, &["allocateLoadBalancerNodePorts"]);
        drop_same(spec, &["loadBalancerClass"]);
    }
    if is_reachable(&old) && !is_reachable(spec) {
        drop_same(spec, &["externalTrafficPolicy"]);
    }
    if !is_balancer(spec)
        && let Some(Value::Object(status)) = service.get_mut("status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

fn drop_node_ports(spec: &mut Fields, old: &Fields) {
    let known = node_ports(old);
    if !node_ports(spec).iter().all(|port| known.contains(port)) {
        return;
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    ports.filter_map(Value::as_object_mut).for_each(|port| drop(port.remove("nodePort")));
}

pub(super) fn validate(service: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    if let Some(old) = old {
        validate_update(service, old, causes);
    }
    if !are_kept(service, old, &["spec", "metadata.annotations"]) {
        checks::services::service(service, old, causes);
    }
    if let Some(old) = old.filter(|_| !are_kept(service, old, &["status"])) {
        checks::service_status::check(service, old, causes);
    }
}

/// Checks that an update keeps what the server has allocated.
fn validate_update(service: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let specs = [service, old].map(|one| one.get("spec").and_then(Value::as_object));
    let [Some(spec), Some(old)] = specs else { return };
    let has_address = |spec| kind_of(spec) != "ExternalName";
    let first = |spec| list(spec, "clusterIPs").first();
    if has_address(spec) && has_address(old) && first(spec) != first(old) {
        let shown = spec.get("clusterIPs").cloned().unwrap_or_default();
        causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
    }
    validate_class(spec, old, causes);
    if needs_health_check(spec)
        && needs_health_check(old)
        && spec.get("healthCheckNodePort") != old.get("healthCheckNodePort")
    {
        causes.push(Cause::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
}

/// The class of a load balancer stays as long as the service is one.
fn validate_class(spec: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    const CLASS: &str = "loadBalancerClass";
    let are_balancers = [spec, old].iter().all(|spec| kind_of(spec) == "LoadBalancer");
    if are_balancers && spec.get(CLASS) != old.get(CLASS) {
        let shown = spec.get(CLASS).cloned().unwrap_or_default();
        let field = format!("spec.{CLASS}");
        causes.push(Cause::invalid(field, &shown, "may not change once set"));
    }
}
