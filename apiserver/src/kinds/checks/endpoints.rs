//! Endpoints of services.

use serde_json::{Value, json};

use super::Test::{By, Each, OneOf, Required, Text};
use super::{Causes, Check, addresses, check_text, container_ports, is_empty, items, member};
use crate::fields::{Fields, are_kept, text};
use crate::names;
use crate::status::Cause;

const TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
const MAX_PORTS: usize = 20_000;
const MAX_ENDPOINTS: usize = 1_000;
const MAX_ADDRESSES: usize = 100;
/// The most zones, and the most nodes, that an endpoint is meant for.
const MAX_HINTS: usize = 8;

pub(crate) fn endpoints(endpoints: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const ADDRESS: &[Check] = &[
        ("ip", By(address)),
        ("hostname", Text(names::dns_label)),
        ("nodeName", By(node_name)),
        ("ip", By(endpoint)),
    ];
    const SUBSET: &[Check] = &[
        ("", By(some_address)),
        ("addresses", Each(ADDRESS)),
        ("notReadyAddresses", Each(ADDRESS)),
        ("ports", By(subset_ports)),
    ];
    if are_kept(endpoints, old, &["subsets"]) {
        return; // Older servers accepted more.
    }
    let subsets = endpoints.get("subsets").unwrap_or(&Value::Null);
    for (place, subset) in items(subsets).iter().enumerate() {
        super::run(SUBSET, subset, &format!("subsets[{place}]"), causes);
    }
}

fn some_address(_: &Value, subset: &Value, at: &str, causes: Causes<'_>) {
    if is_empty(member(subset, "addresses")) && is_empty(member(subset, "notReadyAddresses")) {
        let detail = "must specify `addresses` or `notReadyAddresses`";
        causes.push(Cause::required(at, detail));
    }
}

fn address(_: &Value, address: &Value, at: &str, causes: Causes<'_>) {
    addresses::address(address, at, causes);
}

fn endpoint(_: &Value, address: &Value, at: &str, causes: Causes<'_>) {
    addresses::not_special(address, at, causes);
}

fn node_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    check_text(name, names::dns_subdomain, at, causes);
}

fn subset_ports(_: &Value, ports: &Value, at: &str, causes: Causes<'_>) {
    let ports = items(ports);
    for (place, port) in ports.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if ports.len() > 1 {
            super::run(&[("name", Required(""))], port, &at, causes);
        }
        super::run(&[("name", Text(names::dns_label))], port, &at, causes);
        let number = port.get("port").unwrap_or(&Value::Null);
        let number = if number.is_null() { &json!(0) } else { number };
        container_ports::in_range(number, &format!("{at}.port"), causes);
        protocols(port, &at, causes);
    }
}

fn protocols(port: &Value, at: &str, causes: Causes<'_>) {
    super::run(&[("protocol", OneOf(container_ports::PROTOCOLS))], port, at, causes);
    let protocol = member(port, "appProtocol");
    check_text(protocol, names::qualified, &format!("{at}.appProtocol"), causes);
}

pub(crate) fn endpoint_slice(slice: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let get = |key: &str| slice.get(key).unwrap_or(&Value::Null);
    let address_type = get("addressType");
    if is_empty(address_type) {
        causes.push(Cause::required("addressType", ""));
    } else if !TYPES.contains(&address_type.as_str().unwrap_or_default()) {
        causes.push(Cause::unsupported("addressType", address_type, TYPES));
    }
    slice_ports(items(get("ports")), causes);
    if !are_kept(slice, old, &["endpoints"]) {
        slice_endpoints(items(get("endpoints")), text_of(address_type), causes);
    }
    super::unchanged(&["addressType"], slice, old, causes);
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn slice_ports(ports: &[Value], causes: Causes<'_>) {
    if is_too_many("ports", ports, MAX_PORTS, causes) {
        return;
    }
    let mut known = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        let (at, name) = (format!("ports[{place}]"), text(port, "name"));
        super::run(&[("name", Text(names::dns_label))], port, &at, causes);
        if known.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        }
        known.push(name);
        protocols(port, &at, causes);
    }
}

