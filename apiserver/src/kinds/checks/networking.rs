//! Network policies and addresses.

use serde_json::{Value, json};

use super::Test::{By, Each, Has, OneOf, Required, Text};
use super::service_cidr::{is_strict_subset, legacy_problem, read_range};
use super::{Causes, Check, check_text, container_ports, items, member, selectors};
use crate::fields::{Fields, text};
use crate::names;
use crate::status::Cause;

fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

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
