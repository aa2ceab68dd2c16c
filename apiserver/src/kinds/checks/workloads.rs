//! Workloads: replicas, selectors, templates, strategies.

use serde_json::{Value, json};

use super::Test::{By, NotNegative};
use super::counts::{at_most_all, count_or_percent, is_none};
use super::{Causes, Check, NOT_NEGATIVE, is_empty, member, pod_spec, selectors, text};
use crate::fields::{Fields, are_kept, string_map};
use crate::status::Cause;

const SELECTOR: Check = ("selector", By(selectors::selector));
pub(super) const MIN_READY: Check = ("minReadySeconds", NotNegative);
const HISTORY: Check = ("revisionHistoryLimit", NotNegative);

pub(super) fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// The numbers of a status: those that cannot be negative, and those of them that count a part of
/// the pods.
struct Counts {
    numbers: &'static [&'static str],
    parts: &'static [&'static str],
}

const REPLICA_SET: Counts = Counts {
    numbers: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
};
const DEPLOYMENT: Counts = Counts {
    numbers: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
};
const DAEMON_SET: Counts = Counts {
    numbers: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    parts: &[],
};

/// Checks that no number of a status is negative, and no part of the pods larger than the whole.
fn counts(object: &Fields, old: Option<&Fields>, counts: &Counts, causes: Causes<'_>) {
    if old.is_none() {
        return;
    }
    let status = object.get("status").unwrap_or(&Value::Null);
    not_negative(status, counts.numbers, causes);
    at_most(status, counts.parts, "readyReplicas", causes);
}

fn count(status: &Value, key: &str) -> i64 {
    member(status, key).as_i64().unwrap_or(0)
}

/// Checks that the numbers of a status are not negative.
pub(super) fn not_negative(status: &Value, numbers: &[&str], causes: Causes<'_>) {
    for key in numbers {
        let count = count(status, key);
        if count < 0 {
            causes.push(Cause::invalid(format!("status.{key}"), &json!(count), NOT_NEGATIVE));
        }
    }
}

/// Checks that parts are not larger than the whole, nor the available pods more than the ready
/// ones, which messages call `ready`.
pub(super) fn at_most(status: &Value, parts: &[&str], ready: &str, causes: Causes<'_>) {
    for key in parts.iter().filter(|key| count(status, key) > count(status, "replicas")) {
        let detail = "cannot be greater than status.replicas";
        let value = json!(count(status, key));
        causes.push(Cause::invalid(format!("status.{key}"), &value, detail));
    }
    let available = count(status, "availableReplicas");
    if available > count(status, "readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        causes.push(Cause::invalid("status.availableReplicas", &json!(available), &detail));
    }
}

pub(super) fn run(checks: &[Check], spec: &Value, causes: Causes<'_>) {
    super::run(checks, spec, "spec", causes);
}

pub(crate) fn replica_set(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    if !are_kept(object, old, &["spec"]) {
        let spec = spec(object);
        run(&[("replicas", NotNegative), MIN_READY], spec, causes);
        selector_and_template(spec, causes);
    }
    counts(object, old, &REPLICA_SET, causes);
}

pub(crate) fn deployment(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    if !are_kept(object, old, &["spec"]) {
        deployment_spec(spec(object), causes);
    }
    counts(object, old, &DEPLOYMENT, causes);
    collisions(object, old, causes);
}

fn deployment_spec(spec: &Value, causes: Causes<'_>) {
    run(&[("replicas", NotNegative)], spec, causes);
    selector_and_template(spec, causes);
    run(&[("strategy", By(strategy)), MIN_READY, HISTORY], spec, causes);
    run(&[("progressDeadlineSeconds", NotNegative)], spec, causes);
    let deadline = member(spec, "progressDeadlineSeconds");
    let ready = member(spec, "minReadySeconds").as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
}

/// Checks what a deployment and its replica sets have in common.
fn selector_and_template(spec: &Value, causes: Causes<'_>) {
    if selector(spec, "deployment", true, causes) {
        selectors::matches(spec, causes);
        template(spec, "ReplicaSet", causes);
    }
}

/// Checks that the collision count does not decrease. Without a count there was none before.
pub(super) fn collisions(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let count = |object: &Fields| {
        member(object.get("status").unwrap_or(&Value::Null), "collisionCount").as_i64()
    };
    let (new, old) = (count(object), old.and_then(count));
    if new < old {
        let shown = json!(new.unwrap_or(0));
        causes.push(Cause::invalid("status.collisionCount", &shown, "cannot be decremented"));
    }
}

pub(crate) fn daemon_set(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    counts(object, old, &DAEMON_SET, causes);
    collisions(object, old, causes);
    let old = old.map(spec);
    let spec = spec(object);
    let chosen = member(spec, "selector");
    if old.is_some_and(|old| member(old, "selector") != chosen) {
        causes.push(Cause::invalid("spec.selector", chosen, "field is immutable"));
    }
    if selector(spec, "daemonset", false, causes) {
        selectors::matches(spec, causes);
    }
    template(spec, "DaemonSet", causes);
    run(&[MIN_READY, ("updateStrategy", By(daemon_strategy)), HISTORY], spec, causes);
}

pub(crate) fn replication_controller(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let spec = spec(object);
    run(&[MIN_READY], spec, causes);
    let selector = member(spec, "selector");
    if is_empty(selector) {
        causes.push(Cause::required("spec.selector", ""));
    }
    if member(spec, "template").is_null() {
        causes.push(Cause::required("spec.template", ""));
    } else {
        let labels = member(member(member(spec, "template"), "metadata"), "labels");
        let found = labels.as_object().map(string_map).unwrap_or_default();
        let wanted = selector.as_object().map(string_map).unwrap_or_default();
        if wanted.iter().any(|(key, value)| found.get(key) != Some(value)) {
            selectors::mismatch(labels, causes);
        }
        template(spec, "ReplicationController", causes);
    }
    run(&[("replicas", NotNegative)], spec, causes);
    counts(object, old, &REPLICA_SET, causes);
}

