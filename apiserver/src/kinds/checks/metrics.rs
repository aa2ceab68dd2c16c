//! The metrics of autoscalers and their targets.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Required, Text};
use super::references::{Group, group_problem, reference};
use super::{Causes, Check, check_text, is_empty, items, join, member, quantities, text};
use crate::status::Cause;
use crate::{names, quantity};

const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The source of a metric: its type, its member, and the tests of it.
struct Source {
    of_type: &'static str,
    member: &'static str,
    checks: &'static [Check],
}

/// The sources, in the order of the real server. The described object of `object` is checked
/// before.
const SOURCES: [Source; 5] = [
    Source {
        of_type: "Object",
        member: "object",
        checks: &[METRIC, TARGET, ("target", By(object_target))],
    },
    Source {
        of_type: "External",
        member: "external",
        checks: &[METRIC, TARGET, ("target", By(external_target))],
    },
    Source {
        of_type: "Pods",
        member: "pods",
        checks: &[
            METRIC,
            TARGET,
            ("target.averageValue", Required("must specify a positive target averageValue")),
        ],
    },
    Source {
        of_type: "Resource",
        member: "resource",
        checks: &[RESOURCE, TARGET, ("target", By(resource_target))],
    },
    Source {
        of_type: "ContainerResource",
        member: "containerResource",
        checks: &[
            RESOURCE,
            ("name", By(resource_name)),
            ("container", Required("must specify a container")),
            ("container", Text(names::dns_label)),
            TARGET,
            ("target", By(resource_target)),
        ],
    },
];

const RESOURCE: Check = ("name", Required("must specify a resource name"));
const METRIC: Check = ("metric.name", By(metric_name));
const TARGET: Check = ("target", By(target));

/// Checks the metrics of a spec. `old` is the spec that an update replaces.
pub(super) fn all(spec: &Value, old: Option<&Value>, causes: Causes<'_>) {
    let group = if old.is_some_and(has_odd_group) { Group::Kept } else { Group::Optional };
    let metrics = items(member(spec, "metrics"));
    for (place, metric) in metrics.iter().enumerate() {
        check(metric, group, &format!("spec.metrics[{place}]"), causes);
    }
    let from_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if member(spec, "minReplicas") == 0 && !metrics.iter().any(from_zero) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        causes.push(Cause::forbidden("spec.metrics", detail));
    }
}

/// Returns true if a metric of the spec describes an object of an invalid apiVersion.
fn has_odd_group(spec: &Value) -> bool {
    let of_objects = |metric: &&Value| text(metric, "type") == "Object";
    let mut described =
        items(member(spec, "metrics")).iter().filter(of_objects).map(|metric| &metric["object"]);
    described.any(|object| {
        let version = text(member(object, "describedObject"), "apiVersion");
        group_problem(version, Group::Optional).is_some()
    })
}

fn check(metric: &Value, group: Group, at: &str, causes: Causes<'_>) {
    let of_type = text(metric, "type");
    let type_at = join(at, "type");
    if of_type.is_empty() {
        causes.push(Cause::required(&type_at, "must specify a metric source type"));
    }
    if !TYPES.contains(&of_type) {
        causes.push(Cause::unsupported(type_at, &json!(of_type), TYPES));
    }
    let is_set = |source: &&Source| !member(metric, source.member).is_null();
    let set: Vec<&Source> = SOURCES.iter().filter(is_set).collect();
    if let Some(first) = set.first() {
        let (source, at) = (member(metric, first.member), join(at, first.member));
        if first.of_type == "Object" {
            let at = join(&at, "describedObject");
            reference(member(source, "describedObject"), group, &at, causes);
        }
        super::run(first.checks, source, &at, causes);
    }
    let expected = SOURCES.iter().find(|source| source.of_type == of_type);
    if let Some(missing) = expected.filter(|source| !is_set(source)) {
        let detail = "must populate information for the given metric source";
        causes.push(Cause::required(join(at, missing.member), detail));
    }
    if set.len() > 1 {
        for other in set.iter().filter(|source| source.of_type != of_type) {
            let detail = "must populate the given metric source only";
            causes.push(Cause::forbidden(join(at, other.member), detail));
        }
    }
}

fn metric_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if is_empty(name) {
        causes.push(Cause::required(at, "must specify a metric name"));
    } else {
        check_text(name, names::path_segment, at, causes);
    }
}

fn resource_name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
        quantities::container_name(name, at, causes);
    }
}

fn target(_: &Value, target: &Value, at: &str, causes: Causes<'_>) {
    const VALUES: &[Check] = &[
        ("value", By(positive)),
        ("averageValue", By(positive)),
        ("averageUtilization", AtLeast(1, "must be greater than 0")),
    ];
    let of_type = text(target, "type");
    if of_type.is_empty() {
        causes.push(Cause::required(join(at, "type"), "must specify a metric target type"));
    }
    if !matches!(of_type, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        causes.push(Cause::invalid(join(at, "type"), &json!(of_type), detail));
    }
    super::run(VALUES, target, at, causes);
}

fn positive(_: &Value, value: &Value, at: &str, causes: Causes<'_>) {
    if quantity::read(value).is_some_and(|quantity| !quantity.is_positive()) {
        causes.push(Cause::invalid(at, value, "must be positive"));
    }
}

fn is_set(target: &Value, name: &str) -> bool {
    !member(target, name).is_null()
}

fn object_target(_: &Value, target: &Value, at: &str, causes: Causes<'_>) {
    if !is_set(target, "value") && !is_set(target, "averageValue") {
        let detail = "must set either a target value or averageValue";
        causes.push(Cause::required(join(at, "averageValue"), detail));
    }
}

fn external_target(_: &Value, target: &Value, at: &str, causes: Causes<'_>) {
    let missing = ("averageValue", "must set either a target value for metric or a per-pod target");
    let both = ("value", "may not set both a target value for metric and a per-pod target");
    one_target(target, at, (missing, both), causes);
}

fn resource_target(_: &Value, target: &Value, at: &str, causes: Causes<'_>) {
    let missing =
        ("averageUtilization", "must set either a target raw value or a target utilization");
    let both = ("averageValue", "may not set both a target raw value and a target utilization");
    one_target(target, at, (missing, both), causes);
}

/// Checks that one of two members is set. Each stands with the text of the problem that is reported
/// at it: the first if both are missing, the second if both are set.
fn one_target(
    target: &Value,
    at: &str,
    (missing, both): ((&str, &str), (&str, &str)),
    causes: Causes<'_>,
) {
    match (is_set(target, missing.0), is_set(target, both.0)) {
        (false, false) => causes.push(Cause::required(join(at, missing.0), missing.1)),
        (true, true) => causes.push(Cause::forbidden(join(at, both.0), both.1)),
        _ => {}
    }
}
