//! The status of a pod, as a node, a scheduler or another component writes it.

use serde_json::{Value, json};

use super::Test::{AtLeast, Between};
use super::addresses::{address, sloppy};
use super::{Check, check_text, items, member, pod_claim_status, pod_devices, pod_restarts, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const GENERATION: &[Check] =
    &[("observedGeneration", AtLeast(0, "must be a non-negative integer"))];

/// The lists of container statuses.
const STATUSES: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Checks the new status of a pod against the stored one (`ValidatePodStatusUpdate`).
pub(crate) fn check(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let [status, before] = [pod, old].map(|pod| pod.get("status").unwrap_or(&Value::Null));
    // A write of the status keeps the spec.
    let spec = old.get("spec").unwrap_or(&Value::Null);
    conditions(member(status, "conditions"), causes);
    nomination(status, before, spec, causes);
    super::run(GENERATION, status, "status", causes);
    let class = member(status, "qosClass");
    if class != member(before, "qosClass") {
        causes.push(Cause::invalid("status.qosClass", class, "field is immutable"));
    }
    pod_restarts::check(status, before, spec, causes);
    pod_claim_status::check(status, spec, causes);
    pod_addresses(status, before, causes);
    host_addresses(status, before, causes);
    for list in STATUSES {
        users(list, status, spec, causes);
    }
    pod_devices::check(status, spec, causes);
}

fn conditions(list: &Value, causes: &mut Vec<Cause>) {
    const OF_SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
    for (place, condition) in items(list).iter().enumerate() {
        let at = || format!("status.conditions[{place}]");
        if !member(condition, "observedGeneration").is_null() {
            super::run(GENERATION, condition, &at(), causes);
        }
        let kind = text(condition, "type");
        if !OF_SYSTEM.contains(&kind) {
            // The real server writes it in upper case.
            check_text(&json!(kind), names::qualified, &(at() + ".Type"), causes);
        }
    }
}

/// Checks the node that a scheduler nominates for a pod. A pod on a node gets no other.
fn nomination(status: &Value, old: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    const AT: &str = "status.nominatedNodeName";
    let name = text(status, "nominatedNodeName");
    if name.is_empty() || name == text(old, "nominatedNodeName") {
        return;
    }
    check_text(&json!(name), names::dns_subdomain, AT, causes);
    if !text(spec, "nodeName").is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        causes.push(Cause::forbidden(AT, detail));
    }
}

// === addresses ===

/// The server has made the first address and `podIP` equal.
fn pod_addresses(status: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let list = listed(status, "podIPs");
    addresses(&list, &listed(old, "podIPs"), "status.podIPs", causes);
}

fn host_addresses(status: &Value, old: &Value, causes: &mut Vec<Cause>) {
    const AT: &str = "status.hostIPs";
    let list = listed(status, "hostIPs");
    let Some(first) = list.first() else { return };
    if *first != text(status, "hostIP") {
        let detail = "must be equal to `hostIP`";
        causes.push(Cause::invalid(format!("{AT}[0].ip"), &json!(first), detail));
    }
    addresses(&list, &listed(old, "hostIPs"), AT, causes);
}

fn listed<'a>(status: &'a Value, key: &str) -> Vec<&'a str> {
    items(member(status, key)).iter().map(|item| text(item, "ip")).collect()
}

/// Checks a list with at most one address of each family. Stored addresses may stay.
fn addresses(list: &[&str], known: &[&str], at: &str, causes: &mut Vec<Cause>) {
    for (place, ip) in list.iter().enumerate().filter(|(_, ip)| !known.contains(ip)) {
        address(&json!(ip), &format!("{at}[{place}]"), causes);
    }
    if list.len() < 2 {
        return;
    }
    let families: Vec<Option<bool>> =
        list.iter().map(|ip| sloppy(ip).map(|ip| ip.is_ipv4())).collect();
    if let Some(place) = families.iter().position(Option::is_none) {
        let wrong = list.get(place).copied().unwrap_or_default();
        let detail =
            format!("failed to check for dual stack with error:invalid IP[{place}]: {wrong}");
        causes.push(Cause::internal(at, &detail));
    }
    let is_pair = families == [Some(true), Some(false)] || families == [Some(false), Some(true)];
    if !is_pair {
        let shown: Value = list.iter().map(|ip| json!({"IP": ip})).collect();
        let detail = "may specify no more than one IP for each IP family";
        causes.push(Cause::invalid(at, &shown, detail));
    }
}

// === users ===

/// Checks the users that containers run as (`validateContainerStatusUsers`).
fn users(list: &str, status: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    const MAX_GROUP: i64 = 2_147_483_647;
    const GROUP: &[Check] = &[("", Between(0, MAX_GROUP))];
    const USER: &[Check] = &[("uid", Between(0, 4_294_967_295)), ("gid", Between(0, MAX_GROUP))];
    let os = member(spec, "os");
    for (place, status) in items(member(status, list)).iter().enumerate() {
        let user = member(member(status, "user"), "linux");
        if user.is_null() {
            continue;
        }
        let at = format!("status.{list}[{place}].user.linux");
        if text(os, "name") == "windows" {
            causes.push(Cause::forbidden(&*at, "cannot be set for a windows pod"));
            continue;
        }
        super::run(USER, user, &at, causes);
        for (place, group) in items(member(user, "supplementalGroups")).iter().enumerate() {
            super::run(GROUP, group, &format!("{at}.supplementalGroups[{place}]"), causes);
        }
    }
}
