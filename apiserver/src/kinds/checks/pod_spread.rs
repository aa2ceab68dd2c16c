//! Constraints on how pods spread over the parts of a cluster.

use serde_json::{Value, json};

use super::Test::{By, OneOf, Required};
use super::{Check, items, label_keys, selectors, text};
use crate::status::Cause;

const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: &[&str] = &["Honor", "Ignore"];

const TOPOLOGY: &[Check] = &[
    ("maxSkew", By(positive)),
    ("topologyKey", Required("can not be empty")),
    ("whenUnsatisfiable", By(action)),
];

const OTHERS: &[Check] = &[
    ("minDomains", By(domains)),
    ("nodeAffinityPolicy", OneOf(POLICIES)),
    ("nodeTaintsPolicy", OneOf(POLICIES)),
    ("", By(label_keys::check)),
    ("labelSelector", By(selectors::selector)),
];

/// Checks the constraints of a pod (`validateTopologySpreadConstraints`).
pub(super) fn constraints(_: &Value, constraints: &Value, at: &str, causes: &mut Vec<Cause>) {
    let sort = |one| (text(one, "topologyKey"), text(one, "whenUnsatisfiable"));
    let constraints = items(constraints);
    for (place, constraint) in constraints.iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(TOPOLOGY, constraint, &at, causes);
        let (key, action) = sort(constraint);
        if constraints.iter().skip(place + 1).any(|later| sort(later) == (key, action)) {
            let shown = json!(format!("{{{key}, {action}}}"));
            causes
                .push(Cause::duplicate(format!("{at}.{{topologyKey, whenUnsatisfiable}}"), &shown));
        }
        super::run(OTHERS, constraint, &at, causes);
    }
}

fn positive(_: &Value, number: &Value, at: &str, causes: &mut Vec<Cause>) {
    let number = number.as_i64().unwrap_or_default();
    if number <= 0 {
        causes.push(Cause::invalid(at, &json!(number), "must be greater than zero"));
    }
}

fn action(_: &Value, action: &Value, at: &str, causes: &mut Vec<Cause>) {
    let action = action.as_str().unwrap_or_default();
    if !ACTIONS.contains(&action) {
        causes.push(Cause::unsupported(at, &json!(action), ACTIONS));
    }
}

fn domains(constraint: &Value, count: &Value, at: &str, causes: &mut Vec<Cause>) {
    if count.is_null() {
        return;
    }
    positive(constraint, count, at, causes);
    let action = text(constraint, "whenUnsatisfiable");
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        causes.push(Cause::invalid(at, count, &detail));
    }
}
