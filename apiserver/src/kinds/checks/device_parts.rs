//! Parts that the kinds of devices share.
//!
//! The real server checks these kinds twice: by hand, and then by the rules that stand in the
//! comments of its types. The second pass is here named `declared`.

use serde_json::{Value, json};

use super::Test::{By, OneOf, Text};
use super::{Causes, Check, check_text, device_taints, items, join, member, text};
use crate::names::{self, Problems};
use crate::status::Cause;

/// The most items of most lists.
pub(super) const MAX_ITEMS: usize = 32;
/// The most conditions of either kind for the use of a device.
const MAX_BINDINGS: usize = 4;
/// The longest parameters of a driver and the longest data of a device, in bytes.
const MAX_RAW: usize = 10 * 1024;
/// The longest domain of a driver, and the longest name of an attribute in a domain.
const MAX_DOMAIN: usize = 63;
const MAX_ID: usize = 32;

// === lists ===

/// Returns the items of a list, or none if it has too many, which the declared rules report.
pub(super) fn few(list: &Value, most: usize) -> &[Value] {
    let list = items(list);
    if list.len() > most { &[] } else { list }
}

/// Returns the items of a list, or none if it has too many, which is reported.
pub(super) fn sized<'a>(list: &'a Value, most: usize, at: &str, causes: Causes<'_>) -> &'a [Value] {
    let found = items(list).len();
    if found > most {
        causes.push(Cause::too_many(at, found, most));
    }
    few(list, most)
}

/// Reports each item whose key an earlier item has.
pub(super) fn distinct<'a, K: PartialEq>(
    list: &'a [Value],
    key: impl Fn(&'a Value) -> K,
    at: &str,
    causes: Causes<'_>,
) {
    let mut known = Vec::new();
    for (place, item) in list.iter().enumerate() {
        let key = key(item);
        if known.contains(&key) {
            causes.push(Cause::duplicate(format!("{at}[{place}]"), item));
        } else {
            known.push(key);
        }
    }
}

// === references to requests ===

/// Checks the names of requests of the claim.
pub(super) fn references(requests: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    for (place, name) in few(list, MAX_ITEMS).iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        reference(requests, name, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the name of a request, or of an alternative: `request/alternative`.
pub(super) fn reference(requests: &Value, name: &str, at: &str, causes: Causes<'_>) {
    let segments: Vec<&str> = name.split('/').collect();
    for segment in segments.iter().filter(|_| segments.len() <= 2) {
        check_text(&json!(segment), names::dns_label, at, causes);
    }
    if !is_request(requests, &segments) {
        let detail = "must be the name of a request in the claim or the name of a request and a \
            subrequest separated by '/'";
        causes.push(Cause::invalid(at, &json!(name), detail));
    }
}

fn is_request(requests: &Value, segments: &[&str]) -> bool {
    let find = |name: &str| items(requests).iter().rfind(|request| text(request, "name") == name);
    match segments {
        [name] => find(name).is_some(),
        [name, alternative] => find(name).is_some_and(|request| {
            let others = items(member(request, "firstAvailable"));
            others.iter().any(|other| text(other, "name") == *alternative)
        }),
        _ => false,
    }
}

pub(super) fn declared_references(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let names = sized(list, MAX_ITEMS, at, causes);
    distinct(names, |name| name, at, causes);
}

// === configurations ===

/// Checks the parameters of a driver.
pub(super) fn config(config: &Value, at: &str, causes: Causes<'_>) {
    let (opaque, at) = (member(config, "opaque"), join(at, "opaque"));
    if opaque.is_null() {
        causes.push(Cause::required(at, ""));
    } else {
        raw_object(member(opaque, "parameters"), &join(&at, "parameters"), causes);
    }
}

/// Checks an object whose members only the driver knows.
pub(super) fn raw_object(value: &Value, at: &str, causes: Causes<'_>) {
    if value.is_null() {
        causes.push(Cause::required(at, ""));
    } else if value.to_string().len() > MAX_RAW {
        causes.push(Cause::too_long(at, MAX_RAW));
    } else if !value.is_object() {
        let shown = json!("<value omitted>");
        causes.push(Cause::invalid(at, &shown, "must be a valid JSON object"));
    }
}

/// Checks the name of the driver that a configuration is for.
pub(super) const DECLARED_CONFIG: &[Check] = &[("opaque", By(driver_of))];

fn driver_of(_: &Value, opaque: &Value, at: &str, causes: Causes<'_>) {
    if !opaque.is_null() {
        driver(opaque, member(opaque, "driver"), &join(at, "driver"), causes);
    }
}

/// Checks the name of a driver by the declared rules.
pub(super) fn driver(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    super::attachments::driver(name, at, causes);
}

// === names of attributes ===

/// Checks the name of an attribute within its domain.
pub(super) fn identifier(id: &str, at: &str, causes: Causes<'_>) {
    if id.len() > MAX_ID {
        causes.push(Cause::too_long(at, MAX_ID));
    }
    check_text(&json!(id), c_identifier, at, causes);
}

fn c_identifier(name: &str) -> Problems {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if starts && name.bytes().all(plain) {
        return Problems::new();
    }
    let detail = "a valid C identifier must start with alphabetic character or '_', followed by a \
        string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', \
        regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
    vec![detail.into()]
}

/// Checks the name of an attribute, which has a domain.
pub(super) fn full_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let Some(full) = name.as_str() else { return };
    let refuse_empty = |part: &str| {
        let detail = format!("{part} must not be empty");
        Cause::invalid(at, &json!(""), &detail)
    };
    match full.split('/').collect::<Vec<_>>()[..] {
        [id] => identifier(id, at, causes),
        [domain, id] => {
            match domain {
                "" => causes.push(refuse_empty("prefix")),
                domain => domain_of(domain, at, causes),
            }
            match id {
                "" => causes.push(refuse_empty("name")),
                id => identifier(id, at, causes),
            }
        }
        _ => {}
    }
    if !full.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.push(Cause::invalid(at, name, detail));
    }
}

