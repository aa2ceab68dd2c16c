//! Ingresses.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::Test::{By, Each, Has, Required, Text};
use super::{Causes, Check, addresses, check_text, container_ports, find, is_empty, items, member};
use crate::fields::{Fields, are_kept, read_path, text};
use crate::kinds::annotations::INGRESS_CLASS;
use crate::names;
use crate::status::Cause;

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
/// Parts that a path must not have, since proxies read them in different ways.
const WRONG_PARTS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const WRONG_ENDS: [&str; 2] = ["/..", "/."];

const BACKEND: &[Check] = &[("", By(backend))];
const PATH: &[Check] = &[("", By(path))];

pub(crate) fn ingress(ingress: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const RULE: &[Check] =
        &[("host", By(rule_host)), ("http.paths", By(some_path)), ("http.paths", Each(PATH))];
    const TLS: &[Check] =
        &[("hosts", By(certified_hosts)), ("secretName", Text(names::dns_subdomain))];
    const SPEC: &[Check] = &[
        ("defaultBackend", Has(BACKEND)),
        ("rules", Each(RULE)),
        ("tls", Each(TLS)),
        ("ingressClassName", By(class_name)),
    ];
    let spec = ingress.get("spec").unwrap_or(&Value::Null);
    if !are_kept(ingress, old, &["spec"]) {
        if is_empty(member(spec, "rules")) && member(spec, "defaultBackend").is_null() {
            let detail = "either `defaultBackend` or `rules` must be specified";
            causes.push(Cause::invalid("spec", &Value::Null, detail));
        }
        super::run(SPEC, spec, "spec", causes);
    }
    if old.is_none() {
        same_class(ingress, spec, causes);
    }
    balancers(ingress, causes);
}

/// Checks that an annotation does not name another class.
fn same_class(ingress: &Fields, spec: &Value, causes: Causes<'_>) {
    let annotation =
        read_path(ingress, "metadata.annotations").and_then(|all| all.get(INGRESS_CLASS));
    let class = member(spec, "ingressClassName");
    if let Some(annotation) = annotation.filter(|it| !class.is_null() && *it != class) {
        let detail = "must match `ingressClassName` when both are specified";
        causes.push(Cause::invalid(format!("annotations.{INGRESS_CLASS}"), annotation, detail));
    }
}

fn class_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    check_text(name, names::dns_subdomain, at, causes);
}

/// Checks the addresses and names of load balancers in the status.
fn balancers(ingress: &Fields, causes: Causes<'_>) {
    let list = read_path(ingress, "status.loadBalancer.ingress").unwrap_or(&Value::Null);
    for (place, balancer) in items(list).iter().enumerate() {
        let at = format!("status.loadBalancer.ingress[{place}]");
        let (ip, host) = (member(balancer, "ip"), member(balancer, "hostname"));
        if !is_empty(ip) {
            addresses::address(ip, &format!("{at}.ip"), causes);
        }
        if !is_empty(host) {
            let at = format!("{at}.hostname");
            check_text(host, names::dns_subdomain, &at, causes);
            no_address(host, &at, causes);
        }
    }
}

fn no_address(host: &Value, at: &str, causes: Causes<'_>) {
    if host.as_str().is_some_and(|host| host.parse::<IpAddr>().is_ok()) {
        causes.push(Cause::invalid(at, host, "must be a DNS name, not an IP address"));
    }
}

fn rule_host(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if !is_empty(name) {
        no_address(name, at, causes);
        host(name, at, causes);
    }
}

fn host(name: &Value, at: &str, causes: Causes<'_>) {
    let has_star = name.as_str().is_some_and(|name| name.contains('*'));
    let check = if has_star { names::wildcard_subdomain } else { names::dns_subdomain };
    check_text(name, check, at, causes);
}

fn certified_hosts(_: &Value, hosts: &Value, at: &str, causes: Causes<'_>) {
    for (place, name) in items(hosts).iter().enumerate() {
        host(name, &format!("{at}[{place}]"), causes);
    }
}

fn some_path(rule: &Value, paths: &Value, at: &str, causes: Causes<'_>) {
    if find(rule, "http").is_some_and(Value::is_object) && is_empty(paths) {
        causes.push(Cause::required(at, ""));
    }
}

fn path(_: &Value, rule: &Value, at: &str, causes: Causes<'_>) {
    let kind = member(rule, "pathType");
    let Some(kind_name) = kind.as_str() else {
        causes.push(Cause::required(format!("{at}.pathType"), "pathType must be specified"));
        return;
    };
    let path = text(rule, "path");
    let mut wrong = |detail: &str| {
        causes.push(Cause::invalid(format!("{at}.path"), &json!(path), detail));
    };
    let is_checked = matches!(kind_name, "Exact" | "Prefix");
    let is_known = PATH_TYPES.contains(&kind_name);
    if is_known && !path.starts_with('/') && (is_checked || !path.is_empty()) {
        wrong("must be an absolute path");
    }
    if is_checked {
        for part in WRONG_PARTS.iter().filter(|part| path.contains(**part)) {
            wrong(&format!("must not contain '{part}'"));
        }
        for end in WRONG_ENDS.iter().filter(|end| path.ends_with(**end)) {
            wrong(&format!("cannot end with '{end}'"));
        }
    }
    if !is_known {
        causes.push(Cause::unsupported(format!("{at}.pathType"), kind, PATH_TYPES));
    }
    super::run(&[("backend", By(backend))], rule, at, causes);
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
        (true, false) => reference(resource, &format!("{at}.resource"), causes),
        (false, true) => service_backend(service, at, causes),
    }
}

fn service_backend(service: &Value, at: &str, causes: Causes<'_>) {
    const SERVICE: &[Check] = &[("name", Required("")), ("name", Text(names::dns_label))];
    super::run(SERVICE, service, &format!("{at}.service"), causes);
    let port = member(service, "port");
    let (name, number) = (text(port, "name"), member(port, "number"));
    match (name.is_empty(), number.as_i64().unwrap_or_default() == 0) {
        (true, true) => causes.push(Cause::required(at, "port name or number is required")),
        (true, false) => {
            container_ports::in_range(number, &format!("{at}.service.port.number"), causes);
        }
        (false, true) => {
            let at = format!("{at}.service.port.name");
            check_text(member(port, "name"), names::port, &at, causes);
        }
        (false, false) => {
            let detail = "cannot set both port name & port number";
            causes.push(Cause::invalid(at, &json!(""), detail));
        }
    }
}

/// Checks the reference to an object that serves requests.
fn reference(object: &Value, at: &str, causes: Causes<'_>) {
    let group = member(object, "apiGroup");
    check_text(group, names::dns_subdomain, &format!("{at}.apiGroup"), causes);
    for key in ["kind", "name"] {
        super::run(&[(key, Required("")), (key, Text(names::path_segment))], object, at, causes);
    }
}
