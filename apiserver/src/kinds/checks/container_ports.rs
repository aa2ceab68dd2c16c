//! The ports of containers.

use serde_json::{Value, json};

use super::Test::{Between, By, OneOf};
use super::{Check, items, member, text};
use crate::names;
use crate::status::Cause;

pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const PORT: &[Check] = &[
    ("containerPort", By(number)),
    ("hostPort", Between(1, 65_535)),
    ("protocol", OneOf(PROTOCOLS)),
];

/// Checks the ports of a container (`validateContainerPorts`).
pub(super) fn check(_: &Value, ports: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut known: Vec<&str> = Vec::new();
    for (place, port) in items(ports).iter().enumerate() {
        let (at, name) = (format!("{at}[{place}]"), text(port, "name"));
        let problems = if name.is_empty() { Vec::new() } else { names::port(name) };
        let name_at = format!("{at}.name");
        if problems.is_empty() && known.contains(&name) {
            causes.push(Cause::duplicate(&*name_at, &json!(name)));
        } else if problems.is_empty() && !name.is_empty() {
            known.push(name);
        }
        let invalid = |detail| Cause::invalid(&*name_at, &json!(name), detail);
        causes.extend(problems.iter().map(|detail| invalid(detail)));
        super::run(PORT, port, &at, causes);
    }
}

fn number(_: &Value, port: &Value, at: &str, causes: &mut Vec<Cause>) {
    match port.as_i64() {
        Some(0) | None => causes.push(Cause::required(at, "")),
        Some(_) => in_range(port, at, causes),
    }
}

/// Checks that a value is the number of a port.
pub(super) fn in_range(number: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !number.as_i64().is_some_and(|number| (1..=65_535).contains(&number)) {
        causes.push(Cause::invalid(at, number, "must be between 1 and 65535, inclusive"));
    }
}

/// Checks that no two containers have one port of the host.
pub(super) fn check_hosts(containers: &[Value], at: &str, causes: &mut Vec<Cause>) {
    let mut known = Vec::new();
    for (place, container) in containers.iter().enumerate() {
        for (port_place, port) in items(member(container, "ports")).iter().enumerate() {
            let number = member(port, "hostPort").as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let [protocol, address] = ["protocol", "hostIP"].map(|key| text(port, key));
            let shown = format!("{protocol}/{address}/{number}");
            if known.contains(&shown) {
                let at = format!("{at}[{place}].ports[{port_place}].hostPort");
                causes.push(Cause::duplicate(at, &json!(shown)));
            } else {
                known.push(shown);
            }
        }
    }
}

/// Checks that ports of a pod on the host's network are those of the host. A template may leave
/// them out.
pub(super) fn check_host_network(spec: &Value, is_pod: bool, at: &str, causes: &mut Vec<Cause>) {
    if member(spec, "hostNetwork") != true {
        return;
    }
    for (place, container) in items(member(spec, "containers")).iter().enumerate() {
        for (port_place, port) in items(member(container, "ports")).iter().enumerate() {
            let number = |key| member(port, key).as_i64().unwrap_or_default();
            let host_port = number("hostPort");
            if (is_pod || host_port != 0) && host_port != number("containerPort") {
                let at = format!("{at}.containers[{place}].ports[{port_place}].hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(at, &json!(host_port), detail));
            }
        }
    }
}
