//! The status of a resource claim: its consumers, its allocation, and what drivers report.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::Test::{By, Each, Has, OneOf, Required};
use super::affinity::NODE_SELECTOR;
use super::device_parts::{
    DECLARED_CONFIG, DECLARED_TOLERATION, MAX_ITEMS, bindings, config, declared_bindings,
    declared_references, distinct, driver, few, raw_object, reference, references, sized,
    toleration,
};
use super::{
    Causes, Check, addresses, check_text, conditions, device_taints, is_empty, items, join, member,
    text, volumes,
};
use crate::names;
use crate::status::Cause;

/// The most pods that share a claim.
const MAX_CONSUMERS: usize = 256;
/// The most configurations of an allocation: those of the claim and of the class.
const MAX_CONFIGS: usize = 2 * MAX_ITEMS;
/// The most conditions and addresses of a device.
const MAX_CONDITIONS: usize = 8;
const MAX_ADDRESSES: usize = 16;

// === consumers ===

/// Checks the pods that may use a claim.
pub(crate) fn consumers(status: &Value, causes: Causes<'_>) {
    const CONSUMER: &[Check] =
        &[("resource", Required("")), ("name", Required("")), ("uid", Required(""))];
    let list = few(member(status, "reservedFor"), MAX_CONSUMERS);
    for (place, consumer) in list.iter().enumerate() {
        super::run(CONSUMER, consumer, &format!("status.reservedFor[{place}]"), causes);
    }
}

/// Checks that the pods may use the claim: it is allocated, and a deleted claim gets no new ones.
pub(crate) fn reservations(status: &Value, old: &Value, is_deleted: bool, causes: Causes<'_>) {
    const AT: &str = "status.reservedFor";
    let [new, old] = [status, old].map(|status| items(member(status, "reservedFor")));
    if new.is_empty() {
        return;
    }
    if member(status, "allocation").is_null() {
        let detail = "may not be specified when `allocated` is not set";
        causes.push(Cause::forbidden(AT, detail));
    } else if is_deleted && new.iter().any(|consumer| !old.contains(consumer)) {
        let detail = "new entries may not be added while `deallocationRequested` or \
                      `deletionTimestamp` are set";
        causes.push(Cause::forbidden(AT, detail));
    }
}

// === devices ===

/// Returns the members that identify a device.
fn device_id(device: &Value) -> [&Value; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| member(device, name))
}

/// Checks what drivers report about devices, which must be allocated.
pub(crate) fn devices(status: &Value, causes: Causes<'_>) {
    const DEVICE: &[Check] =
        &[("driver", By(volumes::driver)), ("pool", By(pool)), ("device", By(device_name))];
    const REPORT: &[Check] = &[
        ("conditions", By(few_conditions)),
        ("conditions", By(conditions::list)),
        ("data", By(data)),
        ("networkData.ips", By(ips)),
    ];
    let results = member(member(member(status, "allocation"), "devices"), "results");
    let allocated: Vec<_> = items(results).iter().map(device_id).collect();
    for (place, device) in items(member(status, "devices")).iter().enumerate() {
        let at = format!("status.devices[{place}]");
        super::run(DEVICE, device, &at, causes);
        if !allocated.contains(&device_id(device)) {
            let shown = json!({
                "Driver": text(device, "driver"), "Pool": text(device, "pool"),
                "Device": text(device, "device"), "ShareID": text(device, "shareID"),
            });
            let detail = "must be an allocated device in the claim";
            causes.push(Cause::invalid(&at, &shown, detail));
        }
        super::run(REPORT, device, &at, causes);
    }
}

fn pool(device: &Value, pool: &Value, at: &str, causes: Causes<'_>) {
    device_taints::pool(pool, &json!(text(device, "pool")), at, causes);
}

fn device_name(device: &Value, _: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(text(device, "device")), names::dns_label, at, causes);
}

