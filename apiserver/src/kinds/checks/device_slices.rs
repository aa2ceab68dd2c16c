//! Slices of the devices of a pool.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Each, Has};
use super::affinity::NODE_SELECTOR;
use super::device_capacity::{attributes, capacities, declared_attributes};
use super::device_counters::{self, declared_sets, declared_taken};
use super::device_parts::{bindings, declared_bindings};
use super::{
    Causes, Check, check_text, device_taints, internal, is_empty, items, join, member, text,
    volumes,
};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The most devices of a slice; fewer if they have taints or take from counters.
const MAX_DEVICES: usize = 128;
const MAX_ADVANCED: usize = 64;
/// The most attributes and capacities of a device, the most attributes, and the most taints.
const MAX_PROPERTIES: usize = 32;
const MAX_ATTRIBUTES: usize = 48;
const MAX_TAINTS: usize = 16;

const POOL: &[Check] = &[
    ("driver", By(volumes::driver)),
    ("pool.name", By(device_taints::pool)),
    ("pool.resourceSliceCount", AtLeast(1, "must be greater than zero")),
    ("pool.generation", AtLeast(0, "must be greater than or equal to zero")),
];
const IMMUTABLE: [&str; 3] = ["spec.pool.name", "spec.driver", "spec.nodeName"];
const PLACE: &[Check] = &[
    ("nodeName", By(node_name)),
    ("nodeSelector", By(one_term)),
    ("", By(one_place)),
    ("", By(devices_or_counters)),
];
const DECLARED: &[Check] =
    &[("devices", Each(DECLARED_DEVICE)), ("sharedCounters", By(declared_sets))];
const DECLARED_DEVICE: &[Check] = &[
    ("", By(|_, device, at, causes| declared_attributes(device, at, causes))),
    ("consumesCounters", By(declared_taken)),
    ("taints", Each(device_taints::EFFECT)),
    ("", By(|_, device, at, causes| declared_bindings(device, at, causes))),
];

pub(crate) fn slice(slice: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let spec = slice.get("spec").unwrap_or(&Value::Null);
    super::run(POOL, spec, "spec", causes);
    for path in IMMUTABLE.iter().filter(|_| old.is_some()) {
        let new = read_path(slice, path);
        if old.is_some_and(|old| new != read_path(old, path)) {
            let shown = new.unwrap_or(&Value::Null);
            causes.push(Cause::invalid(*path, shown, "field is immutable"));
        }
    }
    super::run(PLACE, spec, "spec", causes);
    let old = old.and_then(|old| read_path(old, "spec.devices")).map_or(&[][..], items);
    devices(spec, old, causes);
    device_counters::sets(spec, member(spec, "sharedCounters"), "spec.sharedCounters", causes);
    super::run(DECLARED, spec, "spec", causes);
}

/// Returns the warning about a driver whose name is not in lower case.
pub(crate) fn warn(slice: &Fields, _: Option<&Fields>) -> Vec<String> {
    let driver = read_path(slice, "spec.driver").and_then(Value::as_str).unwrap_or_default();
    let warning = || {
        let shown = homeostat_core::go_quote(driver);
        format!(
            "spec.driver: driver names should be lowercase; {shown} contains uppercase characters"
        )
    };
    (driver != driver.to_lowercase()).then(warning).into_iter().collect()
}

fn node_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if *name == "" {
        let detail = "must be either unset or set to a non-empty string";
        causes.push(Cause::invalid(at, name, detail));
    } else {
        check_text(name, names::dns_subdomain, at, causes);
    }
}

fn one_term(_: &Value, selector: &Value, at: &str, causes: Causes<'_>) {
    if selector.is_null() {
        return;
    }
    super::run(&[("", Has(NODE_SELECTOR))], selector, at, causes);
    let terms = member(selector, "nodeSelectorTerms");
    if items(terms).len() != 1 {
        let shown: Value =
            items(terms).iter().map(|term| internal("core.NodeSelectorTerm", term)).collect();
        let at = join(at, "nodeSelectorTerms");
        causes.push(Cause::invalid(at, &shown, "must have exactly one node selector term"));
    }
}

/// Returns the places of nodes that an object has, as messages show them.
fn places(object: &Value, names: &[&str]) -> Vec<String> {
    let is_given = |name: &&&str| match member(object, name) {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    names.iter().filter(is_given).map(|name| format!("`{name}`")).collect()
}

fn one_place(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    const WHY: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
        `perDeviceNodeSelection` is required";
    const PLACES: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    for name in &PLACES[2..] {
        unset_or_true(spec, member(spec, name), &join(at, name), causes);
    }
    let given = places(spec, &PLACES);
    match given.len() {
        0 => causes.push(Cause::required(at, WHY)),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            let detail = format!("{WHY}, but multiple fields are set");
            causes.push(Cause::invalid(at, &json!(shown), &detail));
        }
    }
}