/// Returns true if there is a valid selector.
pub(super) fn selector(spec: &Value, kind: &str, needed: bool, causes: Causes<'_>) -> bool {
    let selector = member(spec, "selector");
    if selector.is_null() {
        if needed {
            causes.push(Cause::required("spec.selector", ""));
        }
        return true;
    }
    let before = causes.len();
    run(&[SELECTOR], spec, causes);
    if causes.len() > before {
        // Each kind reports it differently, or not at all.
        let shown = selector.to_string();
        match kind {
            "daemonset" => {}
            "statefulset" => causes.push(Cause::invalid_text("spec.selector", &shown, "")),
            _ => causes.push(Cause::invalid("spec.selector", selector, "invalid label selector")),
        }
        return false;
    }
    if is_empty(member(selector, "matchLabels")) && is_empty(member(selector, "matchExpressions")) {
        let detail = format!("empty selector is invalid for {kind}");
        causes.push(Cause::invalid("spec.selector", selector, &detail));
    }
    true
}

/// Checks a template that stands alone: its pods may end.
pub(crate) fn pod_template(object: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
    let template = object.get("template").unwrap_or(&Value::Null);
    pod_spec::template(template, "template", ("PodTemplate", POLICIES), causes);
}

pub(crate) fn controller_revision(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let object = Value::Object(object.clone());
    super::run(&[("revision", NotNegative)], &object, "", causes);
    match member(&object, "data") {
        _ if old.is_some() => {} // It cannot change.
        Value::Object(_) => {}
        Value::Null => causes.push(Cause::required("data", "data is mandatory")),
        _ => causes.push(Cause::required("data", "data must be a valid JSON object")),
    }
}

pub(super) fn template(spec: &Value, kind: &str, causes: Causes<'_>) {
    pod_spec::template(member(spec, "template"), "spec.template", (kind, &["Always"]), causes);
}

/// Checks the restart policy and the deadline of a template whose rest is not checked.
pub(super) fn template_lifetime(spec: &Value, kind: &str, causes: Causes<'_>) {
    let pod = member(member(spec, "template"), "spec");
    pod_spec::lifetime(pod, "spec.template.spec", (kind, &["Always"]), causes);
}

// === strategies ===

fn strategy(_: &Value, strategy: &Value, at: &str, causes: Causes<'_>) {
    let rolling = member(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "RollingUpdate" => rolling_deployment(rolling, &format!("{at}.rollingUpdate"), causes),
        "Recreate" if rolling.is_null() => {}
        "Recreate" => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden(format!("{at}.rollingUpdate"), detail));
        }
        _ => causes.push(Cause::unsupported(at, &shown(strategy), &["Recreate", "RollingUpdate"])),
    }
}

/// Shows a strategy as the real server's messages do.
pub(super) fn shown(strategy: &Value) -> Value {
    let rolling = member(strategy, "rollingUpdate");
    let count = |name: &str| match member(rolling, name) {
        Value::Null => json!(0),
        count => count.clone(),
    };
    let counts = json!({"MaxUnavailable": count("maxUnavailable"), "MaxSurge": count("maxSurge")});
    let rolling = if rolling.is_null() { Value::Null } else { counts };
    json!({"Type": member(strategy, "type"), "RollingUpdate": rolling})
}

fn rolling_deployment(rolling: &Value, at: &str, causes: Causes<'_>) {
    let [unavailable, surge] = ["maxUnavailable", "maxSurge"].map(|key| member(rolling, key));
    let [unavailable_at, surge_at] =
        ["maxUnavailable", "maxSurge"].map(|key| format!("{at}.{key}"));
    count_or_percent(unavailable, &unavailable_at, causes);
    count_or_percent(surge, &surge_at, causes);
    if is_none(unavailable) && is_none(surge) {
        let detail = "may not be 0 when `maxSurge` is 0";
        causes.push(Cause::invalid(&unavailable_at, unavailable, detail));
    }
    at_most_all(unavailable, &unavailable_at, causes);
}

fn daemon_strategy(_: &Value, strategy: &Value, at: &str, causes: Causes<'_>) {
    let rolling = member(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => rolling_daemons(rolling, &format!("{at}.rollingUpdate"), causes),
        _ => causes.push(Cause::unsupported(at, &shown(strategy), &["RollingUpdate", "OnDelete"])),
    }
}

fn rolling_daemons(rolling: &Value, at: &str, causes: Causes<'_>) {
    let [unavailable, surge] = ["maxUnavailable", "maxSurge"].map(|key| member(rolling, key));
    count_or_percent(unavailable, &format!("{at}.maxUnavailable"), causes);
    count_or_percent(surge, &format!("{at}.maxSurge"), causes);
    at_most_all(unavailable, &format!("{at}.maxUnavailable"), causes);
    at_most_all(surge, &format!("{at}.maxSurge"), causes);
    match (is_none(unavailable), is_none(surge)) {
        (true, true) => {
            let detail = "cannot be 0 when maxSurge is 0";
            causes.push(Cause::required(format!("{at}.maxUnavailable"), detail));
        }
        (false, false) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            causes.push(Cause::invalid(format!("{at}.maxSurge"), surge, detail));
        }
        _ => {}
    }
}
