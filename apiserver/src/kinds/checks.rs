//! Validation of objects as tables of members and tests.
//!
//! A table is run from top to bottom, so that the causes have the real server's order.

pub(crate) mod addresses;
pub(crate) mod admission_rules;
mod affinity;
pub(crate) mod api_service;
pub(crate) mod attachments;
pub(crate) mod autoscaling;
pub(crate) mod certificates;
mod claim_updates;
pub(crate) mod client_config;
mod conditions;
pub(crate) mod config_data;
mod container;
pub(crate) mod container_ports;
mod container_restarts;
mod counts;
pub(crate) mod cron_jobs;
pub(crate) mod csi;
mod device_capacity;
pub(crate) mod device_claim_status;
pub(crate) mod device_classes;
mod device_counters;
mod device_parts;
pub(crate) mod device_slices;
pub(crate) mod device_taints;
pub(crate) mod devices;
pub(crate) mod disruption;
mod downward;
pub(crate) mod endpoints;
mod environment;
pub(crate) mod flow_schemas;
pub(crate) mod ingress;
pub(crate) mod ingress_class;
mod job_indexes;
mod job_policies;
mod job_status;
mod job_updates;
pub(crate) mod jobs;
mod label_keys;
mod limit_ranges;
pub(crate) mod managers;
pub(crate) mod metadata;
mod metrics;
pub(crate) mod migrations;
pub(crate) mod networking;
pub(crate) mod nodes;
pub(crate) mod paths;
pub(crate) mod persistent_volume;
pub(crate) mod pod_annotations;
pub(crate) mod pod_certificates;
mod pod_claim_status;
mod pod_claims;
pub(crate) mod pod_containers;
mod pod_devices;
mod pod_dns;
mod pod_host;
mod pod_level;
mod pod_os;
pub(crate) mod pod_profiles;
mod pod_restarts;
pub(crate) mod pod_spec;
mod pod_spread;
pub(crate) mod pod_status;
pub(crate) mod policies;
pub(crate) mod policy_bindings;
pub(crate) mod priority_levels;
mod probes;
mod projected_files;
pub(crate) mod quantities;
pub(crate) mod quota;
pub(crate) mod rbac;
mod references;
pub(crate) mod runtime_class;
mod security;
pub(crate) mod selectors;
pub(crate) mod service_cidr;
pub(crate) mod service_status;
pub(crate) mod services;
pub(crate) mod signing;
pub(crate) mod small;
pub(crate) mod stateful_set;
pub(crate) mod storage;
pub(crate) mod storage_claim;
mod sysctls;
pub(crate) mod tolerations;
mod volume_affinity;
mod volume_certificates;
mod volume_disks;
mod volume_files;
mod volume_mounts;
mod volumes;
pub(crate) mod webhooks;
mod windows;
pub(crate) mod workloads;

use homeostat_schema::InternalValue;
use serde_json::Value;

use crate::fields::{Fields, text};
use crate::names::NameCheck;
use crate::status::Cause;

/// The causes that checks add to.
type Causes<'a> = &'a mut Vec<Cause>;

