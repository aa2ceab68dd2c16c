//! The status of a service: the addresses of its load balancer.

use serde_json::{Value, json};

use super::addresses::{address, sloppy};
use super::{check_text, is_empty, items, member, text};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

const AT: &str = "status.loadBalancer.ingress";

/// Checks the new status of a service against the stored one (`ValidateLoadBalancerStatus`).
pub(crate) fn check(service: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let [list, before] = [service, old].map(balancers);
    let kind = read_path(service, "spec.type").and_then(Value::as_str);
    if !list.is_empty() && kind != Some("LoadBalancer") {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden(AT, detail));
        return;
    }
    for (place, balancer) in list.iter().enumerate() {
        let at = format!("{AT}[{place}]");
        let ip = member(balancer, "ip");
        let is_stored = || before.iter().any(|known| member(known, "ip") == ip);
        if !is_empty(ip) && !is_stored() {
            address(ip, &format!("{at}.ip"), causes);
        }
        check_mode(balancer, &format!("{at}.ipMode"), causes);
        check_name(text(balancer, "hostname"), &format!("{at}.hostname"), causes);
    }
}

fn balancers(service: &Fields) -> &[Value] {
    read_path(service, AT).map_or(&[], items)
}

/// Checks the mode of an address. The server has set that of an address without one.
fn check_mode(balancer: &Value, at: &str, causes: &mut Vec<Cause>) {
    const MODES: [&str; 2] = ["Proxy", "VIP"];
    let mode = member(balancer, "ipMode");
    let Some(name) = mode.as_str() else { return };
    if is_empty(member(balancer, "ip")) {
        causes.push(Cause::forbidden(at, "may not be specified when `ip` is not set"));
    } else if !MODES.contains(&name) {
        causes.push(Cause::unsupported(at, mode, &MODES));
    }
}

fn check_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        return;
    }
    check_text(&json!(name), names::dns_subdomain, at, causes);
    if sloppy(name).is_some() {
        causes.push(Cause::invalid(at, &json!(name), "must be a DNS name, not an IP address"));
    }
}