fn unset_or_true(_: &Value, value: &Value, at: &str, causes: Causes<'_>) {
    if *value == false {
        causes.push(Cause::invalid(at, value, "must be either unset or set to true"));
    }
}

fn devices_or_counters(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    if ["sharedCounters", "devices"].iter().all(|name| !member(spec, name).is_null()) {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        causes.push(Cause::invalid(at, &json!(""), detail));
    }
}

// === devices ===

fn devices(spec: &Value, old: &[Value], causes: Causes<'_>) {
    const AT: &str = "spec.devices";
    let all = items(member(spec, "devices"));
    let most = if all.iter().any(is_advanced) { MAX_ADVANCED } else { MAX_DEVICES };
    if all.len() > most {
        causes.push(Cause::too_many(AT, all.len(), most));
        return;
    }
    for (place, device) in all.iter().enumerate() {
        let old = old.iter().find(|old| text(old, "name") == text(device, "name"));
        let at = format!("{AT}[{place}]");
        check_text(member(device, "name"), names::dns_label, &join(&at, "name"), causes);
        properties(device, old, &at, causes);
        device_counters::taken(device, &at, causes);
        nodes(spec, device, &at, causes);
        bindings(device, &at, causes);
    }
    for (place, device) in all.iter().enumerate() {
        let name = text(device, "name");
        if all[..place].iter().any(|known| text(known, "name") == name) {
            causes.push(Cause::duplicate(format!("{AT}[{place}]"), &json!(name)));
        }
    }
}

fn is_advanced(device: &Value) -> bool {
    ["taints", "consumesCounters"].iter().any(|name| !is_empty(member(device, name)))
}

/// Checks attributes, and those capacities and taints that an update changes.
fn properties(device: &Value, old: Option<&Value>, at: &str, causes: Causes<'_>) {
    let count = |name| member(device, name).as_object().map_or(0, serde_json::Map::len);
    let total = count("attributes") + count("capacity");
    if total > MAX_PROPERTIES {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {MAX_PROPERTIES}"
        );
        causes.push(Cause::invalid(at, &json!(total), &detail));
    }
    let values = count("attributes");
    if values > MAX_ATTRIBUTES {
        let detail =
            format!("the total number of attribute values must not exceed {MAX_ATTRIBUTES}");
        causes.push(Cause::invalid(at, &json!(values), &detail));
    }
    attributes(device, at, causes);
    let is_kept = |name| old.is_some_and(|old| member(old, name) == member(device, name));
    if !is_kept("capacity") {
        capacities(device, at, causes);
    }
    if !is_kept("taints") {
        taints(items(member(device, "taints")), &join(at, "taints"), causes);
    }
}

fn taints(list: &[Value], at: &str, causes: Causes<'_>) {
    if list.len() > MAX_TAINTS {
        causes.push(Cause::too_many(at, list.len(), MAX_TAINTS));
        return;
    }
    for (place, taint) in list.iter().enumerate() {
        device_taints::key_and_value(taint, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the nodes of a device, which only a slice without nodes of its own leaves to it.
fn nodes(spec: &Value, device: &Value, at: &str, causes: Causes<'_>) {
    const PLACES: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];
    const WHY: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
        `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    const CHECKS: &[Check] = &[
        ("nodeName", By(own_node)),
        ("nodeSelector", Has(NODE_SELECTOR)),
        ("allNodes", By(unset_or_true)),
    ];
    if *member(spec, "perDeviceNodeSelection") != true {
        if PLACES.iter().any(|name| !member(device, name).is_null()) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            causes.push(Cause::invalid(at, &Value::Null, detail));
        }
        return;
    }
    super::run(CHECKS, device, at, causes);
    let given = places(device, &PLACES);
    match given.len() {
        0 => causes.push(Cause::required(at, WHY)),
        1 => {}
        _ => causes.push(Cause::invalid(at, &json!(format!("{{{}}}", given.join(", "))), WHY)),
    }
}

fn own_node(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if *name == "" {
        causes.push(Cause::invalid(at, name, "must not be empty"));
    } else {
        check_text(name, names::dns_subdomain, at, causes);
    }
}
