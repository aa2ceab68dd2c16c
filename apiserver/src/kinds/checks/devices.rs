//! Resource claims.

use serde_json::{Value, json};

use super::Test::{By, Each, Required, Text};
use super::{Check, attachments, is_empty, items, member, text};
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

/// The largest number of items in a list of a claim.
const MAX_ITEMS: usize = 32;
/// The largest number of pods that share a claim.
const MAX_CONSUMERS: usize = 256;

pub(crate) const CLAIM: &[Check] = &[
    ("requests", By(at_most)),
    ("requests", Each(REQUEST)),
    ("requests", By(twice)),
    ("constraints", By(at_most)),
    ("constraints", By(named)),
    ("constraints", Each(&[("", By(constraint))])),
    ("config", By(at_most)),
    ("config", Each(CONFIG)),
    // The real server finds these in a second pass.
    ("requests", Each(MODES)),
    ("constraints", Each(&[("matchAttribute", By(full_name))])),
    ("config", Each(DRIVERS)),
];

const REQUEST: &[Check] =
    &[("name", Required("")), ("name", Text(names::dns_label)), ("", By(one_form))];

const MODES: &[Check] = &[("exactly.allocationMode", super::Test::OneOf(&["All", "ExactCount"]))];

pub(super) const CONFIG: &[Check] = &[("opaque", Required("")), ("opaque", By(opaque))];
/// The drivers of configurations, which are checked later.
pub(super) const DRIVERS: &[Check] = &[("opaque", By(driver))];

pub(super) fn at_most(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let found = items(list).len();
    if found > MAX_ITEMS {
        causes.push(Cause::too_many(at, found, MAX_ITEMS));
    }
}

fn one_form(_: &Value, request: &Value, at: &str, causes: Causes<'_>) {
    let (exactly, first) = (member(request, "exactly"), member(request, "firstAvailable"));
    match (exactly.is_null(), is_empty(first)) {
        (true, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required";
            causes.push(Cause::required(at, detail));
        }
        (false, false) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                fields are set";
            causes.push(Cause::invalid(at, &Value::Null, detail));
        }
        (false, true) => device(exactly, &format!("{at}.exactly"), causes),
        (true, false) => {
            for (place, alternative) in items(first).iter().enumerate() {
                let at = format!("{at}.firstAvailable[{place}]");
                let named = &[("name", Required("")), ("name", Text(names::dns_label))];
                super::run(named, alternative, &at, causes);
                device(alternative, &at, causes);
            }
        }
    }
}

fn device(request: &Value, at: &str, causes: Causes<'_>) {
    const CLASS: &[Check] =
        &[("deviceClassName", Required("")), ("deviceClassName", Text(names::dns_subdomain))];
    super::run(CLASS, request, at, causes);
    super::run(SELECTORS, request, at, causes);
    let count = member(request, "count");
    let number = count.as_i64().unwrap_or(0);
    let detail = match text(request, "allocationMode") {
        "All" if number != 0 => "must not be specified when allocationMode is 'All'",
        "ExactCount" if number <= 0 => "must be greater than zero",
        _ => return,
    };
    causes.push(Cause::invalid(format!("{at}.count"), count, detail));
}

/// Selectors have an expression, which is not compiled.
pub(super) const SELECTORS: &[Check] = &[("selectors", Each(&[("cel", Required(""))]))];

fn twice(_: &Value, requests: &Value, at: &str, causes: Causes<'_>) {
    let mut known = Vec::new();
    for (place, request) in items(requests).iter().enumerate() {
        let name = text(request, "name");
        if known.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}[{place}]"), request));
        }
        known.push(name);
    }
}

fn constraint(_: &Value, constraint: &Value, at: &str, causes: Causes<'_>) {
    let by = ["matchAttribute", "distinctAttribute"];
    if by.iter().all(|key| member(constraint, key).is_null()) {
        let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
            multiple fields are set";
        causes.push(Cause::required(at, detail));
    }
}

/// Checks that each constraint refers to existing requests.
fn named(devices: &Value, constraints: &Value, at: &str, causes: Causes<'_>) {
    let requests = items(member(devices, "requests"));
    let is_request = |name: &str| {
        let (name, alternative) = name.split_once('/').unwrap_or((name, ""));
        requests.iter().filter(|request| text(request, "name") == name).any(|request| {
            let others = items(member(request, "firstAvailable"));
            alternative.is_empty() || others.iter().any(|one| text(one, "name") == alternative)
        })
    };
    for (place, constraint) in items(constraints).iter().enumerate() {
        for (name_place, name) in items(member(constraint, "requests")).iter().enumerate() {
            if name.as_str().is_some_and(|name| !is_request(name)) {
                let detail = "must be the name of a request in the claim or the name of a request \
                    and a subrequest separated by '/'";
                let at = format!("{at}[{place}].requests[{name_place}]");
                causes.push(Cause::invalid(at, name, detail));
            }
        }
    }
}

fn full_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if name.as_str().is_some_and(|name| !name.contains('/')) {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.push(Cause::invalid(at, name, detail));
    }
}

fn opaque(_: &Value, opaque: &Value, at: &str, causes: Causes<'_>) {
    let (parameters, at) = (member(opaque, "parameters"), format!("{at}.parameters"));
    match opaque {
        Value::Object(_) if parameters.is_null() => causes.push(Cause::required(at, "")),
        Value::Object(_) if !parameters.is_object() => {
            let detail = "must be a valid JSON object";
            causes.push(Cause::invalid(at, &json!("<value omitted>"), detail));
        }
        _ => {}
    }
}

fn driver(_: &Value, opaque: &Value, at: &str, causes: Causes<'_>) {
    if opaque.is_object() {
        attachments::driver(member(opaque, "driver"), &format!("{at}.driver"), causes);
    }
}

/// Checks the pods that may use a claim: each once, and none before the claim is allocated.
pub(crate) fn consumers(status: &Value, causes: Causes<'_>) {
    let at = "status.reservedFor";
    let list = items(member(status, "reservedFor"));
    if list.len() > MAX_CONSUMERS {
        causes.push(Cause::too_many(at, list.len(), MAX_CONSUMERS));
    }
    if !list.is_empty() && member(status, "allocation").is_null() {
        let detail = "may not be specified when `allocated` is not set";
        causes.push(Cause::forbidden(at, detail));
    }
    for (place, consumer) in list.iter().enumerate() {
        let at = format!("{at}[{place}]");
        for key in ["resource", "name", "uid"] {
            if text(consumer, key).is_empty() {
                causes.push(Cause::required(format!("{at}.{key}"), ""));
            }
        }
    }
    let mut known = Vec::new();
    for (place, consumer) in list.iter().enumerate() {
        let uid = text(consumer, "uid");
        if known.contains(&uid) {
            causes.push(Cause::duplicate(format!("{at}[{place}]"), consumer));
        }
        known.push(uid);
    }
}