fn few_conditions(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    sized(list, MAX_CONDITIONS, at, causes);
}

fn data(_: &Value, data: &Value, at: &str, causes: Causes<'_>) {
    if !data.is_null() {
        raw_object(data, at, causes);
    }
}

fn ips(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    for (place, address) in few(list, MAX_ADDRESSES).iter().enumerate() {
        let text = address.as_str().unwrap_or_default();
        let detail = match interface_address(text) {
            Some(canonical) if canonical == text => continue,
            Some(canonical) => format!("must be in canonical form (\"{canonical}\")"),
            None => "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
                .to_owned(),
        };
        causes.push(Cause::invalid(format!("{at}[{place}]"), address, &detail));
    }
}

/// Returns an address of an interface, with the length of its network, in its canonical form.
fn interface_address(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/')?;
    let address = address.parse::<IpAddr>().ok().or_else(|| addresses::without_zeros(address))?;
    let length: u32 = bits.parse().ok().filter(|_| !bits.starts_with('+'))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    match address.to_canonical() {
        _ if length > most => None,
        // The address of an IPv4 network that is written as IPv6.
        IpAddr::V4(mapped) if length > 32 => Some(format!("{mapped}/{}", i64::from(length) - 96)),
        address => Some(format!("{address}/{length}")),
    }
}

// === allocation ===

/// Checks a new allocation of devices to the requests of a claim.
pub(crate) fn allocation(requests: &Value, allocation: &Value, causes: Causes<'_>) {
    const AT: &str = "status.allocation";
    const TOLERATIONS: &[Check] = &[("tolerations", Each(&[("", By(toleration))]))];
    const NODES: &[Check] = &[("nodeSelector", Has(NODE_SELECTOR))];
    let devices = member(allocation, "devices");
    for (place, result) in few(member(devices, "results"), MAX_ITEMS).iter().enumerate() {
        let at = format!("{AT}.devices.results[{place}]");
        reference(requests, text(result, "request"), &join(&at, "request"), causes);
        device_name(result, &Value::Null, &join(&at, "device"), causes);
        bindings(result, &at, causes);
        super::run(TOLERATIONS, result, &at, causes);
    }
    for (place, setting) in few(member(devices, "config"), MAX_CONFIGS).iter().enumerate() {
        let at = format!("{AT}.devices.config[{place}]");
        references(requests, member(setting, "requests"), &join(&at, "requests"), causes);
        config(setting, &at, causes);
    }
    super::run(NODES, allocation, AT, causes);
}

// === declared rules ===

/// Checks a changed status by the declared rules.
pub(crate) fn declared(status: &Value, old: &Value, causes: Causes<'_>) {
    const AT: &str = "status.allocation";
    let [new, old] = [status, old].map(|status| member(status, "allocation"));
    if new != old && !new.is_null() {
        if old.is_null() {
            let at = "status.allocation.devices";
            super::run(DECLARED_ALLOCATION, member(new, "devices"), at, causes);
        } else {
            let detail = "field cannot be modified once set";
            causes.push(Cause::invalid(AT, &Value::Null, detail));
        }
    }
    super::run(DECLARED_STATUS, status, "status", causes);
}

const DECLARED_ALLOCATION: &[Check] =
    &[("results", By(declared_results)), ("config", By(declared_configs))];

