//! CSI drivers, and what nodes know about them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Test::{AtLeast, By, NotNegative, OneOf, Required};
use super::{Causes, Check, check_text, items, join, member, text, volumes};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The shortest and the longest life of a token, in seconds.
const MIN_LIFE: i64 = 600;
const MAX_LIFE: i64 = 1 << 32;
/// The longest name of a node within a driver.
const MAX_NODE: usize = 256;

pub(crate) fn driver(driver: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("fsGroupPolicy", OneOf(&["File", "None", "ReadWriteOnceWithFSType"])),
        ("tokenRequests", By(tokens)),
        ("volumeLifecycleModes", By(modes)),
        (
            "nodeAllocatableUpdatePeriodSeconds",
            AtLeast(10, "must be greater than or equal to 10 seconds"),
        ),
        ("serviceAccountTokenInSecrets", By(in_secrets)),
    ];
    super::run(SPEC, driver.get("spec").unwrap_or(&Value::Null), "spec", causes);
    let Some(old) = old else { return };
    let member = |object: &Fields, path| read_path(object, path).cloned().unwrap_or_default();
    // The real server names the first one as its first version did.
    for (path, shown_at) in [
        ("spec.attachRequired", "spec.attachedRequired"),
        ("spec.volumeLifecycleModes", "spec.volumeLifecycleModes"),
    ] {
        let new = member(driver, path);
        if new != member(old, path) {
            causes.push(Cause::invalid(shown_at, &new, "field is immutable"));
        }
    }
}

/// Returns the warning about a driver that gets tokens in its attributes.
pub(crate) fn warn_driver(driver: &Fields, old: Option<&Fields>) -> Vec<String> {
    const TOKENS: &str = "spec.tokenRequests";
    let is_new = old.is_none_or(|old| read_path(old, TOKENS) != read_path(driver, TOKENS));
    let has_tokens = read_path(driver, TOKENS).is_some_and(|tokens| !items(tokens).is_empty());
    let place = read_path(driver, "spec.serviceAccountTokenInSecrets").unwrap_or(&Value::Null);
    if !is_new || !has_tokens || !place.is_null() {
        return Vec::new();
    }
    vec![
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true \
         to prevent possible logging of tokens in volume attributes"
            .to_owned(),
    ]
}

fn tokens(_: &Value, requests: &Value, at: &str, causes: Causes<'_>) {
    let mut known = BTreeSet::new();
    for (place, request) in items(requests).iter().enumerate() {
        let at = format!("{at}[{place}]");
        if !known.insert(text(request, "audience")) {
            causes.push(Cause::duplicate(join(&at, "audience"), member(request, "audience")));
            continue;
        }
        let life = member(request, "expirationSeconds");
        let detail = match life.as_i64() {
            Some(seconds) if seconds < MIN_LIFE => {
                "may not specify a duration less than 10 minutes"
            }
            Some(seconds) if seconds > MAX_LIFE => {
                "may not specify a duration larger than 2^32 seconds"
            }
            _ => continue,
        };
        causes.push(Cause::invalid(join(&at, "expirationSeconds"), life, detail));
    }
}

fn modes(_: &Value, modes: &Value, at: &str, causes: Causes<'_>) {
    const MODES: &[&str] = &["Persistent", "Ephemeral"];
    for mode in items(modes).iter().filter(|mode| !MODES.iter().any(|known| **mode == *known)) {
        causes.push(Cause::unsupported(at, mode, MODES));
    }
}

fn in_secrets(spec: &Value, place: &Value, at: &str, causes: Causes<'_>) {
    if !place.is_null() && items(member(spec, "tokenRequests")).is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.push(Cause::invalid(at, place, detail));
    }
}

// === nodes ===

pub(crate) fn node(node: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const DRIVER: &[Check] = &[
        ("name", By(volumes::driver)),
        ("nodeID", Required("")),
        ("nodeID", By(short)),
        ("allocatable.count", NotNegative),
    ];
    let drivers = drivers(node);
    let mut known = BTreeSet::new();
    for (place, driver) in drivers.iter().enumerate() {
        let at = format!("spec.drivers[{place}]");
        super::run(DRIVER, driver, &at, causes);
        if !known.insert(text(driver, "name")) {
            causes.push(Cause::duplicate(join(&at, "name"), member(driver, "name")));
        }
        topology(driver, &at, causes);
    }
    for before in old.map_or(&[][..], self::drivers) {
        let same = drivers.iter().filter(|driver| text(driver, "name") == text(before, "name"));
        for driver in same.filter(|driver| shown(driver) != shown(before)) {
            causes.push(Cause::invalid("spec.drivers", &shown(driver), "field is immutable"));
        }
    }
}

fn drivers(node: &Fields) -> &[Value] {
    items(read_path(node, "spec.drivers").unwrap_or(&Value::Null))
}

/// Returns what cannot change of a driver, as messages show it: all but the number of volumes.
fn shown(driver: &Value) -> Value {
    json!({
        "Name": text(driver, "name"),
        "NodeID": text(driver, "nodeID"),
        "TopologyKeys": member(driver, "topologyKeys"),
        "Allocatable": null,
    })
}

fn short(_: &Value, id: &Value, at: &str, causes: Causes<'_>) {
    if id.as_str().is_some_and(|id| id.len() > MAX_NODE) {
        let detail = format!("must be {MAX_NODE} characters or less");
        causes.push(Cause::invalid(at, id, &detail));
    }
}

/// Checks the keys of a driver's topology. As in upstream, the path is that of the driver.
fn topology(driver: &Value, at: &str, causes: Causes<'_>) {
    let keys = items(member(driver, "topologyKeys"));
    for (place, key) in keys.iter().enumerate() {
        if super::is_empty(key) {
            causes.push(Cause::required(at, ""));
        }
        if keys[..place].contains(key) {
            causes.push(Cause::duplicate(at, key));
        }
        check_text(key, names::qualified, at, causes);
    }
}
