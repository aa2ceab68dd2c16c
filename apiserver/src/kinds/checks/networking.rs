//! Ingresses, network policies, addresses and endpoints.

use serde_json::{Value, json};

use super::Test::{Between, By, Each, Has, OneOf, Required, Text};
use super::service_cidr::{is_strict_subset, legacy_problem, read_range};
use super::{Check, check_text, container_ports, is_empty, items, member, selectors};
use crate::fields::{Fields, text};
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

// === ingresses ===

const BACKEND: &[Check] = &[("", By(backend))];
const RESOURCE: &[Check] = &[("kind", Required("")), ("name", Required(""))];
const RULE: &[Check] = &[("http.paths", By(some_path)), ("http.paths", Each(PATH))];
const PATH: &[Check] = &[
    ("pathType", Required("pathType must be specified")),
    ("pathType", OneOf(&["Exact", "ImplementationSpecific", "Prefix"])),
    ("path", By(path)),
    ("backend", Has(BACKEND)),
];

pub(crate) fn ingress(ingress: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("defaultBackend", Has(BACKEND)),
        ("rules", Each(RULE)),
        ("ingressClassName", Text(names::dns_subdomain)),
    ];
    let spec = spec(ingress);
    if is_empty(member(spec, "rules")) && member(spec, "defaultBackend").is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, detail));
    }
    super::run(SPEC, spec, "spec", causes);
}

fn backend(_: &Value, backend: &Value, at: &str, causes: Causes<'_>) {
    let (service, resource) = (member(backend, "service"), member(backend, "resource"));
    match (service.is_null(), resource.is_null()) {
        (false, false) => {
            let detail = "cannot set both resource and service backends";
            causes.push(Cause::invalid(at, &json!(""), detail));
        }
        (true, true) => {
            let detail = "resource or service backend is required";
            causes.push(Cause::invalid(at, &json!(""), detail));
        }
        (true, false) => super::run(RESOURCE, resource, &format!("{at}.resource"), causes),
        (false, true) => service_backend(service, at, causes),
    }
}

fn service_backend(service: &Value, at: &str, causes: Causes<'_>) {
    const PORT: &[Check] = &[("number", Between(1, 65_535)), ("name", Text(names::port))];
    const SERVICE: &[Check] = &[("name", Required("")), ("name", Text(names::rfc_1035_label))];
    super::run(SERVICE, service, &format!("{at}.service"), causes);
    let port = member(service, "port");
    match (text(port, "name"), member(port, "number").as_i64().unwrap_or(0)) {
        ("", 0) => causes.push(Cause::required(at, "port name or number is required")),
        (_, 0) | ("", _) => {
            let port = without_zero(port);
            super::run(PORT, &port, &format!("{at}.service.port"), causes);
        }
        (..) => {
            let detail = "cannot set both port name & port number";
            causes.push(Cause::invalid(at, &json!(""), detail));
        }
    }
}

/// Returns a port without the number 0, which stands for none.
fn without_zero(port: &Value) -> Value {
    let mut port = port.clone();
    if let Some(members) = port.as_object_mut() {
        members.retain(|_, value| *value != 0);
    }
    port
}

fn some_path(_: &Value, paths: &Value, at: &str, causes: Causes<'_>) {
    if paths.as_array().is_some_and(Vec::is_empty) {
        causes.push(Cause::required(at, ""));
    }
}

fn path(around: &Value, path: &Value, at: &str, causes: Causes<'_>) {
    let needs_slash = matches!(text(around, "pathType"), "Exact" | "Prefix");
    if needs_slash && !path.as_str().unwrap_or_default().starts_with('/') {
        let shown = if path.is_null() { &json!("") } else { path };
        causes.push(Cause::invalid(at, shown, "must be an absolute path"));
    }
}

// === policies and addresses ===

pub(crate) fn network_policy(policy: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const PORT: &[Check] = &[("protocol", OneOf(&["TCP", "UDP", "SCTP"])), ("", By(policy_port))];
    const PEER: &[Check] = &[
        ("podSelector", By(selectors::selector)),
        ("namespaceSelector", By(selectors::selector)),
        ("ipBlock", By(ip_block)),
        ("", By(one_peer)),
    ];
    const IN: &[Check] = &[("ports", Each(PORT)), ("from", Each(PEER))];
    const OUT: &[Check] = &[("ports", Each(PORT)), ("to", Each(PEER))];
    const SPEC: &[Check] = &[
        ("podSelector", By(selectors::selector)),
        ("ingress", Each(IN)),
        ("egress", Each(OUT)),
        ("policyTypes", By(policy_types)),
    ];
    const RANGE: &[Check] = &[("ipBlock", Has(&[("cidr", Required(""))]))];
    const RANGES: &[Check] =
        &[("ingress", Each(&[("from", Each(RANGE))])), ("egress", Each(&[("to", Each(RANGE))]))];
    super::run(SPEC, spec(policy), "spec", causes);
    // The real server finds missing ranges in a pass of its own.
    super::run(RANGES, spec(policy), "spec", causes);
}

