//! Slices of the devices of a pool.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Has};
use super::affinity::NODE_SELECTOR;
use super::{
    Check, check_text, device_taints, is_empty, items, join, member, text, volumes, workloads,
};
use crate::fields::Fields;
use crate::names::{self, Problems};
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

/// The most devices of a slice; fewer if they have taints, counters or lists of attributes.
const MAX_DEVICES: usize = 128;
const MAX_ADVANCED: usize = 64;
/// The most attributes and capacities of a device, and the most taints.
const MAX_PROPERTIES: usize = 32;
const MAX_TAINTS: usize = 16;
/// The longest name of an attribute, and the longest text or version of one.
pub(super) const MAX_NAME: usize = 32;
const MAX_TEXT: usize = 64;

const SLICE: &[Check] = &[
    ("driver", By(volumes::driver)),
    ("pool.name", By(device_taints::pool)),
    ("pool.resourceSliceCount", AtLeast(1, "must be greater than zero")),
    ("pool.generation", AtLeast(0, "must be greater than or equal to zero")),
    ("nodeName", By(node_name)),
    ("nodeSelector", By(one_term)),
    ("", By(one_place)),
    ("devices", By(devices)),
    ("devices", By(effects)),
];

pub(crate) fn slice(slice: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    super::run(SLICE, slice.get("spec").unwrap_or(&Value::Null), "spec", causes);
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
        let shown: Value = items(terms)
            .iter()
            .map(|term| workloads::internal("core.NodeSelectorTerm", term))
            .collect();
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
        let value = member(spec, name);
        if *value == false {
            let detail = "must be either unset or set to true";
            causes.push(Cause::invalid(join(at, name), value, detail));
        }
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

// === devices ===

fn devices(spec: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let all = items(list);
    let most = if all.iter().any(is_advanced) { MAX_ADVANCED } else { MAX_DEVICES };
    if all.len() > most {
        causes.push(Cause::too_many(at, all.len(), most));
    }
    for (place, device) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        check_text(member(device, "name"), names::dns_label, &join(&at, "name"), causes);
        properties(device, &at, causes);
        taints(items(member(device, "taints")), &join(&at, "taints"), causes);
        nodes(spec, device, &at, causes);
        let name = text(device, "name");
        if all[..place].iter().any(|known| text(known, "name") == name) {
            causes.push(Cause::duplicate(at, &json!(name)));
        }
    }
}

fn is_advanced(device: &Value) -> bool {
    const LISTS: [&str; 4] = ["ints", "bools", "strings", "versions"];
    let attributes = member(device, "attributes").as_object().into_iter().flatten();
    let mut lists = attributes
        .map(|(_, attribute)| LISTS.iter().any(|name| !member(attribute, name).is_null()));
    !is_empty(member(device, "taints"))
        || !is_empty(member(device, "consumesCounters"))
        || lists.any(|has_list| has_list)
}

fn properties(device: &Value, at: &str, causes: Causes<'_>) {
    let [attributes, capacities] = ["attributes", "capacity"].map(|name| member(device, name));
    let count = |members: &Value| members.as_object().map_or(0, serde_json::Map::len);
    let total = count(attributes) + count(capacities);
    if total > MAX_PROPERTIES {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {MAX_PROPERTIES}"
        );
        causes.push(Cause::invalid(at, &json!(total), &detail));
    }
    for (name, attribute) in attributes.as_object().into_iter().flatten() {
        let at = join(at, "attributes");
        key(name, &at, causes);
        attribute_value(attribute, &format!("{at}[{name}]"), causes);
    }
    for (name, _) in capacities.as_object().into_iter().flatten() {
        key(name, &join(at, "capacity"), causes);
    }
}

