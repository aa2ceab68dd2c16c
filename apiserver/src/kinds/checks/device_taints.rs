//! Rules that taint devices.

use serde_json::{Value, json};

use super::Test::{By, OneOf, Required, Text};
use super::{Causes, Check, check_text, conditions, items, join, member, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
const MAX_CONDITIONS: usize = 8;
/// The longest name of a pool.
pub(super) const MAX_POOL: usize = 253;
/// The effect of a taint, which is checked later than the rest.
pub(super) const EFFECT: &[Check] = &[("effect", Required("")), ("effect", By(effect))];

pub(crate) fn rule(rule: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const SELECTOR: &[Check] = &[
        ("driver", By(driver)),
        ("pool", By(pool)),
        ("device", By(|_, name, at, causes| check_text(name, names::dns_label, at, causes))),
    ];
    let spec = rule.get("spec").unwrap_or(&Value::Null);
    super::run(SELECTOR, member(spec, "deviceSelector"), "spec.deviceSelector", causes);
    let taint = member(spec, "taint");
    key_and_value(taint, "spec.taint", causes);
    super::run(EFFECT, taint, "spec.taint", causes);
    if old.is_some() {
        status(rule.get("status").unwrap_or(&Value::Null), causes);
    }
}

/// Checks the label of a taint.
pub(super) fn key_and_value(taint: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(text(taint, "key")), names::qualified, &join(at, "key"), causes);
    super::run(&[("value", Text(names::label_value))], taint, at, causes);
}

fn driver(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if *name == "" {
        causes.push(Cause::required(at, ""));
    } else {
        check_text(name, names::dns_subdomain, at, causes);
    }
}

/// Checks the name of a pool, which is missing or not empty.
pub(super) fn pool(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if *name == "" {
        causes.push(Cause::required(at, ""));
    } else {
        if name.as_str().is_some_and(|name| name.len() > MAX_POOL) {
            causes.push(Cause::too_long(at, MAX_POOL));
        }
        for part in name.as_str().into_iter().flat_map(|name| name.split('/')) {
            check_text(&json!(part), names::dns_subdomain, at, causes);
        }
    }
}

pub(super) fn effect(_: &Value, effect: &Value, at: &str, causes: Causes<'_>) {
    if *effect != "" {
        super::run(&[("", OneOf(EFFECTS))], effect, at, causes);
    }
}

fn status(status: &Value, causes: Causes<'_>) {
    const AT: &str = "status.conditions";
    let list = member(status, "conditions");
    conditions::list(status, list, AT, causes);
    let found = items(list).len();
    if found > MAX_CONDITIONS {
        causes.push(Cause::too_many(AT, found, MAX_CONDITIONS));
    }
}
