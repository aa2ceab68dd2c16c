//! Counters that devices share.

use serde_json::{Value, json};

use super::Test::{By, Required, Text};
use super::device_parts::{distinct, few, sized};
use super::{Causes, Check, check_text, join, member, text};
use crate::names;
use crate::status::Cause;

/// The most sets of counters in a slice, and the most sets that a device takes from.
const MAX_SETS: usize = 8;
const MAX_TAKEN: usize = 2;
/// The most counters of a set.
const MAX_COUNTERS: usize = 32;

/// Checks the number of counters in each set of a slice.
pub(super) fn sets(_: &Value, sets: &Value, at: &str, causes: Causes<'_>) {
    counters(few(sets, MAX_SETS), at, causes);
}

/// Checks the number of counters that a device takes from each set.
pub(super) fn taken(device: &Value, at: &str, causes: Causes<'_>) {
    let at = join(at, "consumesCounters");
    counters(few(member(device, "consumesCounters"), MAX_TAKEN), &at, causes);
}

fn counters(sets: &[Value], at: &str, causes: Causes<'_>) {
    for (place, set) in sets.iter().enumerate() {
        let found = member(set, "counters").as_object().map_or(0, serde_json::Map::len);
        if found > MAX_COUNTERS {
            let at = format!("{at}[{place}].counters");
            causes.push(Cause::too_many(at, found, MAX_COUNTERS));
        }
    }
}

/// Checks the sets of a slice by the declared rules.
pub(super) fn declared_sets(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const SET: &[Check] = &[
        ("name", Required("")),
        ("name", Text(names::dns_label)),
        ("counters", Required("")),
        ("counters", By(counter_names)),
    ];
    let list = sized(list, MAX_SETS, at, causes);
    distinct(list, |set| text(set, "name"), at, causes);
    for (place, set) in list.iter().enumerate() {
        super::run(SET, set, &format!("{at}[{place}]"), causes);
    }
}

/// Checks by the declared rules what a device takes from sets.
pub(super) fn declared_taken(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    const TAKEN: &[Check] = &[
        ("counterSet", Required("")),
        ("counterSet", Text(names::dns_label)),
        ("counters", Required("")),
        ("counters", By(counter_names)),
    ];
    let list = sized(list, MAX_TAKEN, at, causes);
    distinct(list, |taken| text(taken, "counterSet"), at, causes);
    for (place, taken) in list.iter().enumerate() {
        super::run(TAKEN, taken, &format!("{at}[{place}]"), causes);
    }
}

fn counter_names(_: &Value, counters: &Value, at: &str, causes: Causes<'_>) {
    for (name, _) in counters.as_object().into_iter().flatten() {
        check_text(&json!(name), names::dns_label, at, causes);
    }
}