/// Checks the name of an attribute, with or without a domain.
fn key(name: &str, at: &str, causes: Causes<'_>) {
    let (domain, id) = match name.split_once('/') {
        Some((_, id)) if id.contains('/') => return,
        Some((domain, id)) => (Some(domain), id),
        None => (None, name),
    };
    let mut refuse_empty = |part: &str| {
        causes.push(Cause::invalid(at, &json!(""), &format!("the {part} must not be empty")));
    };
    if domain == Some("") {
        refuse_empty("domain");
    }
    if domain.is_some() && id.is_empty() {
        refuse_empty("name");
        return;
    }
    if let Some(domain) = domain.filter(|domain| !domain.is_empty()) {
        volumes::driver(&Value::Null, &json!(domain), at, causes);
    }
    if id.len() > MAX_NAME {
        causes.push(Cause::too_long(at, MAX_NAME));
    }
    check_text(&json!(id), identifier, at, causes);
}

pub(super) fn identifier(name: &str) -> Problems {
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

/// Checks that an attribute has one value, and its length.
fn attribute_value(attribute: &Value, at: &str, causes: Causes<'_>) {
    const VALUES: [&str; 8] =
        ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];
    let too_long = |name: &str| text(attribute, name).len() > MAX_TEXT;
    if too_long("string") {
        causes.push(Cause::too_long(join(at, "string"), MAX_TEXT));
    }
    let version = member(attribute, "version");
    if version.as_str().is_some_and(|version| !is_version(version)) {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        causes.push(Cause::invalid(join(at, "version"), version, detail));
    }
    if too_long("version") {
        causes.push(Cause::too_long(join(at, "version"), MAX_TEXT));
    }
    let known = VALUES.map(|name| format!("`{name}`")).join(", ");
    let given: Vec<&str> =
        VALUES.into_iter().filter(|name| !member(attribute, name).is_null()).collect();
    match given.len() {
        0 => {
            let detail = format!("must specify one of: {known}");
            causes.push(Cause::invalid(at, &json!(""), &detail));
        }
        1 => {}
        _ => {
            let shown = json!(format!("{{{}}}", given.join(", ")));
            let detail = format!("must specify exactly one of: {known}");
            causes.push(Cause::invalid(at, &shown, &detail));
        }
    }
}

/// Returns whether a text is a version of the form `1.2.3-rc.1+build`.
fn is_version(text: &str) -> bool {
    let (rest, build) =
        text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, release) =
        rest.split_once('-').map_or((rest, None), |(core, release)| (core, Some(release)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.into_iter().all(is_number)
        && release.is_none_or(|release| {
            release.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn taints(list: &[Value], at: &str, causes: Causes<'_>) {
    if list.len() > MAX_TAINTS {
        causes.push(Cause::too_many(at, list.len(), MAX_TAINTS));
    }
    for (place, taint) in list.iter().enumerate() {
        device_taints::key_and_value(taint, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the effects of taints. The real server finds them in a second pass.
fn effects(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    for (place, device) in items(list).iter().enumerate() {
        for (number, taint) in items(member(device, "taints")).iter().enumerate() {
            let at = format!("{at}[{place}].taints[{number}]");
            super::run(device_taints::EFFECT, taint, &at, causes);
        }
    }
}

/// Checks the nodes of a device, which only a slice without nodes of its own leaves to it.
fn nodes(spec: &Value, device: &Value, at: &str, causes: Causes<'_>) {
    const PLACES: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];
    const WHY: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
        `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if *member(spec, "perDeviceNodeSelection") != true {
        if PLACES.iter().any(|name| !member(device, name).is_null()) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            causes.push(Cause::invalid(at, &Value::Null, detail));
        }
        return;
    }
    check_text(member(device, "nodeName"), names::dns_subdomain, &join(at, "nodeName"), causes);
    let given = places(device, &PLACES);
    match given.len() {
        0 => causes.push(Cause::required(at, WHY)),
        1 => {}
        _ => causes.push(Cause::invalid(at, &json!(format!("{{{}}}", given.join(", "))), WHY)),
    }
}
