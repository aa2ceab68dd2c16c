//! Resource claims.

use serde_json::{Value, json};

use super::Test::{By, Each, Has, Required, Text};
use super::{Check, attachments, check_text, device_slices, is_empty, items, member, text};
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

/// The largest number of items in a list of a claim.
const MAX_ITEMS: usize = 32;
/// The longest domain of an attribute.
const MAX_DOMAIN: usize = 63;
/// The largest number of pods that share a claim.
const MAX_CONSUMERS: usize = 256;

pub(crate) const CLAIM: &[Check] = &[
    ("requests", By(|_, list, at, causes| each(REQUEST, list, at, causes))),
    ("constraints", By(constraints)),
    ("config", By(configs)),
    // The real server finds these in a second pass.
    ("requests", By(at_most)),
    ("requests", By(twice)),
    ("requests", By(|_, list, at, causes| each(MODES, list, at, causes))),
    ("constraints", By(at_most)),
    ("constraints", By(|_, list, at, causes| each(NAMES, list, at, causes))),
    ("config", By(at_most)),
    ("config", By(|_, list, at, causes| each(LATER, list, at, causes))),
];

const REQUEST: &[Check] =
    &[("name", Required("")), ("name", Text(names::dns_label)), ("", By(one_form))];

const MODES: &[Check] = &[("exactly.allocationMode", super::Test::OneOf(&["All", "ExactCount"]))];

/// The requests to which a constraint or a configuration refers.
const REFERENCES: &[Check] = &[("requests", By(at_most)), ("requests", By(repeated))];

const NAMES: &[Check] = &[
    ("", Has(REFERENCES)),
    ("matchAttribute", By(full_name)),
    ("distinctAttribute", By(full_name)),
];

pub(super) const CONFIG: &[Check] = &[("opaque", Required("")), ("opaque", By(opaque))];
/// The drivers of configurations, which are checked later.
pub(super) const DRIVERS: &[Check] = &[("opaque", By(driver))];
const LATER: &[Check] = &[("", Has(REFERENCES)), ("", Has(DRIVERS))];

pub(super) fn at_most(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let found = items(list).len();
    if found > MAX_ITEMS {
        causes.push(Cause::too_many(at, found, MAX_ITEMS));
    }
}

/// Returns whether a list is short enough for a look at its items.
fn is_short(list: &Value) -> bool {
    items(list).len() <= MAX_ITEMS
}

fn each(checks: &'static [Check], list: &Value, at: &str, causes: Causes<'_>) {
    if is_short(list) {
        Each(checks).run(&Value::Null, list, at, causes);
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
    duplicates(requests, |request| member(request, "name"), at, causes);
}

fn repeated(_: &Value, names: &Value, at: &str, causes: Causes<'_>) {
    duplicates(names, |name| name, at, causes);
}

/// Checks that no two items of a list have the same key.
fn duplicates(list: &Value, key: fn(&Value) -> &Value, at: &str, causes: Causes<'_>) {
    if !is_short(list) {
        return;
    }
    let mut known = Vec::new();
    for (place, item) in items(list).iter().enumerate() {
        let key = key(item);
        if known.contains(&key) {
            causes.push(Cause::duplicate(format!("{at}[{place}]"), item));
        }
        known.push(key);
    }
}

fn constraints(devices: &Value, constraints: &Value, at: &str, causes: Causes<'_>) {
    if !is_short(constraints) {
        return;
    }
    for (place, constraint) in items(constraints).iter().enumerate() {
        let at = format!("{at}[{place}]");
        references(devices, constraint, &at, causes);
        let by = ["matchAttribute", "distinctAttribute"];
        if by.iter().all(|key| member(constraint, key).is_null()) {
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, \
                but multiple fields are set";
            causes.push(Cause::required(at, detail));
        }
    }
}

fn configs(devices: &Value, configs: &Value, at: &str, causes: Causes<'_>) {
    if !is_short(configs) {
        return;
    }
    for (place, config) in items(configs).iter().enumerate() {
        let at = format!("{at}[{place}]");
        references(devices, config, &at, causes);
        super::run(CONFIG, config, &at, causes);
    }
}

/// Checks that a constraint or a configuration refers to existing requests.
fn references(devices: &Value, of: &Value, at: &str, causes: Causes<'_>) {
    let names = member(of, "requests");
    if !is_short(names) {
        return;
    }
    for (place, name) in items(names).iter().enumerate() {
        let text = name.as_str().unwrap_or_default();
        let at = format!("{at}.requests[{place}]");
        let segments: Vec<&str> = text.split('/').collect();
        if segments.len() <= 2 {
            for segment in &segments {
                check_text(&json!(segment), names::dns_label, &at, causes);
            }
        }
        if !is_request(devices, &segments) {
            let detail = "must be the name of a request in the claim or the name of a request \
                and a subrequest separated by '/'";
            causes.push(Cause::invalid(at, name, detail));
        }
    }
}

fn is_request(devices: &Value, segments: &[&str]) -> bool {
    let find = |name| named(member(devices, "requests"), name);
    match segments {
        [name] => find(name).is_some(),
        [name, alternative] => find(name)
            .is_some_and(|request| named(member(request, "firstAvailable"), alternative).is_some()),
        _ => false,
    }
}

/// Returns the last item of a list that has this name.
fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    items(list).iter().rfind(|item| text(item, "name") == name)
}

