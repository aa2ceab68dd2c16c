//! Autoscalers (`ValidateHorizontalPodAutoscaler`).

use serde_json::{Value, json};

use super::Test::{AtLeast, AtMost, By, Each, Has, NotNegative, OneOf, Required};
use super::references::{Group, reference};
use super::{Causes, Check, member, metrics, quantities, text};
use crate::fields::Fields;
use crate::status::Cause;

const AT_LEAST_1: &str = "must be greater than or equal to 1";
const POSITIVE: &str = "must be greater than zero";
/// The longest period of a policy, in seconds.
const MAX_PERIOD: i64 = 1800;
/// The longest window, in seconds.
const MAX_WINDOW: i64 = 3600;

const BEHAVIOR: &[Check] = &[("scaleUp", By(rules)), ("scaleDown", By(rules))];

pub(crate) fn autoscaler(autoscaler: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let spec = autoscaler.get("spec").unwrap_or(&Value::Null);
    let old = old.map(|old| old.get("spec").unwrap_or(&Value::Null));
    super::run(&[("maxReplicas", By(in_order))], spec, "spec", causes);
    let target = member(spec, "scaleTargetRef");
    reference(target, group_of(target, old), "spec.scaleTargetRef", causes);
    metrics::all(spec, old, causes);
    super::run(&[("behavior", Has(BEHAVIOR))], spec, "spec", causes);
    bounds(spec, causes);
    status(autoscaler.get("status").unwrap_or(&Value::Null), causes);
}

/// Returns how the target names its group. Only the one kind of the core group that can be scaled
/// needs none.
fn group_of(target: &Value, old: Option<&Value>) -> Group {
    let kind = |target: &Value| ["apiVersion", "kind"].map(|name| text(target, name).to_owned());
    if old.is_some_and(|old| kind(member(old, "scaleTargetRef")) == kind(target)) {
        Group::Kept
    } else if text(target, "kind") == "ReplicationController" {
        Group::Optional
    } else {
        Group::Needed
    }
}

fn in_order(spec: &Value, most: &Value, at: &str, causes: Causes<'_>) {
    let number = most.as_i64().unwrap_or(0);
    if member(spec, "minReplicas").as_i64().is_some_and(|least| number < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(at, &json!(number), detail));
    }
}

fn bounds(spec: &Value, causes: Causes<'_>) {
    super::run(&[("minReplicas", NotNegative)], spec, "spec", causes);
    if member(spec, "maxReplicas").as_i64().unwrap_or(0) == 0 {
        causes.push(Cause::required("spec.maxReplicas", ""));
    } else {
        super::run(&[("maxReplicas", AtLeast(1, AT_LEAST_1))], spec, "spec", causes);
    }
}

/// Checks the rules of one direction.
fn rules(_: &Value, rules: &Value, at: &str, causes: Causes<'_>) {
    const RULES: &[Check] = &[
        ("stabilizationWindowSeconds", AtLeast(0, "must be greater than or equal to zero")),
        ("stabilizationWindowSeconds", AtMost(MAX_WINDOW)),
        ("selectPolicy", OneOf(&["Disabled", "Max", "Min"])),
        ("policies", Required("must specify at least one Policy")),
        ("policies", Each(POLICY)),
        ("tolerance", By(quantities::not_negative)),
    ];
    const POLICY: &[Check] = &[
        ("type", OneOf(&["Percent", "Pods"])),
        ("value", AtLeast(1, POSITIVE)),
        ("periodSeconds", AtLeast(1, POSITIVE)),
        ("periodSeconds", AtMost(MAX_PERIOD)),
    ];
    if !rules.is_null() {
        super::run(RULES, rules, at, causes);
    }
}

fn status(status: &Value, causes: Causes<'_>) {
    const STATUS: &[Check] = &[
        ("conditions", Each(&[("observedGeneration", NotNegative)])),
        ("currentReplicas", NotNegative),
        ("desiredReplicas", NotNegative),
    ];
    super::run(STATUS, status, "status", causes);
}
