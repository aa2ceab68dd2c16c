//! Requests for devices, of resource claims and their templates.

use homeostat_schema::check_device_selector;
use serde_json::{Value, json};

use super::Test::{By, Each, Has, OneOf, Required, Text};
use super::device_parts::{
    DECLARED_CONFIG, DECLARED_TOLERATION, MAX_ITEMS, config, declared_references, distinct, few,
    full_name, references, sized, toleration,
};
use super::{Causes, Check, check_text, is_empty, join, member, text};
use crate::names;
use crate::status::Cause;

/// The most alternatives of a request.
const MAX_ALTERNATIVES: usize = 8;
/// The longest expression of a selector.
const MAX_EXPRESSION: usize = 10 * 1024;

/// Checks the requests for devices that a new claim or a template makes.
pub(crate) fn claim(devices: &Value, at: &str, causes: Causes<'_>) {
    let list = |name: &str| few(member(devices, name), MAX_ITEMS).iter().enumerate();
    let requests = member(devices, "requests");
    for (place, wanted) in list("requests") {
        request(wanted, &format!("{at}.requests[{place}]"), causes);
    }
    for (place, limit) in list("constraints") {
        let at = format!("{at}.constraints[{place}]");
        references(requests, member(limit, "requests"), &join(&at, "requests"), causes);
        constraint(limit, &at, causes);
    }
    for (place, setting) in list("config") {
        let at = format!("{at}.config[{place}]");
        references(requests, member(setting, "requests"), &join(&at, "requests"), causes);
        config(setting, &at, causes);
    }
}

fn request(request: &Value, at: &str, causes: Causes<'_>) {
    const WHY: &str = "exactly one of `exactly` or `firstAvailable` is required";
    name_of(request, at, causes);
    let (exactly, first) = (member(request, "exactly"), member(request, "firstAvailable"));
    match (exactly.is_null(), is_empty(first)) {
        (true, true) => causes.push(Cause::required(at, WHY)),
        (false, false) => {
            let detail = format!("{WHY}, but multiple fields are set");
            causes.push(Cause::invalid(at, &Value::Null, &detail));
        }
        (false, true) => {
            let at = join(at, "exactly");
            super::run(CLASS, exactly, &at, causes);
            device(exactly, &at, causes);
        }
        (true, false) => {
            for (place, alternative) in few(first, MAX_ALTERNATIVES).iter().enumerate() {
                let at = format!("{at}.firstAvailable[{place}]");
                name_of(alternative, &at, causes);
                device(alternative, &at, causes);
            }
        }
    }
}

fn name_of(request: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(text(request, "name")), names::dns_label, &join(at, "name"), causes);
}

const CLASS: &[Check] =
    &[("deviceClassName", Required("")), ("deviceClassName", Text(names::dns_subdomain))];

fn device(request: &Value, at: &str, causes: Causes<'_>) {
    const TOLERATIONS: &[Check] = &[("tolerations", Each(&[("", By(toleration))]))];
    super::run(SELECTORS, request, at, causes);
    let count = member(request, "count");
    let number = count.as_i64().unwrap_or(0);
    let wrong = match text(request, "allocationMode") {
        "All" if number != 0 => Some("must not be specified when allocationMode is 'All'"),
        "ExactCount" if number <= 0 => Some("must be greater than zero"),
        _ => None,
    };
    causes.extend(wrong.map(|detail| Cause::invalid(join(at, "count"), count, detail)));
    super::run(TOLERATIONS, request, at, causes);
}

/// Selectors have an expression, which compiles.
pub(super) const SELECTORS: &[Check] = &[("selectors", By(selectors))];

fn selectors(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    for (place, selector) in few(list, MAX_ITEMS).iter().enumerate() {
        let (cel, at) = (member(selector, "cel"), format!("{at}[{place}].cel"));
        if cel.is_null() {
            causes.push(Cause::required(at, ""));
        } else {
            expression(text(cel, "expression"), &join(&at, "expression"), causes);
        }
    }
}

fn expression(expression: &str, at: &str, causes: Causes<'_>) {
    if expression.len() > MAX_EXPRESSION {
        causes.push(Cause::too_long(at, MAX_EXPRESSION));
    } else {
        causes.extend(check_device_selector(at, expression).map(Cause::from));
    }
}

fn constraint(constraint: &Value, at: &str, causes: Causes<'_>) {
    let by = ["matchAttribute", "distinctAttribute"];
    if by.iter().all(|key| member(constraint, key).is_null()) {
        let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
            multiple fields are set";
        causes.push(Cause::required(at, detail));
    }
}

// === declared rules ===

/// Checks the requests for devices by the declared rules.
pub(crate) fn declared(devices: &Value, at: &str, causes: Causes<'_>) {
    const LISTS: &[Check] = &[
        ("requests", By(declared_requests)),
        ("constraints", By(declared_constraints)),
        ("config", By(declared_configs)),
    ];
    super::run(LISTS, devices, at, causes);
}

fn declared_requests(_: &Value, requests: &Value, at: &str, causes: Causes<'_>) {
    let requests = sized(requests, MAX_ITEMS, at, causes);
    distinct(requests, |request| text(request, "name"), at, causes);
    for (place, request) in requests.iter().enumerate() {
        super::run(DECLARED_REQUEST, request, &format!("{at}[{place}]"), causes);
    }
}

const DECLARED_REQUEST: &[Check] =
    &[("exactly", Has(DECLARED_DEVICE)), ("firstAvailable", By(declared_alternatives))];

const DECLARED_DEVICE: &[Check] = &[
    ("selectors", By(at_most)),
    ("allocationMode", OneOf(&["All", "ExactCount"])),
    ("tolerations", Each(DECLARED_TOLERATION)),
];

fn declared_alternatives(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let list = sized(list, MAX_ALTERNATIVES, at, causes);
    distinct(list, |alternative| text(alternative, "name"), at, causes);
    for (place, alternative) in list.iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(CLASS.iter().chain(DECLARED_DEVICE), alternative, &at, causes);
    }
}

/// Checks the size of a list.
pub(super) fn at_most(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    sized(list, MAX_ITEMS, at, causes);
}

fn declared_constraints(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const CONSTRAINT: &[Check] = &[
        ("requests", By(declared_references)),
        ("matchAttribute", By(full_name)),
        ("distinctAttribute", By(full_name)),
    ];
    for (place, constraint) in sized(list, MAX_ITEMS, at, causes).iter().enumerate() {
        super::run(CONSTRAINT, constraint, &format!("{at}[{place}]"), causes);
    }
}

/// Checks configurations of drivers.
pub(super) fn declared_configs(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const REFERENCES: &[Check] = &[("requests", By(declared_references))];
    for (place, config) in sized(list, MAX_ITEMS, at, causes).iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(REFERENCES.iter().chain(DECLARED_CONFIG), config, &at, causes);
    }
}