/// Checks the port of a rule, and the end of a range of ports.
fn policy_port(_: &Value, rule: &Value, at: &str, causes: Causes<'_>) {
    let (port, end) = (member(rule, "port"), member(rule, "endPort").as_i64());
    let invalid_end =
        |end: i64, detail: &str| Cause::invalid(format!("{at}.endPort"), &json!(end), detail);
    match (port.as_i64(), end) {
        (Some(start), end) => {
            container_ports::in_range(port, &format!("{at}.port"), causes);
            let Some(end) = end else { return };
            if end < start {
                causes.push(invalid_end(end, "must be greater than or equal to `port`"));
            }
            container_ports::in_range(&json!(end), &format!("{at}.endPort"), causes);
        }
        (None, Some(end)) if port.is_null() => {
            causes.push(invalid_end(end, "may not be specified when `port` is not specified"));
        }
        (None, end) if !port.is_null() => {
            let detail = "may not be specified when `port` is non-numeric";
            causes.extend(end.map(|end| invalid_end(end, detail)));
            check_text(port, names::port, &format!("{at}.port"), causes);
        }
        (None, _) => {}
    }
}

/// Checks a range of addresses and the exceptions from it.
fn ip_block(_: &Value, block: &Value, at: &str, causes: Causes<'_>) {
    if block.is_null() {
        return;
    }
    let range = text(block, "cidr");
    if range.is_empty() {
        return;
    }
    if let Some(detail) = legacy_problem(range) {
        causes.push(Cause::invalid(format!("{at}.cidr"), &json!(range), detail));
    }
    let Some(whole) = read_range(range) else { return };
    for (place, part) in items(member(block, "except")).iter().enumerate() {
        let at = format!("{at}.except[{place}]");
        let part_text = part.as_str().unwrap_or_default();
        if let Some(detail) = legacy_problem(part_text) {
            causes.push(Cause::invalid(at.clone(), part, detail));
        }
        if read_range(part_text).is_some_and(|part| !is_strict_subset(part, whole)) {
            causes.push(Cause::invalid(at, part, "must be a strict subset of `cidr`"));
        }
    }
}

/// A peer is a block of addresses, or pods.
fn one_peer(_: &Value, peer: &Value, at: &str, causes: Causes<'_>) {
    let is_set = |key: &str| !member(peer, key).is_null();
    let selects = is_set("podSelector") || is_set("namespaceSelector");
    match (selects, is_set("ipBlock")) {
        (false, false) => causes.push(Cause::required(at, "must specify a peer")),
        (true, true) => {
            let detail = "may not specify both ipBlock and another peer";
            causes.push(Cause::forbidden(at, detail));
        }
        _ => {}
    }
}

fn policy_types(_: &Value, types: &Value, at: &str, causes: Causes<'_>) {
    const TYPES: &[&str] = &["Ingress", "Egress"];
    if items(types).len() > TYPES.len() {
        causes.push(Cause::invalid(at, types, "may not specify more than two policyTypes"));
        return;
    }
    for (place, kind) in items(types).iter().enumerate() {
        if !kind.as_str().is_some_and(|kind| TYPES.contains(&kind)) {
            causes.push(Cause::unsupported(format!("{at}[{place}]"), kind, TYPES));
        }
    }
}

pub(crate) fn ip_address(address: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const PARENT: &[Check] = &[
        ("group", Text(names::dns_subdomain)),
        ("resource", Required("")),
        ("name", Required("")),
    ];
    const SPEC: &[Check] = &[("parentRef", Required("")), ("parentRef", Has(PARENT))];
    super::run(SPEC, spec(address), "spec", causes);
    let parent = |address| member(spec(address), "parentRef");
    if old.is_some_and(|old| parent(old) != parent(address)) {
        causes.push(Cause::invalid("spec.parentRef", &Value::Null, "field is immutable"));
    }
}