/// Checks the name of an attribute, which has a domain.
fn full_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let Some(text) = name.as_str() else { return };
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(id, at, causes),
        [domain, id] => {
            prefix(domain, at, causes);
            if id.is_empty() {
                causes.push(Cause::invalid(at, &json!(""), "name must not be empty"));
            } else {
                identifier(id, at, causes);
            }
        }
        _ => {}
    }
    if !text.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.push(Cause::invalid(at, name, detail));
    }
}

fn prefix(domain: &str, at: &str, causes: Causes<'_>) {
    let shown = json!(domain);
    if domain.is_empty() {
        causes.push(Cause::invalid(at, &shown, "prefix must not be empty"));
        return;
    }
    if domain.len() > MAX_DOMAIN {
        causes.push(Cause::too_long(at, MAX_DOMAIN));
    }
    for problem in &names::dns_subdomain(domain) {
        causes.push(Cause::invalid(at, &shown, &format!("prefix: {problem}")));
    }
}

fn identifier(id: &str, at: &str, causes: Causes<'_>) {
    if id.len() > device_slices::MAX_NAME {
        causes.push(Cause::too_long(at, device_slices::MAX_NAME));
    }
    check_text(&json!(id), device_slices::identifier, at, causes);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(devices: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        super::super::run(CLAIM, devices, "d", &mut causes);
        causes.iter().map(Cause::text).collect()
    }

    #[test]
    fn wrong_constraints_have_the_causes_of_the_real_server() {
        let device = json!({"deviceClassName": "c", "allocationMode": "All"});
        let mut alternative = device.clone();
        alternative["name"] = json!("x");
        let requests = json!([
            {"name": "r", "exactly": device},
            {"name": "s", "firstAvailable": [alternative]},
        ]);
        let constraints = json!([
            {"requests": ["r", "s/x", "r"], "matchAttribute": "a.io/b"},
            {"requests": ["s/y", "a/b/c"], "distinctAttribute": "A/1"},
            {"matchAttribute": "/", "distinctAttribute": "b"},
        ]);
        let no_request = "must be the name of a request in the claim or the name of a request and \
            a subrequest separated by '/'";
        let subdomain = names::dns_subdomain("A").concat();
        let id = device_slices::identifier("1").concat();
        let wrong = |at: &str, value: &str, detail: &str| {
            format!("d.constraints[{at}: Invalid value: \"{value}\": {detail}")
        };
        let no_domain = "a fully qualified name must be a domain and a name separated by a slash";
        let expected = [
            wrong("1].requests[0]", "s/y", no_request),
            wrong("1].requests[1]", "a/b/c", no_request),
            "d.constraints[0].requests[2]: Duplicate value: \"r\"".to_owned(),
            wrong("1].distinctAttribute", "A", &format!("prefix: {subdomain}")),
            wrong("1].distinctAttribute", "1", &id),
            wrong("2].matchAttribute", "", "prefix must not be empty"),
            wrong("2].matchAttribute", "", "name must not be empty"),
            wrong("2].distinctAttribute", "b", no_domain),
        ];
        assert_eq!(found(&json!({"requests": requests, "constraints": constraints})), expected);
    }

    #[test]
    fn items_of_a_long_list_are_not_checked() {
        let many = vec![json!({}); MAX_ITEMS + 1];
        let expected = ["requests", "constraints", "config"]
            .map(|name| format!("d.{name}: Too many: 33: must have at most 32 items"));
        let devices = json!({"requests": many, "constraints": many, "config": many});
        assert_eq!(found(&devices), expected);
    }
}