/// A member, by its path within the object of the table, and its test.
pub(crate) type Check = (&'static str, Test);

/// A test of a member. All but `Required` pass if the member is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test {
    /// Present and not empty.
    Required(&'static str),
    /// A number that is not negative.
    NotNegative,
    /// A number that is at least this; else the message.
    AtLeast(i64, &'static str),
    /// A number that is at most this.
    AtMost(i64),
    /// A number in this range, both ends included.
    Between(i64, i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A text of a certain form, or empty.
    Text(NameCheck),
    /// An object that passes these checks.
    Has(&'static [Check]),
    /// A list of such objects.
    Each(&'static [Check]),
    /// The test of a function: of the object around the member, the member, and its path.
    By(fn(&Value, &Value, &str, &mut Vec<Cause>)),
}

/// Runs a table against an object at the path `at`.
pub(super) fn run<'a>(
    checks: impl IntoIterator<Item = &'a Check>,
    object: &Value,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    // One text for all members: most objects have no cause that needs it.
    let mut place = String::with_capacity(at.len() + 40);
    for (path, test) in checks {
        let found = find(object, path).unwrap_or(&Value::Null);
        if !found.is_null() || matches!(test, Test::Required(_) | Test::By(_)) {
            place.clear();
            join_into(&mut place, at, path);
            test.run(object, found, &place, causes);
        }
    }
}

fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    parts.try_fold(object, |value, part| value.get(part))
}

pub(super) fn join(at: &str, path: &str) -> String {
    let mut joined = String::with_capacity(at.len() + path.len() + 1);
    join_into(&mut joined, at, path);
    joined
}

fn join_into(into: &mut String, at: &str, path: &str) {
    into.push_str(at);
    if !at.is_empty() && !path.is_empty() {
        into.push('.');
    }
    into.push_str(path);
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a member, or null.
pub(super) fn member<'a>(object: &'a Value, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Checks a text if it is present.
pub(super) fn check_text(value: &Value, check_text: NameCheck, at: &str, causes: &mut Vec<Cause>) {
    let Some(text) = value.as_str() else { return };
    causes.extend(check_text(text).iter().map(|detail| Cause::invalid(at, value, detail)));
}

// === impl Test ===

impl Test {
    fn run(&self, around: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
        match self {
            Self::Required(detail) if is_empty(value) => causes.push(Cause::required(at, detail)),
            Self::By(ask) => ask(around, value, at, causes),
            Self::NotNegative => at_least(value, 0, NOT_NEGATIVE, at, causes),
            Self::AtLeast(least, detail) => at_least(value, *least, detail, at, causes),
            Self::AtMost(most) => {
                if value.as_i64().is_some_and(|number| number > *most) {
                    let detail = format!("must be less than or equal to {most}");
                    causes.push(Cause::invalid(at, value, &detail));
                }
            }
            Self::Between(least, most) => {
                if value.as_i64().is_some_and(|number| !(*least..=*most).contains(&number)) {
                    let detail = format!("must be between {least} and {most}, inclusive");
                    causes.push(Cause::invalid(at, value, &detail));
                }
            }
            Self::OneOf(known) => {
                if value.as_str().is_some_and(|text| !known.contains(&text)) {
                    causes.push(Cause::unsupported(at, value, known));
                }
            }
            Self::Text(is) if !is_empty(value) => check_text(value, *is, at, causes),
            Self::Has(checks) => run(*checks, value, at, causes),
            Self::Each(checks) => {
                for (place, item) in items(value).iter().enumerate() {
                    run(*checks, item, &format!("{at}[{place}]"), causes);
                }
            }
            Self::Required(_) | Self::Text(_) => {}
        }
    }
}

/// Checks that an update leaves members as they are. Unlike for the kind's immutable paths, the
/// message does not show the value.
pub(super) fn unchanged(
    keys: &[&str],
    new: &Fields,
    old: Option<&Fields>,
    causes: &mut Vec<Cause>,
) {
    let Some(old) = old else { return };
    for key in keys.iter().filter(|key| new.get(**key) != old.get(**key)) {
        causes.push(Cause::invalid(*key, &Value::Null, "field is immutable"));
    }
}

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

fn at_least(value: &Value, least: i64, detail: &str, at: &str, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|number| number < least) {
        causes.push(Cause::invalid(at, value, detail));
    }
}

/// Returns a value as the server's own version has it; as it is if that has no such type.
fn internal(type_name: &str, value: &Value) -> Value {
    let shown = InternalValue::of(type_name, value).filter(|_| !value.is_null());
    shown.map_or_else(|| value.clone(), |shown| shown.to_json())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::names;

    #[test]
    fn table_is_run_from_top_to_bottom_item_by_item() {
        const ITEM: &[Check] =
            &[("name", Test::Required("")), ("name", Test::Text(names::dns_label))];
        const TABLE: &[Check] = &[
            ("list", Test::Each(ITEM)),
            ("count", Test::NotNegative),
            ("how", Test::OneOf(&["A"])),
        ];
        let object = json!({"list": [{"name": "x"}, {}, {"name": "x"}], "count": -1, "how": "B"});
        let mut causes = Vec::new();
        run(TABLE, &object, "spec", &mut causes);
        let fields: Vec<&str> = causes.iter().map(Cause::field).collect();
        assert_eq!(fields, ["spec.list[1].name", "spec.count", "spec.how"]);
        causes.clear();
        run(TABLE, &json!(null), "spec", &mut causes);
        run(TABLE, &json!({"list": 3, "count": "x", "how": []}), "spec", &mut causes);
        assert!(causes.is_empty(), "what is of a wrong type has been refused before: {causes:?}");
    }
}