fn slice_endpoints(endpoints: &[Value], address_type: &str, causes: Causes<'_>) {
    if is_too_many("endpoints", endpoints, MAX_ENDPOINTS, causes) {
        return;
    }
    for (place, endpoint) in endpoints.iter().enumerate() {
        let at = format!("endpoints[{place}]");
        let addresses_at = format!("{at}.addresses");
        let all = items(member(endpoint, "addresses"));
        if all.is_empty() {
            causes.push(Cause::required(&*addresses_at, ""));
        }
        is_too_many(&addresses_at, all, MAX_ADDRESSES, causes);
        for (place, address) in all.iter().enumerate() {
            slice_address(address_type, address, (&addresses_at, place), causes);
        }
        check_text(
            member(endpoint, "nodeName"),
            names::dns_subdomain,
            &format!("{at}.nodeName"),
            causes,
        );
        check_text(
            member(endpoint, "hostname"),
            names::dns_label,
            &format!("{at}.hostname"),
            causes,
        );
        hints(member(endpoint, "hints"), &at, causes);
    }
}

/// Reports a list that is too long. Returns true if it is.
fn is_too_many(at: &str, list: &[Value], most: usize, causes: Causes<'_>) -> bool {
    let is_wrong = list.len() > most;
    if is_wrong {
        causes.push(Cause::too_many(at, list.len(), most));
    }
    is_wrong
}

fn slice_address(kind: &str, address: &Value, (list, place): (&str, usize), causes: Causes<'_>) {
    let at = format!("{list}[{place}]");
    let text = text_of(address);
    let wrong_family = match kind {
        "IPv4" => {
            if let Err(detail) = addresses::read(text) {
                causes.push(Cause::invalid(&*at, address, detail));
                return;
            }
            (!text.contains('.')).then_some("must be an IPv4 address")
        }
        "IPv6" => {
            if !addresses::canonical(address, &at, causes) {
                return;
            }
            (!text.contains(':')).then_some("must be an IPv6 address")
        }
        "FQDN" => return full_name(address, &at, causes),
        _ => return,
    };
    causes.extend(wrong_family.map(|detail| Cause::invalid(list, address, detail)));
    addresses::not_special(address, &at, causes);
}

/// Checks a domain name with at least two parts (`IsFullyQualifiedDomainName`).
fn full_name(name: &Value, at: &str, causes: Causes<'_>) {
    let text = text_of(name);
    if text.is_empty() {
        return causes.push(Cause::required(at, ""));
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let problems = names::dns_subdomain(text);
    if !problems.is_empty() {
        causes.push(Cause::invalid(at, &json!(text), &problems.join(",")));
    } else if !text.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(at, &json!(text), detail));
    } else if let Some((label, problems)) = text
        .split('.')
        .map(|label| (label, names::dns_label(label)))
        .find(|(_, problems)| !problems.is_empty())
    {
        causes.push(Cause::invalid(at, &json!(label), &problems.join(",")));
    }
}

fn hints(hints: &Value, at: &str, causes: Causes<'_>) {
    for (list, check) in
        [("forZones", names::label_value as names::NameCheck), ("forNodes", names::dns_subdomain)]
    {
        let (all, at) = (items(member(hints, list)), format!("{at}.hints.{list}"));
        if is_too_many(&at, all, MAX_HINTS, causes) {
            return;
        }
        let mut known = Vec::new();
        for (place, item) in all.iter().enumerate() {
            let (at, name) = (format!("{at}[{place}].name"), text(item, "name"));
            if known.contains(&name) {
                causes.push(Cause::duplicate(&*at, &json!(name)));
            }
            known.push(name);
            check_text(&json!(name), check, &at, causes);
        }
    }
}