fn domain_of(domain: &str, at: &str, causes: Causes<'_>) {
    if domain.len() > MAX_DOMAIN {
        causes.push(Cause::too_long(at, MAX_DOMAIN));
    }
    for problem in names::dns_subdomain(domain) {
        causes.push(Cause::invalid(at, &json!(domain), &format!("prefix: {problem}")));
    }
}

// === tolerations ===

/// Checks the value of a toleration.
pub(super) fn toleration(_: &Value, toleration: &Value, at: &str, causes: Causes<'_>) {
    let (value, at) = (member(toleration, "value"), join(at, "value"));
    match text(toleration, "operator") {
        "Exists" if !text(toleration, "value").is_empty() => {
            causes.push(Cause::invalid(at, value, "must be empty for operator `Exists`"));
        }
        "Equal" => check_text(value, names::label_value, &at, causes),
        _ => {}
    }
}

pub(super) const DECLARED_TOLERATION: &[Check] = &[
    ("key", Text(names::qualified)),
    ("operator", OneOf(&["Equal", "Exists"])),
    ("effect", By(device_taints::effect)),
];

// === conditions for the use of a device ===

const BINDINGS: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];

/// Checks the conditions that must be true before a device is used, and those that must not.
pub(super) fn bindings(device: &Value, at: &str, causes: Causes<'_>) {
    for name in BINDINGS {
        for (place, condition) in few(member(device, name), MAX_BINDINGS).iter().enumerate() {
            check_text(condition, names::qualified, &format!("{at}.{name}[{place}]"), causes);
        }
    }
    let [wanted, failures] = BINDINGS.map(|name| items(member(device, name)));
    let [wanted_at, failures_at] = BINDINGS.map(|name| join(at, name));
    distinct(wanted, |condition| condition, &wanted_at, causes);
    for (place, failure) in failures.iter().enumerate() {
        let at = format!("{failures_at}[{place}]");
        if failures[..place].contains(failure) {
            causes.push(Cause::duplicate(&at, failure));
        }
        if wanted.contains(failure) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            causes.push(Cause::invalid(at, failure, detail));
        }
    }
    let (missing, detail) = match (wanted, failures) {
        ([], [_, ..]) => {
            (wanted_at, "bindingConditions are required to use bindingFailureConditions")
        }
        ([_, ..], []) => {
            (failures_at, "bindingFailureConditions are required to use bindingConditions")
        }
        _ => return,
    };
    causes.push(Cause::invalid(missing, &Value::Null, detail));
}

pub(super) fn declared_bindings(device: &Value, at: &str, causes: Causes<'_>) {
    for name in BINDINGS {
        sized(member(device, name), MAX_BINDINGS, &join(at, name), causes);
    }
}