fn declared_results(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const RESULT: &[Check] = &[
        ("driver", By(driver)),
        ("pool", By(declared_pool)),
        ("tolerations", Each(DECLARED_TOLERATION)),
        ("", By(|_, result, at, causes| declared_bindings(result, at, causes))),
        ("shareID", By(uuid)),
    ];
    for (place, result) in sized(list, MAX_ITEMS, at, causes).iter().enumerate() {
        super::run(RESULT, result, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the name of a pool: names of DNS with slashes between them.
fn declared_pool(_: &Value, pool: &Value, at: &str, causes: Causes<'_>) {
    let name = pool.as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required(at, ""));
        return;
    }
    if name.len() > device_taints::MAX_POOL {
        causes.push(Cause::too_long(at, device_taints::MAX_POOL));
    }
    for (place, part) in name.split('/').enumerate() {
        if part.is_empty() {
            let detail = format!("segment {place}: must not be empty");
            causes.push(Cause::invalid(at, pool, &detail));
            continue;
        }
        for problem in names::dns_subdomain(part) {
            // Declarative checks count in bytes.
            let problem = problem.replace("253 characters", "253 bytes");
            let detail = format!("segment {place}: {problem}");
            causes.push(Cause::invalid(at, &json!(part), &detail));
        }
    }
}

fn uuid(_: &Value, id: &Value, at: &str, causes: Causes<'_>) {
    let is_right = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    let is_uuid = |id: &str| id.len() == 36 && id.bytes().enumerate().all(is_right);
    if id.as_str().is_some_and(|id| !is_uuid(id)) {
        let detail = "must be a lowercase UUID in 8-4-4-4-12 format";
        causes.push(Cause::invalid(at, id, detail));
    }
}

fn declared_configs(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const CONFIG: &[Check] =
        &[("source", Required("")), ("source", By(source)), ("requests", By(declared_references))];
    for (place, config) in sized(list, MAX_CONFIGS, at, causes).iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(CONFIG.iter().chain(DECLARED_CONFIG), config, &at, causes);
    }
}

fn source(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    if !is_empty(source) {
        super::run(&[("", OneOf(&["FromClaim", "FromClass"]))], source, at, causes);
    }
}

const DECLARED_STATUS: &[Check] =
    &[("reservedFor", By(declared_consumers)), ("devices", By(declared_devices))];

fn declared_consumers(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let list = sized(list, MAX_CONSUMERS, at, causes);
    distinct(list, |consumer| text(consumer, "uid"), at, causes);
}

fn declared_devices(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const DEVICE: &[Check] = &[
        ("shareID", By(uuid)),
        ("networkData.interfaceName", By(|_, it, at, causes| short(it, 256, at, causes))),
        ("networkData.ips", By(declared_ips)),
        ("networkData.hardwareAddress", By(|_, it, at, causes| short(it, 128, at, causes))),
    ];
    let all = items(list);
    for (place, device) in all.iter().enumerate() {
        if all[..place].iter().any(|known| device_id(known) == device_id(device)) {
            // The real server shows missing conditions, too.
            let mut shown = device.clone();
            shown["conditions"] = member(device, "conditions").clone();
            causes.push(Cause::duplicate(format!("{at}[{place}]"), &shown));
        }
    }
    for (place, device) in all.iter().enumerate() {
        super::run(DEVICE, device, &format!("{at}[{place}]"), causes);
    }
}

fn declared_ips(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let ips = sized(list, MAX_ADDRESSES, at, causes);
    distinct(ips, |address| address, at, causes);
}

fn short(text: &Value, most: usize, at: &str, causes: Causes<'_>) {
    if text.as_str().is_some_and(|text| text.len() > most) {
        causes.push(Cause::too_long(at, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_an_interface_has_a_canonical_form() {
        let form = |text| interface_address(text);
        assert_eq!(form("10.9.8.7/24").as_deref(), Some("10.9.8.7/24"));
        assert_eq!(form("010.9.8.7/08").as_deref(), Some("10.9.8.7/8"));
        assert_eq!(form("2001:DB8::1/64").as_deref(), Some("2001:db8::1/64"));
        assert_eq!(form("::ffff:192.168.0.1/120").as_deref(), Some("192.168.0.1/24"));
        for wrong in ["10.9.8.7", "10.9.8.7/33", "10.9.8/8", "::1/129", "::1/+1", "a/8"] {
            assert_eq!(form(wrong), None, "{wrong}");
        }
    }
}
