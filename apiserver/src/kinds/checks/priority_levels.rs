//! Priority levels of requests.

use serde_json::{Value, json};

use super::Test::{AtLeast, Between, By};
use super::{Causes, Check, flow_schemas, join, member, text};
use crate::fields::{Fields, read_path};
use crate::status::Cause;

/// The name of the only level that is exempt.
const EXEMPT: &str = "exempt";
/// The name of the level of the requests that have no other one.
const CATCH_ALL: &str = "catch-all";
const NOT_NEGATIVE: &str = "must be a non-negative integer";
const POSITIVE: &str = "must be positive";
/// The most queues of a level.
const MAX_QUEUES: i64 = 10_000_000;
/// The bits of the hash that deals a hand of queues.
const HASH_BITS: i64 = 60;

const SHARES: Check = ("nominalConcurrencyShares", AtLeast(0, NOT_NEGATIVE));
const LENDABLE: Check = ("lendablePercent", Between(0, 100));

pub(crate) fn priority_level(level: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const TYPES: &[&str] = &["Exempt", "Limited"];
    let spec = level.get("spec").unwrap_or(&Value::Null);
    let of_type = text(spec, "type");
    let name = read_path(level, "metadata.name").and_then(Value::as_str).unwrap_or_default();
    if (name == EXEMPT) != (of_type == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(Cause::invalid("spec.type", &json!(of_type), detail));
    }
    match of_type {
        "Exempt" => {
            super::run(&[SHARES, LENDABLE], member(spec, "exempt"), "spec.exempt", causes);
        }
        "Limited" => limited(member(spec, "limited"), "spec.limited", causes),
        "" => {}
        _ => causes.push(Cause::unsupported("spec.type", member(spec, "type"), TYPES)),
    }
    mandatory(name, spec, causes);
    flow_schemas::conditions(level, causes);
    of_types(spec, causes);
}

/// Checks that a mandatory level has its spec.
fn mandatory(name: &str, spec: &Value, causes: Causes<'_>) {
    let shown = |spec: &Value| super::internal("flowcontrol.PriorityLevelConfigurationSpec", spec);
    let (fixed, except) = match name {
        EXEMPT => (json!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        CATCH_ALL => {
            let limited = json!({"nominalConcurrencyShares": 5, "lendablePercent": 0,
                "limitResponse": {"type": "Reject"}});
            (json!({"type": "Limited", "limited": limited}), "")
        }
        _ => return,
    };
    let (spec, mut fixed) = (shown(spec), shown(&fixed));
    if name == EXEMPT {
        fixed["Exempt"] = spec["Exempt"].clone();
    }
    if spec != fixed {
        let detail = flow_schemas::must_equal(name, except);
        causes.push(Cause::invalid("spec", &spec, &detail));
    }
}

fn limited(limited: &Value, at: &str, causes: Causes<'_>) {
    const REST: &[Check] = &[
        LENDABLE,
        ("borrowingLimitPercent", AtLeast(0, "if specified, must be a non-negative integer")),
    ];
    super::run(&[SHARES, ("limitResponse", By(response))], limited, at, causes);
    super::run(REST, limited, at, causes);
}

fn response(_: &Value, response: &Value, at: &str, causes: Causes<'_>) {
    const TYPES: &[&str] = &["Queue", "Reject"];
    match text(response, "type") {
        "Queue" => queues(member(response, "queuing"), &join(at, "queuing"), causes),
        "" | "Reject" => {}
        _ => causes.push(Cause::unsupported(join(at, "type"), member(response, "type"), TYPES)),
    }
}

fn queues(queuing: &Value, at: &str, causes: Causes<'_>) {
    if queuing.is_null() {
        return;
    }
    let number = |name| member(queuing, name).as_i64().unwrap_or(0);
    let mut refuse = |name: &str, detail: &str| {
        causes.push(Cause::invalid(join(at, name), member(queuing, name), detail));
    };
    let (queues, hand) = (number("queues"), number("handSize"));
    if number("queueLengthLimit") <= 0 {
        refuse("queueLengthLimit", POSITIVE);
    }
    if queues <= 0 {
        refuse("queues", POSITIVE);
    } else if queues > MAX_QUEUES {
        refuse("queues", &format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand <= 0 {
        refuse("handSize", POSITIVE);
    } else if hand > queues {
        refuse("handSize", &format!("should not be greater than queues ({queues})"));
    } else if entropy(queues, hand) > HASH_BITS {
        let deal = format!("deckSize {queues} and handSize {hand}");
        let detail =
            format!("required entropy bits of {deal} should not be greater than {HASH_BITS}");
        refuse("handSize", &detail);
    }
}

/// Returns the bits that choose a hand from this number of queues.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "there are at most ten million queues"
)]
fn entropy(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

/// Checks that the members fit the types. The real server reports these problems after all others.
fn of_types(spec: &Value, causes: Causes<'_>) {
    let only_for = |fits: bool, needed: bool, value: &Value, at: &str| match (fits, value.is_null())
    {
        (false, false) => Some(Cause::forbidden(at, "")),
        (true, true) if needed => Some(Cause::required(at, "")),
        _ => None,
    };
    let of_type = text(spec, "type");
    let (exempt, limited) = (member(spec, "exempt"), member(spec, "limited"));
    causes.extend(only_for(of_type == "Exempt", false, exempt, "spec.exempt"));
    causes.extend(only_for(of_type == "Limited", true, limited, "spec.limited"));
    if of_type.is_empty() {
        causes.push(Cause::required("spec.type", ""));
    }
    if limited.is_null() {
        return;
    }
    let at = "spec.limited.limitResponse";
    let response = member(limited, "limitResponse");
    let (of_type, queuing) = (text(response, "type"), member(response, "queuing"));
    causes.extend(only_for(of_type == "Queue", true, queuing, &join(at, "queuing")));
    if of_type.is_empty() {
        causes.push(Cause::required(join(at, "type"), ""));
    }
}
